package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
)

// localWait is how long a decision waits for its first lease, if its own
// deadline is not nearer and its budget does not say otherwise.
const localWait = 50 * time.Millisecond

// maxWaiters bounds how many decisions of one budget wait at once in this
// process; the others go to the failure mode at once.
const maxWaiters = 256

// pollEvery is how often a waiting decision looks again while another
// process's Sync is on its way: nobody wakes us when that one arrives.
const pollEvery = 10 * time.Millisecond

// Begin decides c, or hands back a Pending when the decision must wait for
// tokens from afar. The error is a *lease.Error that names the offending
// field of c.
func (d *Decider) Begin(ctx context.Context, c Check) (a Answer, p *Pending, err error) {
	if err := c.Validate(); err != nil {
		d.stats.Invalid.Add(1)
		return a, nil, err
	}
	var room [8]*entry
	matched, err := d.match(&c, room[:0])
	if err != nil {
		d.stats.Invalid.Add(1)
		return a, nil, err
	}
	if len(matched) == 1 && c.RequestID == "" && d.fromHot(matched[0], c.Cost, &a) {
		return a, nil, nil
	}
	start := d.opt.Now()
	if a, ok := d.decideHere(&c, matched, start); ok {
		d.count(start, a)
		return a, nil, nil
	}
	return d.decideFar(ctx, c, append([]*entry(nil), matched...), start)
}

// Resume tries again to decide p, which Begin or Resume returned, when p.At
// has come or p.Arrived is closed.
func (d *Decider) Resume(ctx context.Context, p *Pending) (Answer, *Pending, error) {
	p.leave()
	return d.attempt(ctx, p)
}

// Abandon gives p up without deciding it, when its caller went away.
func (d *Decider) Abandon(p *Pending) { p.leave() }

// match finds the entries that c asks about. Unlike a request that no budget
// matches, an unknown name is an error, and unknown budgets are no reason to
// allow anything.
func (d *Decider) match(c *Check, to []*entry) ([]*entry, error) {
	ix := d.index.Load()
	if ix == nil {
		return nil, nil
	}
	if len(c.Descriptors) > 0 {
		return ix.match(c.Descriptors, to), nil
	}
names:
	for i, name := range c.Budgets {
		e := ix.byName[name]
		if e == nil || e.policy.Load().Deleted {
			return nil, lease.Errorf(lease.UnknownBudget, field("budgets", i, ""), "no budget named %q", name)
		}
		for _, have := range to {
			if have == e {
				continue names
			}
		}
		to = append(to, e)
	}
	return to, nil
}

// decideHere decides without the store if it can: costs that can never pass,
// denials of a moment ago, tokens in this process's memory.
func (d *Decider) decideHere(c *Check, matched []*entry, now time.Duration) (Answer, bool) {
	if !d.Ready() {
		return Answer{Outcome: Unavailable, Mode: FromMemory, Reason: reasonNotReady}, true
	}
	if len(matched) == 0 {
		return Answer{Outcome: Allowed, Mode: FromMemory, Reason: reasonNoMatch}, true
	}
	for i, e := range matched {
		d.touch(e, now)
		if a, ok := d.never(e, c.cost(i), now); ok {
			return a, true
		}
	}
	if a, ok := d.offer(matched, c, now); ok {
		return a, true
	}
	if c.Cost == 0 || c.RequestID != "" {
		return Answer{}, false
	}
	if len(matched) == 1 {
		return d.fromPocket(matched[0], c.Cost, now)
	}
	return d.fromPockets(matched, c, now)
}

// never refuses what the contract, or the region's part of it, could never
// grant.
func (d *Decider) never(e *entry, cost lease.Tokens, now time.Duration) (Answer, bool) {
	b := e.policy.Load()
	if max(cost, 1) <= b.most {
		return Answer{}, false
	}
	a := d.answer(e, now, 0)
	a.Outcome, a.Mode, a.Never, a.Reason = Denied, FromMemory, true, reasonNever
	if b.Contract.Limit() <= 0 {
		a.Reason = lease.LimitZero.String()
	}
	return a, true
}

// offer counts the cost as demand in every budget, and answers from memory if
// any of them denied it a moment ago.
func (d *Decider) offer(matched []*entry, c *Check, now time.Duration) (answer Answer, denied bool) {
	for i, e := range matched {
		cost := c.cost(i)
		e.lock()
		e.offered += cost
		e.arrived += cost
		if !denied && e.policy.Load().Wait == 0 && c.RequestID == "" {
			answer, denied = e.recall(max(cost, 1), now)
		}
		e.unlock()
	}
	return answer, denied
}

// fromPocket decides one budget whose tokens are in this process's memory, and
// makes the next decisions hot. The token is taken first and the clock read
// afterwards; a late one is discarded.
func (d *Decider) fromPocket(e *entry, cost lease.Tokens, now time.Duration) (Answer, bool) {
	e.lock()
	deadline, ok := e.pocket.spend(cost, now)
	e.unlock()
	if !ok {
		return Answer{}, false
	}
	now = d.opt.Now()
	if now >= deadline {
		d.stats.Discarded.Add(int64(cost))
		return Answer{}, false
	}
	e.lock()
	e.pocket.touched = now
	remaining := e.pocket.live(now) + e.last.Live
	e.unlock()
	d.heat(e, now)
	return allowed(d.answer(e, now, remaining), FromPrefetch), true
}

// fromPockets decides several budgets, if all have their tokens here.
func (d *Decider) fromPockets(matched []*entry, c *Check, now time.Duration) (Answer, bool) {
	var room [8]held
	holds := room[:0]
	for i, e := range matched {
		e.lock()
		h, ok := e.pocket.hold(c.cost(i), now)
		e.unlock()
		if !ok {
			release(holds, false)
			return Answer{}, false
		}
		h.entry = e
		holds = append(holds, h)
	}
	now = d.opt.Now()
	if late(holds, now) {
		d.discard(holds)
		return Answer{}, false
	}
	release(holds, true)
	var least Answer
	for i, e := range matched {
		e.lock()
		e.pocket.touched = now
		remaining := e.pocket.live(now) + e.last.Live
		e.unlock()
		if a := d.answer(e, now, remaining); i == 0 || a.Remaining < least.Remaining {
			least = a
		}
	}
	return allowed(least, FromPrefetch), true
}

func late(holds []held, now time.Duration) bool {
	for i := range holds {
		if now >= holds[i].part.deadline {
			return true
		}
	}
	return false
}

func release(holds []held, used bool) {
	for i := range holds {
		h := &holds[i]
		h.entry.lock()
		h.release(used)
		h.entry.unlock()
	}
}

// discard drops held tokens: counting them as used without admitting
// anything loses them, which is always safe.
func (d *Decider) discard(holds []held) {
	for i := range holds {
		d.stats.Discarded.Add(int64(holds[i].tokens))
	}
	release(holds, true)
}

func (d *Decider) count(start time.Duration, a Answer) {
	d.stats.Decisions[a.Outcome][a.Mode].Add(1)
	d.opt.Observer.Decided(d.opt.Now()-start, a.Outcome, a.Mode)
}
