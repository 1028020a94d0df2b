package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Many decides n equal checks of one budget that arrive at the same instant,
// with a few store steps instead of n: the first as Begin does, then as many
// as this process's memory and the wallet have tokens for, and of those that
// are left one more as Begin does, whose answer, or Pending, is that of all of
// them. admitted counts those allowed. c has no request id, a cost above 0,
// and n is above 0. The error is Begin's.
func (d *Decider) Many(ctx context.Context, c Check, n int64) (admitted int64, a Answer, p *Pending, err error) {
	a, p, err = d.Begin(ctx, c)
	for err == nil && p == nil && a.Outcome == Allowed {
		if admitted++; admitted == n {
			return admitted, a, nil, nil
		}
		// Local allowances are given one by one: they are small.
		if a.Mode == FromPrefetch || a.Mode == FromStore {
			admitted += d.takeMany(ctx, &c, n-admitted)
			if admitted == n {
				return admitted, a, nil, nil
			}
		}
		a, p, err = d.Begin(ctx, c)
	}
	if rest := n - admitted - 1; err == nil && rest > 0 {
		d.offerMany(&c, rest)
	}
	return admitted, a, p, err
}

// ResumeMany is Resume for n checks of which Many, or an earlier ResumeMany,
// gave back the Pending.
func (d *Decider) ResumeMany(ctx context.Context, p *Pending, n int64) (admitted int64, a Answer, next *Pending, err error) {
	c := p.check
	a, next, err = d.Resume(ctx, p)
	if err != nil || next != nil || a.Outcome != Allowed || n == 1 {
		if err == nil && next == nil && a.Outcome == Allowed {
			admitted = 1
		}
		return admitted, a, next, err
	}
	d.offerMany(&c, -(n - 1)) // counted when they came
	admitted, a, next, err = d.Many(ctx, c, n-1)
	return admitted + 1, a, next, err
}

// offerMany counts the demand of n checks that no Begin counted.
func (d *Decider) offerMany(c *Check, n int64) {
	var room [1]*entry
	matched, err := d.match(c, room[:0])
	if err != nil || len(matched) != 1 {
		return
	}
	e := matched[0]
	e.mu.Lock()
	e.offered += c.Cost * lease.Tokens(n)
	e.arrived += c.Cost * lease.Tokens(n)
	e.mu.Unlock()
}

// takeMany admits up to n more checks from memory and from the wallet, and
// counts the demand of those.
func (d *Decider) takeMany(ctx context.Context, c *Check, n int64) int64 {
	var room [1]*entry
	matched, err := d.match(c, room[:0])
	if err != nil || len(matched) != 1 {
		return 0
	}
	e := matched[0]
	got := d.pocketMany(e, c.Cost, n)
	e.mu.Lock()
	e.offered += c.Cost * lease.Tokens(got)
	e.arrived += c.Cost * lease.Tokens(got)
	live := e.last.Live
	e.mu.Unlock()
	d.countMany(FromPrefetch, got)
	if got == n {
		return got
	}
	fits := int64(live / c.Cost)
	for range 2 {
		took, nowLive, ok := d.storeMany(ctx, e, c.Cost, min(n-got, fits))
		got += took
		if again := int64(nowLive / c.Cost); ok && got < n && again > 0 {
			fits = again
			continue
		}
		break
	}
	return got
}

// pocketMany spends what this process holds.
func (d *Decider) pocketMany(e *entry, cost lease.Tokens, n int64) (got int64) {
	now := d.opt.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	for got < n {
		q := e.pocket.find(cost, now)
		if q == nil {
			break
		}
		k := min(n-got, int64(q.free/cost))
		if _, ok := e.pocket.spend(cost*lease.Tokens(k), now); !ok {
			break
		}
		if now = d.opt.Now(); now >= q.deadline {
			d.stats.Discarded.Add(int64(cost) * k)
			break
		}
		e.pocket.touched = now
		got += k
	}
	return got
}

// storeMany takes n costs in one step, or nothing, and says what is left.
func (d *Decider) storeMany(ctx context.Context, e *entry, cost lease.Tokens, n int64) (got int64, live lease.Tokens, ok bool) {
	if n <= 0 {
		return 0, 0, false
	}
	all := cost * lease.Tokens(n)
	l := &lot{entry: e, policy: e.policy.Load()}
	e.mu.Lock()
	e.offered += all
	e.arrived += all
	e.mu.Unlock()
	req := regionstore.TakeRequest{Takes: []regionstore.Take{d.takeOf(e, l.policy, all, false, d.opt.Now())}}
	reply, _, err := d.take(ctx, []*lot{l}, req)
	if err != nil || !reply.Took {
		e.mu.Lock()
		e.offered -= all
		e.arrived -= all
		e.mu.Unlock()
		if err != nil {
			return 0, 0, false
		}
		return 0, reply.Results[0].Live, true
	}
	d.countMany(FromStore, n)
	l.result = reply.Results[0]
	e.mu.Lock()
	l.hint = e.hint
	e.mu.Unlock()
	a := attempt{d: d, now: d.opt.Now()}
	a.askIfLow(l, a.now)
	return n, reply.Results[0].Live, true
}

func (d *Decider) countMany(mode Mode, n int64) { d.stats.Decisions[Allowed][mode].Add(n) }

// Prefetched returns what this process could still spend of a budget from its
// own memory at now, on its clock.
func (d *Decider) Prefetched(budget string, now time.Duration) lease.Tokens {
	e := d.entry(budget)
	if e == nil {
		return 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	var n lease.Tokens
	for i := range e.pocket.parts {
		if q := &e.pocket.parts[i]; now < q.deadline {
			n += q.free + q.held
		}
	}
	return n
}
