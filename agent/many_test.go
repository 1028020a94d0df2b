package agent

import (
	"context"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// manyWorld is one region with the whole of a static budget, at rest.
func manyWorld(t *testing.T, failure policy.Failure) (*world, *node) {
	w := newWorld(t, 7)
	w.apply(policy.Budget{
		Name: "t/a", Strategy: policy.Static, Regions: []policy.Region{{Name: "us"}}, OnFailure: failure,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 100, Per: time.Second}, Burst: 1000},
	})
	n := w.agent(w.region("us", 20*time.Millisecond))
	w.run(15 * time.Second)
	return w, n
}

func (w *world) demandTotal(t *testing.T, n *node) lease.Tokens {
	t.Helper()
	w.run(time.Second) // demand that no take carried is told
	return n.site.store.Peek("t/a").Row.DemandTotal
}

// Many admits what as many single checks would, and counts the same demand.
// Seen to fail when Many counts the demand of n instead of n-1, and when
// storeMany takes one less than it counts.
func TestManyIsLikeManyChecks(t *testing.T) {
	for _, c := range []struct {
		n    int64
		cost lease.Tokens
	}{{1, 1}, {7, 1}, {400, 1}, {3000, 1}, {5, 150}, {30, 150}} {
		w, n := manyWorld(t, policy.Failure{})
		check := Check{Budgets: []string{"t/a"}, Cost: c.cost}
		admitted, last, pending, err := n.decider.Many(context.Background(), check, c.n)
		if err != nil || pending != nil {
			t.Fatalf("%d of %d: %v, waiting %v", c.n, c.cost, err, pending != nil)
		}
		w.verify()
		want := min(c.n, int64(1000/c.cost))
		if admitted != want {
			t.Errorf("%d of %d: %d admitted, want %d", c.n, c.cost, admitted, want)
		}
		if denied := last.Outcome == Denied; denied != (admitted < c.n) {
			t.Errorf("%d of %d: the last answer is %v", c.n, c.cost, last.Outcome)
		}
		if got, want := w.demandTotal(t, n), lease.Tokens(c.n)*c.cost; got != want {
			t.Errorf("%d of %d: demand %d, want %d", c.n, c.cost, got, want)
		}
	}
}

// steps counts the store calls of a process.
type steps struct {
	noObserver
	n int
}

func (s *steps) StoreCalled(time.Duration, string, error) { s.n++ }

// Many takes all that it needs of a wallet that has it in one step, once it has
// seen the wallet. Seen to fail when one check is decided by itself first.
func TestManyTakesAllInOneStep(t *testing.T) {
	_, n := manyWorld(t, policy.Failure{})
	many := func(want int64) {
		admitted, _, _, err := n.decider.Many(context.Background(), Check{Budgets: []string{"t/a"}, Cost: 1}, want)
		if err != nil || admitted != want {
			t.Fatalf("%d of %d admitted, %v", admitted, want, err)
		}
	}
	many(2)
	count := &steps{}
	n.decider.opt.Observer = count
	many(500)
	if count.n != 1 {
		t.Errorf("%d steps", count.n)
	}
}

// Those that wait are resumed together.
func TestManyWaitForTheFirstLease(t *testing.T) {
	w := newWorld(t, 8)
	w.apply(policy.Budget{
		Name: "t/a", Contract: policy.Contract{Rate: lease.Rate{Tokens: 100, Per: time.Second}, Burst: 1000},
	})
	n := w.agent(w.region("us", 20*time.Millisecond))
	w.run(3 * time.Second)
	check := Check{Budgets: []string{"t/a"}, Cost: 1}
	admitted, _, pending, err := n.decider.Many(context.Background(), check, 20)
	if err != nil || admitted != 0 || pending == nil {
		t.Fatalf("%d admitted, waiting %v, %v", admitted, pending != nil, err)
	}
	for _, u := range n.urgent {
		n.step(u)
	}
	n.urgent = nil
	for pending != nil && err == nil {
		w.run(time.Millisecond)
		select {
		case <-pending.Arrived:
		default:
			if w.now+time.Hour < pending.At {
				continue
			}
		}
		var more int64
		more, _, pending, err = n.decider.ResumeMany(context.Background(), pending, 20-admitted)
		admitted += more
	}
	if err != nil || admitted != 20 {
		t.Errorf("%d of 20 admitted, %v", admitted, err)
	}
	// The first take told its demand to a row that was not there.
	if got := w.demandTotal(t, n); got != 19 {
		t.Errorf("demand %d", got)
	}
}

// A process says what it could still spend from its memory.
func TestPrefetchedIsWhatThePocketHolds(t *testing.T) {
	_, n := manyWorld(t, policy.Failure{})
	e := n.decider.entry("t/a")
	e.lock()
	e.pocket.parts = []*part{newPart(3, 10), newPart(7, 5)}
	e.pocket.parts[0].held = 2
	e.unlock()
	if got := n.decider.Prefetched("t/a", 6); got != 5 {
		t.Errorf("%d, want 5", got)
	}
	if got := n.decider.Prefetched("t/unknown", 6); got != 0 {
		t.Errorf("%d of an unknown budget", got)
	}
}
