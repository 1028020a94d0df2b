package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// hot is what a decision needs of one budget whose tokens lie in this
// process's memory, put together once and then read without any mutex: it is
// replaced, never changed. An entry has one only while the budget denied
// nothing a moment ago.
type hot struct {
	part     *part
	deadline time.Duration // the part's, apart from what decisions write
	limit    lease.Tokens
	// besides is what the region could admit beside the part's free tokens.
	besides lease.Tokens
	// rate fills full, for a bucket; a quota's window ends at windowEnd on this
	// process's clock.
	rate      lease.Rate
	full      lease.Tokens
	windowEnd time.Duration
	// answer lacks Remaining and ResetAfter.
	answer Answer
}

// fromHot decides one budget without a mutex. The token is taken first and
// the clock read afterwards; a late one is discarded.
func (d *Decider) fromHot(e *entry, cost lease.Tokens, a *Answer) bool {
	h := e.hot.Load()
	if h == nil || cost <= 0 || cost > h.limit {
		return false
	}
	var start time.Duration
	if d.observed {
		start = d.opt.Now()
	}
	if cost != 1 {
		e.surplus.Add(int64(cost) - 1)
	}
	left, ok := h.part.take(cost)
	if !ok {
		if cost != 1 {
			e.surplus.Add(1 - int64(cost))
		}
		return false
	}
	now := d.opt.Now()
	if now >= h.deadline {
		d.tooLate(e, h, cost)
		return false
	}
	if now-time.Duration(e.lastUsed.Load()) >= usedGrain {
		e.lastUsed.Store(int64(now))
	}
	*a = h.answer
	a.Remaining = min(left+h.besides, h.limit)
	a.ResetAfter = h.reset(a.Remaining, now)
	if d.observed {
		// A third reading of the clock would take longer than what it measured.
		d.opt.Observer.Decided(now-start, Allowed, FromPrefetch)
	}
	return true
}

// usedGrain is how exactly lastUsed is kept: what is written at each decision
// travels between the cores that decide.
const usedGrain = time.Millisecond

// tooLate drops a token that was taken at or after its deadline. The decision
// goes on without it, and counts its demand there.
func (d *Decider) tooLate(e *entry, h *hot, cost lease.Tokens) {
	d.stats.Discarded.Add(int64(cost))
	e.mu.Lock()
	defer e.mu.Unlock()
	h.part.known += cost
	if cost != 1 {
		e.surplus.Add(1 - int64(cost))
	}
	e.hot.CompareAndSwap(h, nil)
}

func (h *hot) reset(remaining lease.Tokens, now time.Duration) time.Duration {
	if h.rate.Zero() {
		return ceilMillis(h.windowEnd - now)
	}
	wait, _ := h.rate.TimeFor(h.full-remaining, 0)
	return ceilMillis(wait)
}

// heat makes the pocket's tokens, if any, ready for hot decisions. It is to
// be called after what an answer says, or where tokens come from, changed.
func (d *Decider) heat(e *entry, now time.Duration) {
	b := e.policy.Load()
	h := &hot{limit: b.Contract.Limit(), answer: allowed(d.answer(e, now, 0), FromPrefetch)}
	e.lock()
	defer e.unlock()
	h.part = e.pocket.find(1, now)
	if h.part == nil || b != e.policy.Load() || e.denies(now) != nil {
		e.hot.Store(nil)
		return
	}
	h.deadline = h.part.deadline
	h.besides = e.last.Live + e.pocket.live(now) - lease.Tokens(h.part.free.Load())
	if b.Contract.IsQuota() {
		h.windowEnd = now + h.answer.ResetAfter
	} else {
		h.rate, h.full = e.fills(b)
	}
	e.hot.Store(h)
}
