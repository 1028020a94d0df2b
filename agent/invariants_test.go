package agent

import (
	"context"
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// drawBudget draws a bucket or quota of any strategy for regions a and b.
func drawBudget(t *rapid.T, name string) policy.Budget {
	strategy := rapid.SampledFrom([]policy.Strategy{policy.Static, policy.Independent, policy.Dynamic}).Draw(t, "strategy")
	rate := lease.Tokens(rapid.SampledFrom([]int{4, 20, 400}).Draw(t, "rate"))
	b := bucket(name, rate, rate*lease.Tokens(rapid.SampledFrom([]int{1, 4}).Draw(t, "seconds")), strategy, "a", "b")
	if rapid.IntRange(0, 4).Draw(t, "quota") == 0 {
		b.Contract = policy.Contract{Quota: policy.Quota{N: rate * 10, Per: policy.Hour, Zone: "UTC"}}
	}
	b.TTL = rapid.SampledFrom([]time.Duration{2 * time.Second, 5 * time.Second}).Draw(t, "ttl")
	if rapid.Bool().Draw(t, "local") {
		b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(2), Burst: 8}
	}
	if rapid.Bool().Draw(t, "wait for lost shares") {
		b.OnStoreLoss = policy.Wait
	}
	return b
}

// Invariants 2, 3, 5, 7 and 10 after every step of agents, stores and ledger,
// over a network that loses, repeats, delays and reorders, while agents are
// killed, stores restart and regions are cut off.
//
// Seen to catch: reporting tokens before they are taken out of the wallet
// (10), installing a reply of any incarnation (10), settling again after an
// unknown outcome (10), granting a replayed sequence again (3), regranting a
// share that has not ended (3), a shorter ttl that brings reclaim forward (4).
func TestInvariantsUnderFaults(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := newWorld(rt, rapid.Uint64().Draw(rt, "seed"))
		budget := drawBudget(rt, "acme/x")
		w.apply(budget)
		w.faults = faults{
			loseRequest: rapid.SampledFrom([]float64{0, 0.2}).Draw(rt, "lose request"),
			loseReply:   rapid.SampledFrom([]float64{0, 0.2}).Draw(rt, "lose reply"),
			duplicate:   rapid.SampledFrom([]float64{0, 0.3}).Draw(rt, "duplicate"),
			jitter:      rapid.SampledFrom([]time.Duration{0, 300 * time.Millisecond}).Draw(rt, "jitter"),
			cut:         map[string]bool{},
		}
		sites := []*site{w.region("a", 20*time.Millisecond), w.region("b", 120*time.Millisecond)}
		for _, s := range sites {
			for range 2 {
				w.agent(s).load("acme/x", rapid.SampledFrom([]float64{5, 80}).Draw(rt, "load"), time.Minute)
			}
		}
		for i := range rapid.IntRange(1, 6).Draw(rt, "incidents") {
			w.run(time.Duration(rapid.IntRange(100, 1500).Draw(rt, "pause")) * time.Millisecond)
			w.incident(rt, sites, i)
		}
		w.run(2 * time.Second)
		w.audit()
	})
}

func (w *world) incident(rt *rapid.T, sites []*site, i int) {
	s := rapid.SampledFrom(sites).Draw(rt, "site")
	switch rapid.SampledFrom([]string{"kill", "restart", "lose row", "cut", "mend", "snapshot", "policy"}).Draw(rt, "incident") {
	case "kill":
		for _, n := range w.agents {
			if n.site == s && !n.dead {
				n.kill()
				break
			}
		}
		w.agent(s).load("acme/x", 40, time.Minute)
	case "restart":
		s.store.Restart()
	case "lose row":
		s.store.LoseRow("acme/x")
	case "cut":
		w.faults.cut[s.name] = true
	case "mend":
		delete(w.faults.cut, s.name)
	case "snapshot":
		old := s.store.Snapshot()
		w.run(300 * time.Millisecond)
		s.store.Restore(old)
	case "policy":
		b := drawBudget(rt, "acme/x")
		b.OverAdmission = policy.OverAdmission{}
		if b.Contract.IsQuota() != w.state("acme/x").Budget.Contract.IsQuota() {
			return
		}
		w.apply(b)
	}
	_ = i
}

// Twenty callers race for a limit of 4 in each of two regions: never 5. Seen
// to catch: an install that adds instead of replacing.
func TestTwoRegionsAndALimitOfFour(t *testing.T) {
	for _, strategy := range []policy.Strategy{policy.Static, policy.Dynamic} {
		t.Run(string(strategy), func(t *testing.T) {
			w := newWorld(t, 7)
			b := bucket("acme/four", 1, 4, strategy, "us", "eu")
			b.Contract.Rate = lease.Rate{Tokens: 1, Per: 24 * time.Hour}
			w.apply(b)
			for _, name := range []string{"us", "eu"} {
				n := w.agent(w.region(name, 30*time.Millisecond))
				for i := range 20 {
					w.after(time.Second+time.Duration(i)*20*time.Millisecond, func() {
						n.decide(Check{Budgets: []string{"acme/four"}, Cost: 1}, nil)
					})
				}
			}
			w.run(3 * time.Second)
			if got := w.total("acme/four"); got > 4 || got < 3 {
				t.Errorf("admitted %d of 4", got)
			}
			t.Log(w.total("acme/four"), w.outcomes())
			w.audit()
		})
	}
}

