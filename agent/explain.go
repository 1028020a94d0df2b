package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Explanation says where a budget's tokens are, as one agent sees it now, and
// so why a request was denied.
type Explanation struct {
	Budget  string
	Version uint64 // of the policy
	// Row is false when the region's store holds no wallet: then the rest of the
	// store's part is zero.
	Row    bool
	Leases [lease.Kinds]LeasePart
	// Process is what this process holds in its memory, and until when.
	Process      lease.Tokens
	ProcessUntil time.Duration
	// DemandTotal is the region's cumulative offered cost; Rate this process's
	// own estimate, in tokens per second.
	DemandTotal lease.Tokens
	Rate        float64
	// Refused is the ledger's last refusal, while it counts as evidence, with
	// the time it still does.
	Refused    lease.Shortage
	RefusedFor time.Duration
	RetryAfter time.Duration
	// Final is set when the ledger does not serve the budget here; Unreachable
	// while Syncs fail.
	Final       lease.Code
	Unreachable bool
	// DeniedCost is the smallest cost that is denied from memory now; 0 for none.
	DeniedCost lease.Tokens
	LastDenial Answer
	// LocalStore and LocalProcess are admissions without a lease.
	LocalStore, LocalProcess lease.Tokens
	Waiters                  int
	// Err is set when the store could not be read.
	Err error
}

// LeasePart is one lease of an Explanation.
type LeasePart struct {
	Kind        lease.Kind
	Incarnation lease.Incarnation
	Seq         uint64
	Pending     bool
	Closed      bool
	Ended       bool
	// Live could be taken now; Prefetched is what processes hold, as far as the
	// store knows.
	Live, Prefetched        lease.Tokens
	Granted, Used, Returned lease.Tokens
	X                       lease.Rate
	Beta                    lease.Tokens
	// Remains is the time to the deadline; not above 0 when dead or never
	// granted.
	Remains time.Duration
}

// Explain looks at a budget without changing anything. It returns an error
// with code UnknownBudget for a name that is not listed.
func (d *Decider) Explain(ctx context.Context, budget string) (Explanation, error) {
	e := d.entry(budget)
	if e == nil {
		return Explanation{}, lease.Errorf(lease.UnknownBudget, "budget", "no budget named %q", budget)
	}
	x := d.explainProcess(e)
	s := d.send(budget)
	var views []regionstore.View
	x.Err = d.call(ctx, s.primary, "read", func(ctx context.Context) (err error) {
		views, err = d.opt.Store.Read(ctx, []string{budget}, []regionstore.Now{d.bound(e, s)})
		return err
	})
	if x.Err == nil {
		d.saw(e, s, d.opt.Now(), views[0].Time, views[0].Outcome)
		x.fromView(&views[0])
	}
	return x, nil
}

// Explain is Decider.Explain.
func (r *Runner) Explain(ctx context.Context, budget string) (Explanation, error) {
	return r.decider.Explain(ctx, budget)
}

func (d *Decider) explainProcess(e *entry) Explanation {
	b, now := e.policy.Load(), d.opt.Now()
	e.lock()
	defer e.unlock()
	t := e.hint.Trouble.orNone()
	x := Explanation{
		Budget: b.Name, Version: b.Version, Process: e.pocket.live(now), Rate: e.rate,
		Final: t.Final, Unreachable: t.Unreachable,
		Waiters: int(e.waiters),
	}
	if e.local != nil {
		x.LocalProcess = e.local.total
	}
	if e.denial != nil {
		x.LastDenial = e.denial.answer
	}
	for _, q := range e.pocket.parts {
		x.ProcessUntil = max(x.ProcessUntil, q.deadline-now)
	}
	if t.refused(now) {
		x.Refused, x.RefusedFor, x.RetryAfter = t.Refused, t.Until-now, max(0, t.Retry-now)
	}
	if d := e.denies(now); d != nil {
		x.DeniedCost = d.cost
	}
	return x
}

func (x *Explanation) fromView(v *regionstore.View) {
	x.Row = v.Outcome != regionstore.Missing
	x.DemandTotal, x.LocalStore = v.Row.DemandTotal, v.Row.Local.Total
	for i := range v.Row.Leases {
		l := &v.Row.Leases[i]
		x.Leases[i] = LeasePart{
			Kind: lease.Kind(i + 1), Incarnation: l.Incarnation, Seq: l.Seq, Pending: l.Pending,
			Closed: l.Closed, Ended: l.Ended, Live: v.Live[i], Prefetched: counted(l),
			Granted: l.Granted, Used: l.Used, Returned: l.Returned,
			X: l.X, Beta: l.Beta, Remains: v.Remains[i],
		}
	}
}
