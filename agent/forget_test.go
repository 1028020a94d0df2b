package agent

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

// A budget that no decision used for long costs its policy: what the process
// remembered of it goes away, but not what it has to tell, or was told.
func TestUnusedBudgetsAreForgotten(t *testing.T) {
	b := newBench(t, lumps("acme/x"), lumps("acme/told"), lumps("acme/local"))
	for _, name := range []string{"acme/x", "acme/told", "acme/local"} {
		b.grant(name, 1000, lease.State{})
		b.decide(named(1, name))
	}
	b.decider.Tell("acme/told", Hint{Low: 7}, false)
	b.decider.entry("acme/local").allowance().total = 3
	b.now += forgetAfter - time.Second
	b.decider.Flush(context.Background(), false)
	if b.decider.entry("acme/x").usage == nil {
		t.Error("forgotten while it counts as used")
	}
	b.now += time.Second
	b.decider.Flush(context.Background(), false)
	for name, kept := range map[string]bool{"acme/x": false, "acme/told": true, "acme/local": true} {
		if (b.decider.entry(name).usage != nil) != kept {
			t.Errorf("%s: kept is not %v", name, kept)
		}
	}
	b.decider.Tell("acme/told", Hint{}, false)
	if b.decider.entry("acme/told").usage != nil {
		t.Error("remembered with nothing to remember")
	}
	if _, ok := b.decider.State("acme/x"); !ok || b.decider.entry("acme/x").usage != nil {
		t.Error("looking at a budget made it used")
	}
	if a := b.decide(named(1, "acme/x")); a.Outcome != Allowed || a.Remaining != 998 {
		t.Errorf("after that: %v, %d left", a.Outcome, a.Remaining)
	}
}

// Decisions race with the forgetting of what they use, and no token is spent
// twice or lost.
func TestForgettingWhileCrowdsDecide(t *testing.T) {
	const granted, each = 100_000, 3_000
	b := newBench(t, lumps("a/x1"))
	b.grant("a/x1", granted, lease.State{})
	b.decider.opt.Now = func() time.Duration { return time.Hour }
	e := b.decider.entry("a/x1")
	done := make(chan struct{})
	var deciding sync.WaitGroup
	for range 4 {
		deciding.Go(func() {
			for range each {
				if a, p, err := b.decider.Begin(context.Background(), named(1, "a/x1")); err != nil || p != nil || a.Outcome != Allowed {
					t.Errorf("%v %v %v", a, p, err)
				}
			}
		})
	}
	go func() { deciding.Wait(); close(done) }()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		b.decider.Flush(context.Background(), true)
		e.lastUsed.Store(int64(time.Hour - forgetAfter)) // as if unused for long, even by decisions under way
		b.decider.forgetUnused(b.decider.usedEntries(), time.Hour)
		e.lock()
		e.rate = 20_000
		e.unlock()
	}
	b.decider.touch(e, time.Hour)
	b.decider.Flush(context.Background(), true)
	e.lock()
	demand := b.view("a/x1").Row.DemandTotal + e.offered
	e.unlock()
	if all := decisions(b.stats); demand != 4*each || all != 4*each {
		t.Errorf("%d demanded and %d decisions counted of %d", demand, all, 4*each)
	}
	if used := b.view("a/x1").Row.Leases[lease.Lump-1].Used; used != 4*each || b.live("a/x1") != granted-4*each {
		t.Errorf("%d used and %d left after %d of %d", used, b.live("a/x1"), 4*each, granted)
	}
}
