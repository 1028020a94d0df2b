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
// a small part of the contract, a tiny one where it is held for longer. Seen to
// catch: tokens given back as idle between two decisions, or held for 2 s only;
// demand and use told for each one, or in steps of their own; a tiny part held no
// longer than a small one.
func TestSlowBudgetsShareStoreSteps(t *testing.T) {
	for _, c := range []struct {
		name      string
		limit     lease.Tokens
		decisions lease.Tokens
		flushes   int // after each decision
		steps     int
	}{
		{"five a second", 1000, 200, 4, 35},
		{"one a second", 1000, 40, 20, 9},
		{"one a second of a large limit", 100_000, 50, 20, 8},
	} {
		t.Run(c.name, func(t *testing.T) { slowBudget(t, c.limit, c.decisions, c.flushes, c.steps) })
	}
}

// slowBudget decides on a budget so often, with so many flushes after each, and
// wants no more store steps than so many.
func slowBudget(t *testing.T, limit, decisions lease.Tokens, flushes, most int) {
	budget := lumps("a/1")
	budget.Contract.Burst = limit
	b := newBench(t, budget)
	b.grant("a/1", limit, lease.State{})
	steps := 0
	b.store.loseReply = func(regionstore.TakeRequest) bool { steps++; return false }
	counted := &settling{Store: b.decider.opt.Store}
	b.decider.opt.Store = counted
	for range decisions {
		if a := b.decide(named(1, "a/1")); a.Outcome != Allowed {
			t.Fatalf("%+v", a)
		}
		for range flushes {
			b.now += 50 * time.Millisecond
			b.decider.Flush(context.Background(), false)
		}
		if n := b.decider.Prefetched("a/1", b.now); n > limit/smallPart {
			t.Fatalf("the process holds %d of a contract of %d", n, limit)
		}
	}
	if steps += counted.all; steps > most {
		t.Errorf("%d steps for %d decisions", steps, decisions)
	}
	b.now += time.Minute
	b.decider.Flush(context.Background(), true)
	if v := b.view("a/1"); v.Row.DemandTotal != decisions {
		t.Errorf("demand of %d was told, want %d", v.Row.DemandTotal, decisions)
	}
}

// What is tiny to a limit is held for twice as long as what is small, where the
// wallet lasts, and nothing of few tokens or hardly any demand. Seen to fail with
// the time that the wallet lasts left out.
func TestWhatIsWorthHolding(t *testing.T) {
	for _, c := range []struct {
		limit lease.Tokens
		rate  float64
		lasts time.Duration
		want  lease.Tokens
		span  time.Duration
	}{
		{100_000, 1, time.Minute, 12, tinyFor},
		{100_000, 1, tinyFor - 1, 6, smallFor},
		{100_000, 20, time.Minute, 125, tinyFor}, // all that is tiny, beside 120 for half as long
		{100_000, 1000, time.Minute, 500, smallFor},
		{1000, 1, time.Minute, 5, smallFor},
		{1600, 0.2, time.Minute, 2, tinyFor},
		{100_000, 0.1, time.Minute, 0, 0},
		{300, 100, time.Minute, 0, 0},
	} {
		budget := lumps("a/1")
		budget.Contract.Burst = c.limit
		maker := termsMaker{}
		if n, span := worthHolding(maker.terms(&budget), c.rate, c.lasts); n != c.want || span != c.span {
			t.Errorf("%+v: %d for %v", c, n, span)
		}
	}
}
