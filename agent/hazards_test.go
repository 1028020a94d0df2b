package agent

import (
	"context"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The hazards that the region's process itself must withstand. Each runs here
// as it should be, and, built with the tag mutants, with its rule broken.

// slowReply: a take's reply comes late; what it brought is not spent once the
// store has stopped counting it (invariant 10). The fault it sees: a process
// deadline that counts from the reply.
func slowReply(t rapid.TB) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 1000, lease.State{})
	e := remembering(b.decider.entry("acme/x"))
	e.rate, e.last.Live = 2000, 1000
	b.store.after = func() { b.now += 1500 * time.Millisecond }
	b.decide(named(1, "acme/x"))
	for range 40 {
		b.now += 50 * time.Millisecond
		l := b.view("acme/x").Row.Leases[lease.Lump-1]
		if held := e.pocket.live(b.now); held > l.Cur.Tokens+l.Prev.Tokens {
			t.Fatalf("invariant 10: the process can spend %d, the wallet counts %d", held, l.Cur.Tokens+l.Prev.Tokens)
		}
	}
}

// unknownSettlement: giving back happens, but nobody hears so; it is not said
// again, or another process's tokens would be given back (window, lifetime).
func unknownSettlement(t rapid.TB) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 1000, lease.State{})
	other := b.process()
	other.setBudgets([]*terms{b.decider.entry("acme/x").policy.Load()})
	first := b.decider
	for _, d := range []*Decider{first, other} {
		e := remembering(d.entry("acme/x"))
		e.rate, e.last.Live = 2000, 1000
		b.decider = d
		b.decide(named(1, "acme/x"))
	}
	b.store.unknown = true
	first.Flush(context.Background(), true)
	b.store.unknown = false
	all := b.live("acme/x") + remembering(first.entry("acme/x")).pocket.live(b.now) + remembering(other.entry("acme/x")).pocket.live(b.now)
	if all > 998 {
		t.Fatalf("%d can be spent of 1000 of which 2 were", all)
	}
}

// steppedClock: the store's clock steps forward again and again; a share mints
// for the time that passed and no more.
func steppedClock(t rapid.TB) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 0, lease.State{X: perSecond(100), Beta: 1000})
	var admitted lease.Tokens
	const rounds = 40
	for range rounds {
		for b.decide(Check{Budgets: []string{"acme/x"}, Cost: 1, Deadline: time.Nanosecond}).Outcome == Allowed {
			admitted++
		}
		b.now += denialMemory
		b.skew += 40 * time.Millisecond
	}
	if fair := lease.Tokens(rounds*10*1001/1000 + 1); admitted > fair {
		t.Fatalf("%d admitted where time minted %d", admitted, fair)
	}
	if admitted < rounds*10*4/10 { // what a step leaves unminted is lost
		t.Fatalf("only %d admitted", admitted)
	}
}

func TestSlowReplyShortensNothingElse(t *testing.T) { slowReply(t) }

func TestUnknownSettlementIsNotRepeated(t *testing.T) { unknownSettlement(t) }

func TestSteppedStoreClockMintsNothing(t *testing.T) { steppedClock(t) }

// returning: a region returns tokens while its messages are lost, repeated
// and late (invariant 10).
func returning(t rapid.TB) {
	w := newWorld(t, 11)
	b := bucket("acme/x", 200, 400, policy.Dynamic, "us", "eu")
	b.TTL = 2 * time.Second
	w.apply(b)
	w.faults = faults{loseReply: 0.3, duplicate: 0.3, jitter: 200 * time.Millisecond, cut: map[string]bool{}}
	us, eu := w.agent(w.region("us", 20*time.Millisecond)), w.agent(w.region("eu", 150*time.Millisecond))
	for i := range 6 {
		n := []*node{us, eu}[i%2]
		n.load("acme/x", 250, w.now+1200*time.Millisecond)
		w.run(1500 * time.Millisecond)
	}
	w.run(20 * time.Second)
	w.audit()
}

// lateReplies: two agents of one region race over a slow network that loses
// and repeats, with a short ttl, and their store restarts (invariant 10).
func lateReplies(t rapid.TB) {
	for seed := range uint64(12) {
		w := newWorld(t, 20+seed)
		b := bucket("acme/x", 100, 300, policy.Dynamic, "us", "eu")
		b.TTL = 2 * time.Second
		w.apply(b)
		w.faults = faults{loseRequest: 0.2, loseReply: 0.4, duplicate: 0.4, jitter: 1500 * time.Millisecond, cut: map[string]bool{}}
		us := w.region("us", 100*time.Millisecond)
		for range 2 {
			w.agent(us).load("acme/x", 60, 10*time.Second)
		}
		w.run(4 * time.Second)
		us.store.Restart()
		w.run(3 * time.Second)
		w.faults.cut["us"] = true
		w.run(4 * time.Second)
		w.audit()
	}
}

func TestReturningUnderFaults(t *testing.T) { returning(t) }

func TestLateRepliesUnderFaults(t *testing.T) { lateReplies(t) }