// Invariant 7: a store that restarts empty has an empty wallet; what it held
// is not admitted again. Seen to catch: an expiry that credits what it writes
// off.
func TestInvariant7MissingWalletIsEmpty(t *testing.T) {
	w := newWorld(t, 3)
	b := bucket("acme/x", 1, 100, policy.Dynamic, "us")
	b.Contract.Rate = lease.Rate{Tokens: 1, Per: 24 * time.Hour}
	w.apply(b)
	us := w.region("us", 20*time.Millisecond)
	n := w.agent(us)
	n.load("acme/x", 100, time.Minute)
	for range 10 {
		w.run(700 * time.Millisecond)
		us.store.Restart()
	}
	w.run(20 * time.Second)
	if got := w.total("acme/x"); got > 100 || got < 20 {
		t.Errorf("admitted %d of 100", got)
	}
	w.audit()
}

// After the load stops, an idle budget's lump goes back to the pool and the
// region says nothing more.
func TestIdleBudgetReturnsItsLump(t *testing.T) {
	w := newWorld(t, 4)
	w.apply(bucket("acme/x", 100, 1000, policy.Dynamic, "us", "eu"))
	n := w.agent(w.region("us", 20*time.Millisecond))
	n.load("acme/x", 50, 3*time.Second)
	w.run(40 * time.Second)
	s := w.state("acme/x")
	if out := s.Pools[0].Outstanding; out != 0 {
		t.Errorf("%d tokens are outstanding of an idle budget", out)
	}
	before := n.stats.SyncCalls.Load()
	w.run(30 * time.Second)
	if more := n.stats.SyncCalls.Load() - before; more != 0 {
		t.Errorf("an idle budget sent %d Syncs", more)
	}
	if d := n.stats.Decisions[Allowed][FromStore].Load() + n.stats.Decisions[Allowed][FromPrefetch].Load(); d < 100 {
		t.Errorf("only %d were admitted", d)
	}
}

// The last process of a region closes its leases, shares too; the first to
// leave does not.
func TestLastProcessClosesLeases(t *testing.T) {
	for _, strategy := range []policy.Strategy{policy.Static, policy.Independent, policy.Dynamic} {
		t.Run(string(strategy), func(t *testing.T) {
			w := newWorld(t, 5)
			w.apply(bucket("acme/x", 100, 1000, strategy, "us", "eu"))
			us := w.region("us", 20*time.Millisecond)
			first, second := w.agent(us), w.agent(us)
			first.load("acme/x", 50, 3*time.Second)
			w.run(4 * time.Second)
			second.stop()
			w.run(time.Second)
			if w.state("acme/x").Pools[0].Outstanding == 0 {
				t.Fatal("leases were closed while a process was left")
			}
			first.stop()
			w.run(2 * time.Second)
			if out := w.state("acme/x").Pools[0].Outstanding; out != 0 {
				t.Errorf("%d tokens are outstanding after the last process left", out)
			}
			if !first.stopped || !second.stopped {
				t.Error("a keeper did not stop")
			}
			w.audit()
		})
	}
}

func (n *node) stop() {
	n.w.after(0, func() {
		n.decider.Flush(context.Background(), true)
		n.step(Stopping{})
	})
}

// Twenty budgets of one region share their Syncs.
func TestBudgetsShareSyncs(t *testing.T) {
	w := newWorld(t, 6)
	var budgets []policy.Budget
	for i := range 20 {
		budgets = append(budgets, bucket(fmt.Sprintf("acme/%02d", i), 100, 1000, policy.Dynamic, "us", "eu"))
	}
	w.apply(budgets...)
	w.check = false
	n := w.agent(w.region("us", 20*time.Millisecond))
	for _, b := range budgets {
		n.load(b.Name, 50, 9*time.Second)
	}
	w.run(10 * time.Second)
	calls := n.stats.SyncCalls.Load()
	var items int64
	for i := range n.stats.Syncs {
		items += n.stats.Syncs[i].Load()
	}
	t.Log(calls, items, w.outcomes())
	if calls > 120 { // one by one it would be about 800
		t.Errorf("%d calls in 10 s for 20 budgets", calls)
	}
	out := w.outcomes()
	if denied := out[Denied][FromStore] + out[Denied][FromMemory] + out[Unavailable][FromStore]; denied > 20 {
		t.Errorf("%d decisions failed at half the limit", denied)
	}
}
