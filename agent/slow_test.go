package agent

import (
	"context"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// One of very many budgets, asked a few times a second or less, costs far fewer
// store steps than decisions, and what the process holds and does not tell stays
// a small part of the contract. Seen to catch: tokens given back as idle between
// two decisions, or held for 2 s only; demand and use told for each one.
func TestSlowBudgetsShareStoreSteps(t *testing.T) {
	t.Run("five a second", func(t *testing.T) { slowBudget(t, 200, 4) })
	t.Run("one a second", func(t *testing.T) { slowBudget(t, 40, 20) })
}

// slowBudget decides on a budget so often, with so many flushes after each.
func slowBudget(t *testing.T, decisions lease.Tokens, flushes int) {
	b := newBench(t, lumps("a/1"))
	b.grant("a/1", 1000, lease.State{})
	steps := 0
	b.store.loseReply = func(regionstore.TakeRequest) bool { steps++; return false }
	for range decisions {
		if a := b.decide(named(1, "a/1")); a.Outcome != Allowed {
			t.Fatalf("%+v", a)
		}
		for range flushes {
			b.now += 50 * time.Millisecond
			before := b.stats.GivenBack.Load()
			b.decider.Flush(context.Background(), false)
			if b.stats.GivenBack.Load() != before {
				steps++
			}
		}
		if n := b.decider.Prefetched("a/1", b.now); n > 1000/smallPart {
			t.Fatalf("the process holds %d of a contract of 1000", n)
		}
	}
	if steps > int(decisions)/2 {
		t.Errorf("%d steps for %d decisions", steps, decisions)
	}
	b.now += time.Minute
	b.decider.Flush(context.Background(), true)
	if v := b.view("a/1"); v.Row.DemandTotal != decisions {
		t.Errorf("demand of %d was told, want %d", v.Row.DemandTotal, decisions)
	}
}
