package agent

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// A slow budget is refilled before its decisions find nothing in memory, so that
// they need not wait for the store. What is left goes back, what was used is told
// and more is taken in one step; those of several budgets share a round trip.

const (
	// worthRefilling is the least that a process holds ahead for that: a refill of
	// fewer hardly saves a step.
	worthRefilling = 4
	// refillBefore is how long before its deadline what is held is replaced: the
	// next look may come too late.
	refillBefore = restFor + flushEvery + endBefore
	// refillAgain is the least time between two refills of a budget: what ends with
	// its lease is not replaced at each look. After one that brought nothing, or
	// whose outcome is unknown, it is refillLater: the wallet has its reasons.
	refillAgain = 2 * restFor
	refillLater = smallFor
	// refillsAtOnce go to the store together, of refillsMost a flush: while they are
	// under way decisions of those budgets find nothing in memory, and all others'
	// settlements wait.
	refillsAtOnce = 8
	refillsMost   = 256
)

// runsLow reports whether what a slow budget holds ahead may not last until the
// second look from now. used says that some of it was used since the last look.
// The entry's mutex is held.
func (e *entry) runsLow(b *terms, used bool, now time.Duration) bool {
	want, _ := e.ahead(b, now)
	if want < worthRefilling || !e.slow(small(b)) || now < e.refillAt || b.Deleted || e.denies(now) != nil {
		return false
	}
	lasting, ends := e.pocket.lasting(now + refillBefore)
	if !ends && !used || lasting > want/4 || lasting >= e.last.Live/prefetchPart {
		return false
	}
	return float64(lasting) <= 1+2*e.rate*restFor.Seconds()
}

// lasting is what could be taken until then, and whether any part ends before.
func (p *pocket) lasting(until time.Duration) (n lease.Tokens, ends bool) {
	for _, q := range p.parts {
		if q.ending || until >= q.deadline {
			ends = true
			continue
		}
		n += lease.Tokens(q.free.Load())
	}
	return n, ends
}

// refill replaces what is held of these entries, until one try fails or ctx ends.
// It is one attempt: what an unknown outcome brought ages out.
func (d *Decider) refill(ctx context.Context, entries []*entry) {
	for some := range slices.Chunk(entries[:min(len(entries), refillsMost)], refillsAtOnce) {
		if ctx.Err() != nil {
			return
		}
		byPrimary := map[string]*refills{}
		for _, e := range some {
			b := e.policy.Load()
			s := d.send(b.Name)
			if d.primary.failing(s.primary) || !e.makeRoom(b, s.at) {
				continue
			}
			t := d.takeOf(e, b, 0, true, s.at)
			t.Now = d.bound(e, s)
			r := byPrimary[s.primary]
			if r == nil {
				r = &refills{}
				byPrimary[s.primary] = r
			}
			r.entries, r.starts, r.takes = append(r.entries, e), append(r.starts, s), append(r.takes, t)
		}
		for primary, r := range byPrimary {
			if d.sendRefills(ctx, primary, r) != nil {
				return
			}
		}
	}
}

// makeRoom lets nothing be taken any more from what is held, if that still runs low:
// a decision may have asked the store meanwhile.
func (e *entry) makeRoom(b *terms, now time.Duration) bool {
	e.lock()
	defer e.unlock()
	if !e.runsLow(b, true, now) {
		return false
	}
	for _, q := range e.pocket.parts {
		q.ending = true
	}
	e.refillAt = now + refillLater
	return true
}

// refills are takes that decide nothing, of entries on one primary.
type refills struct {
	entries []*entry
	starts  []callStart
	takes   []regionstore.Take
}

func (d *Decider) sendRefills(ctx context.Context, primary string, r *refills) error {
	var results []regionstore.TakeResult
	err := d.callWithin(ctx, d.settleWithin(), primary, "refill", func(ctx context.Context) (err error) {
		results, err = d.opt.Store.Refill(ctx, r.takes)
		return err
	})
	got := d.opt.Now()
	for i := range results {
		if x := &results[i]; x.Outcome != 0 {
			d.refilled(r.entries[i], x, r.starts[i], got)
		}
	}
	return err
}

// refilled books what a refill brought.
func (d *Decider) refilled(e *entry, r *regionstore.TakeResult, s callStart, got time.Duration) {
	d.saw(e, s, got, r.Time, r.Outcome)
	d.booked(e, r, false, s.at, got)
	d.heat(e, got)
	d.askIfLow(e, r, got)
	e.lock()
	_, ends := e.pocket.lasting(got + refillBefore)
	if len(r.Parts) > 0 {
		e.refillAt = got + refillAgain
	}
	e.unlock()
	if ends && e.inUse.Load() {
		d.wakeUp(e)
	}
}
