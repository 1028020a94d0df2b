package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Budgets of one check that cost differently are charged what each costs, all
// or none: from memory, from one slot, from several, and of what may be
// admitted locally. Seen to catch: the largest cost taken from each, a denial of
// one cost remembered for the other.
func TestEachBudgetIsChargedItsOwnCost(t *testing.T) {
	for name, budgets := range map[string][]string{"one slot": {"a/1", "b/1"}, "two slots": {"a/1", "b/2"}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lumps(budgets[0]), lumps(budgets[1]))
			b.grant(budgets[0], 100, lease.State{})
			b.grant(budgets[1], 100, lease.State{})
			check := Check{Budgets: budgets, Costs: []lease.Tokens{30, 7}, Cost: 30, Deadline: time.Millisecond}
			for i := range 3 {
				if a := b.decide(check); a.Outcome != Allowed {
					t.Fatalf("check %d: %+v", i, a)
				}
			}
			if a := b.decide(check); a.Outcome == Allowed || a.Budget != budgets[0] {
				t.Errorf("with 10 left of 30: %+v", a)
			}
			b.decider.Flush(context.Background(), true)
			if x, y := b.live(budgets[0]), b.live(budgets[1]); x != 10 || y != 79 {
				t.Errorf("%d and %d left of 100 each, want 10 and 79", x, y)
			}
			if a := b.decide(named(7, budgets[1])); a.Outcome != Allowed {
				t.Errorf("the budget that had its cost: %+v", a)
			}
		})
	}
}

func TestEachPocketIsChargedItsOwnCost(t *testing.T) {
	b := newBench(t, lumps("a/1"), lumps("b/1"))
	for _, name := range []string{"a/1", "b/1"} {
		remembering(b.decider.entry(name)).pocket.parts = []*part{newPart(100, 1<<62)}
	}
	a := b.decide(Check{Budgets: []string{"b/1", "a/1"}, Costs: []lease.Tokens{1, 40}, Cost: 40})
	x, y := b.decider.Prefetched("a/1", b.now), b.decider.Prefetched("b/1", b.now)
	if a.Outcome != Allowed || a.Mode != FromPrefetch || a.Budget != "a/1" || x != 60 || y != 99 {
		t.Errorf("%+v with %d and %d left, want 60 and 99", a, x, y)
	}
}

func TestLocalAllowanceIsChargedItsOwnCost(t *testing.T) {
	b := newBench(t, local("a/1", 1000, 100), local("b/1", 1, 2))
	for _, name := range []string{"a/1", "b/1"} {
		b.grant(name, 0, lease.State{})
		b.decide(Check{Budgets: []string{name}, Cost: 1, Deadline: time.Nanosecond}) // makes its bucket, which starts empty
	}
	b.now += 3 * time.Second
	check := Check{Budgets: []string{"a/1", "b/1"}, Costs: []lease.Tokens{5, 2}, Cost: 5, Deadline: time.Nanosecond}
	if a := b.decide(check); a.Outcome != Allowed || a.Mode != FromLocal {
		t.Fatalf("%+v", a)
	}
	if n := b.stats.LocalStore.Load(); n != 7 {
		t.Errorf("%d tokens were counted, want 7", n)
	}
	if a := b.decide(check); a.Outcome != Unavailable || b.decider.entry("a/1").local.credit != 5 {
		t.Errorf("%+v, credited %d, want the 5 that the other budget refused", a, b.decider.entry("a/1").local.credit)
	}
}

func TestCostsAreValidated(t *testing.T) {
	for name, c := range map[string]struct {
		field string
		check Check
	}{
		"one missing":       {"costs", Check{Budgets: []string{"a", "b"}, Costs: []lease.Tokens{1}, Cost: 1}},
		"with descriptors":  {"costs", Check{Descriptors: []Descriptor{{"k", "v"}}, Costs: []lease.Tokens{1}, Cost: 1}},
		"with a request id": {"costs", Check{Budgets: []string{"a"}, Costs: []lease.Tokens{1}, Cost: 1, RequestID: "r"}},
		"a peek":            {"costs[1]", Check{Budgets: []string{"a", "b"}, Costs: []lease.Tokens{1, 0}, Cost: 1}},
		"a name twice":      {"budgets[1]", Check{Budgets: []string{"a", "a"}, Costs: []lease.Tokens{1, 2}, Cost: 2}},
		"another cost":      {"cost", Check{Budgets: []string{"a", "b"}, Costs: []lease.Tokens{1, 2}, Cost: 1}},
	} {
		var e *lease.Error
		if err := c.check.Validate(); !errors.As(err, &e) || e.Code != lease.Invalid || e.Field != c.field {
			t.Errorf("%s: %v", name, err)
		}
	}
	good := Check{Budgets: []string{"a", "b"}, Costs: []lease.Tokens{1, 2}, Cost: 2}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
}
