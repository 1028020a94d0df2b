package agent

import (
	"context"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// A request with an id is charged in all its budgets once, in one slot or
// several, however often it is repeated and whatever became of the earlier
// tries (invariants 5 and 8). Seen to catch: keeping under the id that the first
// slot held the tokens, which were given back when the second had none, so that
// the repetition was free there; giving them back after an outcome that nobody
// heard.
func TestARepetitionIsChargedInEverySlot(t *testing.T) {
	for name, c := range map[string]struct {
		second lease.Tokens
		fail   func(*bench)
		x, y   lease.Tokens // what is left of 100 once the repetition was allowed
	}{
		"the second slot is short": {0, func(*bench) {}, 90, 90},
		// Nobody knows whether the second slot took: the first one's is not given back.
		"the second slot does not answer": {100, func(b *bench) {
			b.store.loseRequest = func(r regionstore.TakeRequest) bool { return r.Takes[0].Budget == "b/y2" && r.Takes[0].Cost > 0 }
		}, 80, 90},
		"the second slot's answer is lost": {100, func(b *bench) {
			b.store.loseReply = func(r regionstore.TakeRequest) bool { return r.Takes[0].Budget == "b/y2" && r.Takes[0].Cost > 0 }
		}, 90, 90},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, lumps("a/x1"), lumps("b/y2"))
			b.grant("a/x1", 100, lease.State{})
			b.grant("b/y2", c.second, lease.State{})
			c.fail(b)
			check := Check{Budgets: []string{"a/x1", "b/y2"}, Cost: 10, RequestID: "r-1", Deadline: time.Millisecond}
			if a := b.decide(check); a.Outcome != Unavailable {
				t.Fatalf("the first try: %+v", a)
			}
			b.store.loseRequest, b.store.loseReply = nil, nil
			b.now += time.Second
			b.decider.Flush(context.Background(), true)
			if c.second == 0 {
				b.grant("b/y2", 100, lease.State{})
			}
			for range 2 {
				if a := b.decide(check); a.Outcome != Allowed {
					t.Fatalf("%+v", a)
				}
				check.Budgets = []string{"b/y2", "a/x1"} // the order says nothing
			}
			b.decider.Flush(context.Background(), true)
			if x, y := b.live("a/x1"), b.live("b/y2"); x != c.x || y != c.y {
				t.Errorf("%d and %d left of 100 each, want %d and %d", x, y, c.x, c.y)
			}
		})
	}
}

// A refusal is decided anew when it is repeated under its id: the tokens may
// have come. Seen to catch: keeping refusals.
func TestARefusalIsNotKept(t *testing.T) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 0, lease.State{X: perSecond(1), Beta: 10})
	c := Check{Budgets: []string{"acme/x"}, Cost: 1, RequestID: "r"}
	a := b.decide(c)
	if a.Outcome != Denied || a.RetryAfter != time.Second {
		t.Fatalf("%+v", a)
	}
	b.now += a.RetryAfter
	if a = b.decide(c); a.Outcome != Allowed {
		t.Errorf("at the instant at which it should pass: %+v", a)
	}
}

// What the local allowance admitted is not admitted again under the same id.
// Seen to catch: keeping only what leases admitted.
func TestALocalAdmissionIsKept(t *testing.T) {
	b := newBench(t, local("acme/x", 10, 10))
	b.grant("acme/x", 0, lease.State{})
	c := Check{Budgets: []string{"acme/x"}, Cost: 2, RequestID: "r", Deadline: time.Millisecond}
	b.decide(c)
	b.now += time.Second
	for i := range 3 {
		if a := b.decide(c); a.Outcome != Allowed || (a.Mode == FromLocal) != (i == 0) {
			t.Errorf("%+v", a)
		}
	}
	if n := b.view("acme/x").Row.Local.Total; n != 2 {
		t.Errorf("%d counted as admitted locally", n)
	}
}
