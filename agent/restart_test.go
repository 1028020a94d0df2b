package agent

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// An agent is killed between every two of begin, send, commit, reply,
// install, take, use, return and close, loses all it had in memory, and
// another takes over: invariants hold after every step (world.verify), the
// audit proves the books, nothing is granted twice, and the region goes on
// admitting.
//
// Seen to catch: granting a replayed sequence again (3), and reporting tokens
// before they are taken out of the wallet (10).
func TestKillAndRestartBetweenEveryTwoSteps(t *testing.T) {
	points := []struct {
		stage  string
		effect Effect
	}{
		{"before", OpenRow{}},
		{"after", OpenRow{}},
		{"before", BeginSync{}},
		{"after", BeginSync{}},
		{"before", SendSync{}},
		{"commit", SendSync{}},
		{"reply", SendSync{}},
		{"before", InstallStates{}},
		{"after", InstallStates{}},
		{"before", ReturnTokens{}},
		{"after", ReturnTokens{}},
		{"before", CloseLease{}},
		{"after", CloseLease{}},
	}
	for _, p := range points {
		for nth := 1; nth <= 2; nth++ {
			for _, strategy := range []policy.Strategy{policy.Static, policy.Dynamic} {
				name := fmt.Sprintf("%s/%s/%T/%d", strategy, p.stage, p.effect, nth)
				t.Run(name, func(t *testing.T) { killAndRestart(t, strategy, p.stage, p.effect, nth) })
			}
		}
	}
}

func killAndRestart(t *testing.T, strategy policy.Strategy, stage string, effect Effect, nth int) {
	w := newWorld(t, uint64(nth))
	b := bucket("acme/x", 1, 400, strategy, "us", "eu")
	b.Contract.Rate = lease.Rate{Tokens: 1, Per: 24 * time.Hour}
	b.TTL = 2 * time.Second
	w.apply(b)
	us := w.region("us", 20*time.Millisecond)
	w.agent(w.region("eu", 100*time.Millisecond)).load("acme/x", 20, 6*time.Second)
	first := w.agent(us)
	killed, once := false, nth == 1
	start := func(n *node) {
		n.load("acme/x", 60, w.now+3*time.Second)
		w.after(4*time.Second, func() {
			if !n.dead {
				n.stop() // so that closes happen
			}
		})
	}
	first.killAt = func(s string, f Effect) bool {
		if s != stage || reflect.TypeOf(f) != reflect.TypeOf(effect) {
			return false
		}
		if nth--; nth != 0 {
			return false
		}
		killed = true
		w.after(10*time.Millisecond, func() { start(w.agent(us)) })
		return true
	}
	start(first)
	w.run(12 * time.Second)
	w.audit()
	if got := w.total("acme/x"); got > 400 || got < 60 {
		t.Errorf("admitted %d of 400", got)
	}
	if !killed && strategy == policy.Dynamic && once {
		t.Error("the run has no such step")
	}
}

// A process that dies with prefetched tokens costs those tokens and nothing
// else: they are aged out of the wallet as used.
func TestKillWithPrefetchInMemory(t *testing.T) {
	w := newWorld(t, 9)
	b := bucket("acme/x", 1, 4000, policy.Dynamic, "us")
	b.Contract.Rate = lease.Rate{Tokens: 1, Per: 24 * time.Hour}
	w.apply(b)
	us := w.region("us", 20*time.Millisecond)
	n := w.agent(us)
	n.load("acme/x", 1000, 3*time.Second)
	var lost lease.Tokens
	w.after(1500*time.Millisecond, func() { w.killWithTokens(n, &lost) })
	w.run(3 * time.Second)
	w.agent(us).load("acme/x", 2000, 8*time.Second)
	w.run(12 * time.Second)
	if lost == 0 {
		t.Fatal("the process never held a token")
	}
	if got := w.total("acme/x"); got > 4000-lost || got < 3990-lost {
		t.Errorf("admitted %d of 4000, with %d lost", got, lost)
	}
	w.audit()
}

// killWithTokens kills n as soon as it holds some.
func (w *world) killWithTokens(n *node, lost *lease.Tokens) {
	live := remembering(n.decider.entry("acme/x")).pocket.live(w.now + time.Hour)
	if live == 0 {
		w.after(time.Millisecond, func() { w.killWithTokens(n, lost) })
		return
	}
	*lost = live
	n.kill()
}
