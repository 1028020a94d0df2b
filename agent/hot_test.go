package agent

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Hot decisions take without the mutex while others hold, settle and give back
// under it: every token is used once, given back once, or still in the wallet,
// and every decision is counted, once, and so is its demand.
//
// Seen to catch: giving back what was free before the swap, a load and a store
// in place of the compare-and-swap, settling what was told already, and demand
// forgotten with the part it came from.
func TestHotDecisionsSpendEachTokenOnce(t *testing.T) {
	const granted, each, together = 2_000_000, 150_000, 10_000
	b := newBench(t, lumps("a/x1"), lumps("a/y1"))
	b.grant("a/x1", granted, lease.State{})
	b.grant("a/y1", granted, lease.State{})
	b.decider.opt.Now = func() time.Duration { return time.Hour }
	x := remembering(b.decider.entry("a/x1"))
	x.rate = 20_000
	var used, decided atomic.Int64
	var wg sync.WaitGroup
	decide := func(n int, cost lease.Tokens, budgets ...string) {
		for range n {
			a, p, err := b.decider.Begin(context.Background(), named(cost, budgets...))
			if err != nil || p != nil {
				t.Errorf("%+v %v", p, err)
				return
			}
			if a.Outcome == Allowed {
				used.Add(int64(cost))
				decided.Add(1)
			}
		}
	}
	for i := range 4 {
		wg.Go(func() { decide(each, lease.Tokens(1+i%2), "a/x1") })
	}
	wg.Go(func() { decide(together, 1, "a/x1", "a/y1") })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	flushWhile(b.decider, x, done)
	b.decider.Flush(context.Background(), true)
	v := b.view("a/x1")
	told := v.Row.Leases[lease.Lump-1].Used
	if want := lease.Tokens(used.Load()); told != want || b.live("a/x1") != granted-want {
		t.Errorf("%d admitted, the wallet says %d used and %d left of %d", want, told, b.live("a/x1"), granted)
	}
	if v.Row.DemandTotal+x.offered != 6*each+together {
		t.Errorf("%d of %d counted as demand", v.Row.DemandTotal+x.offered, 6*each+together)
	}
	memory, all := b.stats.Decisions[Allowed][FromPrefetch].Load(), decisions(b.stats)
	if memory < each || all != decided.Load() {
		t.Errorf("%d decisions were counted of %d, %d of them from memory", all, decided.Load(), memory)
	}
}

func decisions(s *Stats) (n int64) {
	for o := range s.Decisions {
		for m := range s.Decisions[o] {
			n += s.Decisions[o][m].Load()
		}
	}
	return n
}

// flushWhile settles, now and then whole, and keeps the prefetch going.
func flushWhile(d *Decider, e *entry, done <-chan struct{}) {
	for i := 0; ; i++ {
		select {
		case <-done:
			return
		default:
		}
		d.Flush(context.Background(), i%3 == 0)
		e.lock()
		e.rate = 20_000
		e.unlock()
	}
}

// A decision of several tokens that finds none after all, while what others used
// is taken in, leaves their count as it is. Seen to catch: a surplus that waits
// for demand.
func TestAHotDecisionThatFindsNoTokenIsNotCounted(t *testing.T) {
	b := newBench(t, lumps("a/x1"))
	e := remembering(b.decider.entry("a/x1"))
	q := newPart(10, time.Hour)
	e.pocket.parts = append(e.pocket.parts, q)
	q.take(1)        // a decision of one token
	e.surplus.Add(1) // one of two tokens begins
	e.harvest()
	e.surplus.Add(-1) // and finds too few
	e.harvest()
	if e.served != 1 || e.offered != 1 {
		t.Errorf("%d decisions and a demand of %d, want one of each", e.served, e.offered)
	}
}

// Nor is one of very many tokens while it has not taken them. Seen to catch: a
// surplus cut to 32 bits.
func TestAHotDecisionOfVeryManyTokensIsCountedOnce(t *testing.T) {
	const cost = 3 << 30
	b := newBench(t, lumps("a/x1"))
	e := remembering(b.decider.entry("a/x1"))
	q := newPart(cost, time.Hour)
	e.pocket.parts = append(e.pocket.parts, q)
	e.surplus.Add(cost - 1)
	b.decider.refresh(e, b.now)
	q.take(cost)
	b.decider.refresh(e, b.now)
	if n := b.stats.Decisions[Allowed][FromPrefetch].Load(); n != 1 || e.surplus.Load() != 0 {
		t.Errorf("%d decisions counted, and a surplus of %d", n, e.surplus.Load())
	}
}
