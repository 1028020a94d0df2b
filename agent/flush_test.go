package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// What a decision leaves behind while a flush finds nothing to do is flushed all
// the same, a little later. Seen to catch: resting budgets that are never looked at.
func TestAFlushMissesNothingForLong(t *testing.T) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 1000, lease.State{})
	ctx, e := context.Background(), b.decider.entry("acme/x")
	b.decider.touch(e, b.now)
	b.decider.Flush(ctx, false) // as the decision begins
	remembering(e).offered = 50
	told := func() lease.Tokens { return b.view("acme/x").Row.DemandTotal }
	b.now += flushEvery
	if b.decider.Flush(ctx, false); told() != 0 {
		t.Fatal("a flush looked at a budget that rests")
	}
	for range restFor / flushEvery {
		b.now += flushEvery
		b.decider.Flush(ctx, false)
	}
	if told() != 50 {
		t.Errorf("told of a demand of %d", told())
	}
}

// slow makes an entry one whose use is a small change: of 1,000 tokens 5.
func slow(b *bench, e *entry, rate float64, held lease.Tokens, until time.Duration) {
	u := remembering(e)
	u.rate, u.rateAt, u.told = rate, b.now, b.now
	q := newPart(held, until)
	q.kind = lease.Lump
	u.pocket.parts, u.pocket.touched = []*part{q}, b.now
	b.decider.touch(e, b.now)
}

// A budget whose use is a small change rests between looks, and what it holds is
// given back in time all the same; one that is busier, or holds more, is looked at
// each time, as is one that a decision woke up. Seen to fail with each part of
// restful taken away, and without waking up.
func TestSlowBudgetsRest(t *testing.T) {
	const deadline = 5200 * time.Millisecond // before it would lie idle for too long
	for _, c := range []struct {
		name  string
		rate  float64
		held  lease.Tokens
		rests bool
	}{
		{"slow", 2, 5, true},
		{"busy", 20, 5, false},
		{"holds much", 2, 6, false},
	} {
		b := newBench(t, lumps("acme/x"))
		b.grant("acme/x", 1000, lease.State{})
		ctx, e := context.Background(), b.decider.entry("acme/x")
		slow(b, e, c.rate, c.held, b.now+deadline)
		b.decider.Flush(ctx, false)
		if e.rests.Load() != c.rests {
			t.Errorf("%s: rests: %v", c.name, !c.rests)
		}
	}

	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 1000, lease.State{})
	ctx, e, end := context.Background(), b.decider.entry("acme/x"), b.now+deadline
	slow(b, e, 2, 5, end)
	looks := 0
	for b.now < end {
		before := e.rateAt
		b.decider.Flush(ctx, false)
		if e.usage != nil && e.rateAt != before {
			looks++
		}
		if held := e.usage != nil && len(e.pocket.parts) > 0; !held && looks > 0 {
			break
		}
		b.now += flushEvery
	}
	if left := end - b.now; left < endBefore {
		t.Errorf("what it holds ended %v before its deadline", left)
	}
	if most := int(deadline/restFor) + 2; looks > most {
		t.Errorf("%d looks", looks)
	}

	slow(b, e, 2, 5, b.now+deadline)
	b.decider.Flush(ctx, false)
	b.decider.touch(e, b.now)
	if list := b.decider.toFlush(b.now+1, false); len(list) != 1 || list[0] != e {
		t.Errorf("%d to be flushed after a decision", len(list))
	}
}

// settling is a store that notes how many settlements came at a time, and panics
// if it is told to.
type settling struct {
	regionstore.Store
	most, all int
	fails     bool
}

func (s *settling) Settle(ctx context.Context, list []regionstore.Settle) ([]regionstore.Outcome, error) {
	if s.fails {
		panic("on purpose")
	}
	s.most, s.all = max(s.most, len(list)), s.all+len(list)
	return s.Store.Settle(ctx, list)
}

// holding is a bench with n budgets of 1,000 tokens that each hold one until then.
func holding(t *testing.T, n int, until time.Duration) (*bench, *settling) {
	budgets := make([]policy.Budget, n)
	for i := range budgets {
		budgets[i] = lumps(fmt.Sprintf("acme/%d", i))
	}
	b := newBench(t, budgets...)
	for i := range budgets {
		b.grant(budgets[i].Name, 1000, lease.State{})
		slow(b, b.decider.entry(budgets[i].Name), 2, 1, b.now+until)
	}
	store := &settling{Store: b.decider.opt.Store}
	b.decider.opt.Store = store
	return b, store
}

// Very many settlements go in parts, each within the time of a store call: those
// that time does not suffice for are lost. Seen to fail with all in one.
func TestManySettlementsGoInParts(t *testing.T) {
	const n, few = 100, 32
	b, store := holding(t, n, time.Second)
	b.decider.Flush(context.Background(), true)
	if store.all != n || store.most > few {
		t.Errorf("%d settled, up to %d at a time", store.all, store.most)
	}
}

// Budgets whose first decisions came at once are looked at in turn. Seen to fail
// with one time for all of them, and after a flush that came late.
func TestLooksAtRestingBudgetsAreSpread(t *testing.T) {
	const n = 200
	b, _ := holding(t, n, time.Minute)
	b.decider.Flush(context.Background(), false)
	looked := 0
	b.now += 3 * restFor // a flush that was held up
	for i := range int(restFor/flushEvery) + 1 {
		b.now += flushEvery
		list := b.decider.toFlush(b.now, false)
		for _, e := range list {
			e.rests.Store(true)
		}
		if i == 0 {
			continue // all that was late
		}
		if looked += len(list); len(list) > 2*n*int(flushEvery)/int(restFor) {
			t.Errorf("%d in one flush", len(list))
		}
	}
	if looked != n {
		t.Errorf("%d looked at of %d in half a second", looked, n)
	}
}

// What a flush that panics had in hand is flushed again. Seen to fail without its
// being kept awake.
func TestAPanicCostsOneFlush(t *testing.T) {
	b, store := holding(t, 3, time.Second)
	store.fails = true
	func() {
		defer func() { _ = recover() }()
		b.now += time.Second - endBefore
		b.decider.Flush(context.Background(), false)
		t.Error("nothing was settled")
	}()
	store.fails = false
	if list := b.decider.toFlush(b.now, false); len(list) != 3 {
		t.Errorf("%d of 3 are flushed again", len(list))
	}
}
