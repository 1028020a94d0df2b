package agent

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// A slow budget is refilled before its decisions find nothing in memory: so they
// do not wait for the store, and what is left goes back, what was used is told and
// more is taken in one step, of many budgets in one round trip.

const (
	// worthRefilling is the least that a process holds ahead for that: of fewer a
	// refill would save next to no step.
	worthRefilling = 4
	// refillBefore is how long before its deadline what is held is replaced: the
	// next look may come too late.
	refillBefore = restFor + flushEvery + endBefore
)

// runsLow reports whether what a slow budget holds ahead may not last until the
// second look from now. The entry's mutex is held.
func (e *entry) runsLow(b *terms, now time.Duration) bool {
	want, _ := e.ahead(b, now)
	switch {
	case want < worthRefilling, !e.slow(small(b)), b.Deleted, e.denies(now) != nil:
		return false
	case e.last.until < now+2*refillBefore: // it would end with the lease, and be replaced at each look
		return false
	}
	lasting, ends := e.pocket.lasting(now + refillBefore)
	if !ends && e.arrived == 0 || lasting > want/4 || lasting >= e.last.Live/prefetchPart {
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

// refill replaces what is held of these entries. It is one attempt: what an unknown
// outcome brought ages out.
func (d *Decider) refill(ctx context.Context, entries []*entry) {
	for some := range slices.Chunk(entries, settlesAtOnce) {
		byPrimary := map[string]*refills{}
		for _, e := range some {
			b := e.policy.Load()
			s := d.send(b.Name)
			r := byPrimary[s.primary]
			if r == nil {
				r = &refills{}
				byPrimary[s.primary] = r
			}
			e.lock()
			e.pocket.end()
			e.unlock()
			t := d.takeOf(e, b, 0, true, s.at)
			t.Now = d.bound(e, s)
			r.entries, r.starts, r.takes = append(r.entries, e), append(r.starts, s), append(r.takes, t)
		}
		for primary, r := range byPrimary {
			d.sendRefills(ctx, primary, r)
		}
	}
}

// end lets nothing be taken any more from what is held.
func (p *pocket) end() {
	for _, q := range p.parts {
		q.ending = true
	}
}

// refills are takes that decide nothing, of entries on one primary.
type refills struct {
	entries []*entry
	starts  []callStart
	takes   []regionstore.Take
}

func (d *Decider) sendRefills(ctx context.Context, primary string, r *refills) {
	var results []regionstore.TakeResult
	_ = d.callWithin(ctx, d.settleWithin(), primary, "refill", func(ctx context.Context) (err error) {
		results, err = d.opt.Store.Refill(ctx, r.takes)
		return err
	})
	got := d.opt.Now()
	for i := range results {
		e, s, x := r.entries[i], r.starts[i], &results[i]
		if x.Outcome == 0 {
			continue
		}
		d.saw(e, s, got, x.Time, x.Outcome)
		d.booked(e, x, false, s.at, got)
		d.heat(e, got)
		d.askIfLow(e, x, got)
	}
}
