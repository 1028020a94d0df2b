package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Many decides n equal checks of one budget that arrive at the same instant,
// with a few store steps instead of n: with one, if the wallet has tokens for
// all; else one is decided as Begin does, then as many as this process's memory
// and the wallet have tokens for, and of those that are left one more by itself,
// whose answer, or Pending, is that of all of them. admitted counts those
// allowed. c has no request id, a cost above 0, and n is above 0. The error is
// Begin's.
func (d *Decider) Many(ctx context.Context, c Check, n int64) (admitted int64, a Answer, p *Pending, err error) {
	var room [1]*entry
	matched, err := d.match(&c, room[:0])
	if n == 1 || err != nil || len(matched) != 1 || c.Validate() != nil {
		a, p, err = d.Begin(ctx, c)
		return alone(a, p, err), a, p, err
	}
	e, start := matched[0], d.opt.Now()
	others := c.Cost * lease.Tokens(n-1)
	a, here := d.decideHere(&c, matched, start)
	switch {
	case here:
		d.count(start, a)
		e.offer(others)
	case e.hasSeen(c.Cost):
		e.offer(others)
		var live lease.Tokens
		if admitted, live = d.walletMany(ctx, e, c.Cost, n, n); admitted == n {
			return n, allowed(d.answer(e, start, live), FromStore), nil, nil
		}
		a, p, err = d.decideFar(ctx, c, []*entry{e}, start)
	default:
		a, p, err = d.decideFar(ctx, c, []*entry{e}, start)
		e.offer(others) // not before: the row may be missing, and would not hear of it
	}
	more, a, p, err := d.others(ctx, c, e, n-admitted, a, p, err)
	return admitted + more, a, p, err
}

// hasSeen reports whether the wallet had the cost when it was last taken from.
func (e *entry) hasSeen(cost lease.Tokens) bool {
	e.lock()
	defer e.unlock()
	return e.last.Live >= cost
}

// offer counts demand beside that of the decision that Begin counts.
func (e *entry) offer(cost lease.Tokens) {
	e.lock()
	defer e.unlock()
	e.offered += cost
	e.arrived += cost
}

// alone is how many of one check the answer admits.
func alone(a Answer, p *Pending, err error) int64 {
	if err == nil && p == nil && a.Outcome == Allowed {
		return 1
	}
	return 0
}

// ResumeMany is Resume for n checks of which Many, or an earlier ResumeMany,
// gave back the Pending.
func (d *Decider) ResumeMany(ctx context.Context, p *Pending, n int64) (admitted int64, a Answer, next *Pending, err error) {
	c, e := p.check, p.entries[0]
	a, next, err = d.Resume(ctx, p)
	if len(p.entries) != 1 {
		return alone(a, next, err), a, next, err
	}
	return d.others(ctx, c, e, n, a, next, err)
}

// others decides what is left of n checks after one of them was decided.
func (d *Decider) others(ctx context.Context, c Check, e *entry, n int64, a Answer, p *Pending, err error) (int64, Answer, *Pending, error) {
	admitted := int64(0)
	for alone(a, p, err) == 1 {
		if admitted++; admitted == n {
			break
		}
		// Local allowances are given one by one: they are small.
		if a.Mode == FromPrefetch || a.Mode == FromStore {
			if admitted += d.takeMany(ctx, e, c.Cost, n-admitted); admitted == n {
				break
			}
		}
		a, p, err = d.decideFar(ctx, c, []*entry{e}, d.opt.Now())
	}
	return admitted, a, p, err
}

// takeMany admits up to n checks from memory and from the wallet.
func (d *Decider) takeMany(ctx context.Context, e *entry, cost lease.Tokens, n int64) int64 {
	got := d.pocketMany(e, cost, n)
	d.countMany(FromPrefetch, got)
	e.lock()
	fits := int64(e.last.Live / cost)
	e.unlock()
	took, _ := d.walletMany(ctx, e, cost, n-got, fits)
	return got + took
}

// walletMany admits up to n checks from the wallet, which is thought to have
// tokens for as many as fit, and says what is left in it.
func (d *Decider) walletMany(ctx context.Context, e *entry, cost lease.Tokens, n, fits int64) (got int64, live lease.Tokens) {
	fits = min(fits, int64(lease.MaxTokens/cost))
	for range 2 {
		var took int64
		took, live = d.storeMany(ctx, e, cost, min(n-got, fits))
		got += took
		if fits = int64(live / cost); got == n || fits == 0 {
			break
		}
	}
	return got, live
}

// pocketMany spends what this process holds.
func (d *Decider) pocketMany(e *entry, cost lease.Tokens, n int64) (got int64) {
	now := d.opt.Now()
	e.lock()
	defer e.unlock()
	for got < n {
		q := e.pocket.find(cost, now)
		if q == nil {
			break
		}
		k := min(n-got, q.free.Load()/int64(cost))
		if _, ok := q.take(cost * lease.Tokens(k)); !ok {
			continue // hot decisions were faster
		}
		q.known += cost * lease.Tokens(k)
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
func (d *Decider) storeMany(ctx context.Context, e *entry, cost lease.Tokens, n int64) (got int64, live lease.Tokens) {
	if n <= 0 {
		return 0, 0
	}
	l := &lot{entry: e, policy: e.policy.Load()}
	req := regionstore.TakeRequest{Takes: []regionstore.Take{
		d.takeOf(e, l.policy, cost*lease.Tokens(n), false, d.opt.Now()),
	}}
	reply, _, err := d.take(ctx, []*lot{l}, req)
	if err != nil {
		return 0, 0
	}
	l.result = reply.Results[0]
	if !reply.Took {
		return 0, l.result.Live
	}
	d.countMany(FromStore, n)
	d.askIfLow(e, &l.result, d.opt.Now())
	return n, l.result.Live
}

func (d *Decider) countMany(mode Mode, n int64) { d.stats.Decisions[Allowed][mode].Add(n) }

// Prefetched returns what this process could still spend of a budget from its
// own memory at now, on its clock.
func (d *Decider) Prefetched(budget string, now time.Duration) lease.Tokens {
	e := d.entry(budget)
	if e == nil {
		return 0
	}
	e.lock()
	defer e.unlock()
	var n lease.Tokens
	for _, q := range e.pocket.parts {
		if now < q.deadline {
			n += lease.Tokens(q.free.Load()) + q.held
		}
	}
	return n
}
