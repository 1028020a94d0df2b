package agent

import (
	"testing"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Takes that are under way at once, each of which asks for all that a process may
// hold, do not add up: the rest is not spent, and goes back. Seen to catch: all of
// it kept.
func TestTakesUnderWayDoNotAddUp(t *testing.T) {
	b := newBench(t, lumps("a/1"))
	b.grant("a/1", 1000, lease.State{})
	e := remembering(b.decider.entry("a/1"))
	e.rate, e.last.Live = 20_000, 1000
	underWay := 0
	b.store.loseReply = func(regionstore.TakeRequest) bool {
		if underWay++; underWay < 4 {
			b.decide(named(1, "a/1"))
		}
		return false
	}
	b.decide(named(1, "a/1"))
	e.lock()
	live := e.pocket.live(b.now)
	e.unlock()
	if underWay != 4 || live != 1000/prefetchPart {
		t.Errorf("%d could be spent after %d takes", live, underWay)
	}
	b.decider.Flush(t.Context(), false)
	if n := b.decider.Prefetched("a/1", b.now); n != live || b.view("a/1").Live[lease.Lump-1] != 1000-4-n {
		t.Errorf("%d held, and %d in the wallet", n, b.view("a/1").Live[lease.Lump-1])
	}
}

// What a take brought whose answer came too late for its decision serves the
// next ones, until the time that counts from before it was sent; what it used is
// counted as lost. Seen to catch: answers dropped, and a time from the answer.
func TestALateTakeServesOthers(t *testing.T) {
	b := newBench(t, lumps("a/1"))
	b.grant("a/1", 1000, lease.State{})
	e := remembering(b.decider.entry("a/1"))
	e.rate, e.last.Live = 20_000, 1000
	b.store.loseReply = func(req regionstore.TakeRequest) bool {
		late, err := b.store.Store.Take(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		b.now += lease.ProcessDeadline / 2
		req.Late(late)
		return true
	}
	if a := b.decide(named(2, "a/1")); a.Outcome != Unavailable {
		t.Fatalf("%+v", a)
	}
	b.store.loseReply = nil
	if takes, tokens := b.stats.LateTakes.Load(), b.stats.LateTokens.Load(); takes != 1 || tokens != 2 {
		t.Errorf("%d late takes of %d tokens", takes, tokens)
	}
	if a := b.decide(named(1, "a/1")); a.Outcome != Allowed || a.Mode != FromPrefetch {
		t.Errorf("%+v", a)
	}
	b.now += lease.ProcessDeadline / 2
	if n := b.decider.Prefetched("a/1", b.now); n != 0 {
		t.Errorf("%d held past their deadline", n)
	}
}
