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
// and every decision is counted as demand.
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
	x := b.decider.entry("a/x1")
	x.rate = 20_000
	var hot, both atomic.Int64
	var wg sync.WaitGroup
	decide := func(n int, admitted *atomic.Int64, budgets ...string) {
		for range n {
			a, p, err := b.decider.Begin(context.Background(), named(1, budgets...))
			if err != nil || p != nil {
				t.Errorf("%+v %v", p, err)
				return
			}
			if a.Outcome == Allowed {
				admitted.Add(1)
			}
		}
	}
	for range 4 {
		wg.Go(func() { decide(each, &hot, "a/x1") })
	}
	wg.Go(func() { decide(together, &both, "a/x1", "a/y1") })
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	flushWhile(b.decider, x, done)
	b.decider.Flush(context.Background(), true)
	v := b.view("a/x1")
	used := v.Row.Leases[lease.Lump-1].Used
	if want := lease.Tokens(hot.Load() + both.Load()); used != want || b.live("a/x1") != granted-want {
		t.Errorf("%d admitted, the wallet says %d used and %d left of %d", want, used, b.live("a/x1"), granted)
	}
	if v.Row.DemandTotal+x.offered != 4*each+together {
		t.Errorf("%d of %d counted as demand", v.Row.DemandTotal+x.offered, 4*each+together)
	}
	if n := b.stats.Decisions[Allowed][FromPrefetch].Load(); n < each {
		t.Errorf("only %d decisions came from memory", n)
	}
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
		e.mu.Lock()
		e.rate = 20_000
		e.mu.Unlock()
	}
}
