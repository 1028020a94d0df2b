package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// The words of Answer.Reason that are not a lease.Shortage.
const (
	reasonOK         = "ok"
	reasonNoMatch    = "no_budget_matched"
	reasonPeek       = "peek"
	reasonShareEmpty = "share_empty"
	reasonNever      = "never"
	reasonNoLease    = "no_lease"
	reasonNotReady   = "budgets_unknown"
	reasonClosing    = "closing"
	reasonStore      = "store_unavailable"
	reasonLocal      = "local_allowance"
	reasonLocalEmpty = "local_allowance_empty"
)

func allowed(a Answer, mode Mode) Answer {
	a.Outcome, a.Mode, a.Reason = Allowed, mode, reasonOK
	return a
}

// answer fills in what every answer about e says.
func (d *Decider) answer(e *entry, now time.Duration, remaining lease.Tokens) Answer {
	b := e.policy.Load()
	limit := b.Contract.Limit()
	remaining = max(0, min(remaining, limit))
	reset, window := d.reset(e, b, remaining)
	return Answer{
		Budget: b.Name, Version: b.Version, Limit: limit, Remaining: remaining,
		ResetAfter: reset, Window: window,
	}
}

// reset is the time to a full share or, where there is none, a full bucket,
// or to the end of a quota's window; rounded up. window is Answer.Window.
func (d *Decider) reset(e *entry, b *terms, remaining lease.Tokens) (reset, window time.Duration) {
	if b.Contract.IsQuota() {
		return d.windowLeft(e, b)
	}
	e.lock()
	rate, full := e.fills(b)
	e.unlock()
	wait, _ := rate.TimeFor(full-remaining, 0)
	window, _ = b.Contract.Rate.TimeFor(b.Contract.Burst, 0)
	return ceilMillis(wait), window
}

// fills says what is refilled at which rate: the region's share, else the
// bucket. The entry's mutex is held.
func (e *entry) fills(b *terms) (rate lease.Rate, full lease.Tokens) {
	if e.last.Beta > 0 && !e.last.X.Zero() {
		return e.last.X, e.last.Beta
	}
	return b.Contract.Rate, b.Contract.Burst
}

// windowLeft asks the calendar once per window.
func (d *Decider) windowLeft(e *entry, b *terms) (left, length time.Duration) {
	now := lease.Time(d.opt.Wall().UnixMicro())
	e.lock()
	defer e.unlock()
	if e.window == nil || now >= e.window.end {
		start, end, err := policy.Window(b.Contract.Quota.Zone, b.Contract.Quota.Per, now)
		if err != nil {
			return 0, 0
		}
		e.window = &window{start, end}
	}
	return ceilMillis(e.window.end.Sub(now)), e.window.end.Sub(e.window.start)
}

// evidence says whether a shortage is a quota denial: the region's own share
// is empty and will mint the cost, or the ledger refused a moment ago. A wallet
// that has the cost and could only not lend it is none. retry is when the cost
// could pass, 0 if unknown.
func evidence(t Trouble, r *regionstore.TakeResult, cost lease.Tokens, now time.Duration) (reason string, retry time.Duration, ok bool) {
	if mints := mintIn(r, cost); r.Outcome != regionstore.Missing && r.Beta >= cost && mints > 0 {
		return reasonShareEmpty, mints, true
	}
	if !t.refused(now) || r.Live >= cost {
		return "", 0, false
	}
	return t.Refused.String(), max(0, t.Retry-now), true
}

// mintIn is TakeResult.MintIn for cost; a peek's own is for nothing.
func mintIn(r *regionstore.TakeResult, cost lease.Tokens) time.Duration {
	if r.MintIn != 0 || r.X.Zero() || r.Live >= cost {
		return r.MintIn
	}
	wait, _ := r.X.TimeFor(cost-r.Live, 0)
	return wait
}

func denied(a Answer, mode Mode, reason string, retry time.Duration) Answer {
	a.Outcome, a.Mode, a.Reason, a.RetryAfter = Denied, mode, reason, ceilMillis(retry)
	return a
}

func unavailable(a Answer, mode Mode, reason string, retry time.Duration) Answer {
	a.Outcome, a.Mode, a.Reason, a.RetryAfter = Unavailable, mode, reason, ceilMillis(retry)
	return a
}
