package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// threeRegions are the prototype's: round trips of 20, 80 and 200 ms.
func threeRegions(agents int) Topology {
	var t Topology
	for _, r := range []struct {
		name string
		rtt  time.Duration
	}{{"eu", 80 * time.Millisecond}, {"sa", 200 * time.Millisecond}, {"us", 20 * time.Millisecond}} {
		up, down := RTT(r.rtt)
		t.Regions = append(t.Regions, Region{Name: r.name, Agents: agents, Up: up, Down: down})
	}
	return t
}

func perSecond(rate, burst lease.Tokens) policy.Contract {
	return policy.Contract{Rate: lease.Rate{Tokens: rate, Per: time.Second}, Burst: burst}
}

func hotLoad(budget string, total float64, every time.Duration) []Workload {
	var all []Workload
	for i, r := range []string{"us", "eu", "sa"} {
		all = append(all, Workload{
			Region: r, Budgets: []string{budget},
			Pattern: Hot{Total: total, Share: 0.8, Index: i, Regions: 3, Every: every},
		})
	}
	return all
}

// zero is a promise of no over-admission beside the rounding of minting.
func zero(extra lease.Tokens) Bound {
	return Bound{
		Window:   func(time.Duration) lease.Tokens { return extra + 1 },
		Lifetime: func(time.Duration) lease.Tokens { return extra + 1 },
	}
}

func run(t testing.TB, o Options) *Result {
	t.Helper()
	r, err := Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Found {
		t.Errorf("at %v: %s %s: %s", v.At, v.Invariant, v.Budget, v.Detail)
	}
	return r
}

func smallRun() Options {
	return Options{
		Seed: 1, Length: 20 * time.Second, Topology: threeRegions(2),
		Budgets:   []policy.Budget{{Name: "t/a", Contract: perSecond(500, 500)}},
		Workloads: hotLoad("t/a", 650, 5*time.Second),
		Windows:   []time.Duration{time.Second, 10 * time.Second},
		Bounds:    map[string]Bound{"t/a": zero(0)},
		Points:    20,
	}
}

func TestEveryStrategyKeepsItsInvariants(t *testing.T) {
	for _, s := range Strategies() {
		t.Run(string(s), func(t *testing.T) {
			o := smallRun()
			o.Strategy = s
			if s == Independent || s == CountLocally {
				o.Bounds = nil
			}
			r := run(t, o)
			b := r.Budgets[0]
			t.Logf("%s: used %.2f %%, falsely denied %.3f %%, over %d, rpcs %.1f, rebalance %v/%v, causes %v, events %d",
				s, 100*b.Utilisation(), 100*b.FalseDenialRate(), b.Any.Over, r.RPCsPer1000, b.RebalanceMean, b.RebalanceWorst, b.Causes, r.Events)
			if b.Admitted == 0 || b.Offered != b.Admitted+b.Denied+b.Unavailable {
				t.Errorf("offered %d, admitted %d, denied %d, unavailable %d", b.Offered, b.Admitted, b.Denied, b.Unavailable)
			}
		})
	}
}

func TestSameSeedSameBytes(t *testing.T) {
	o := named(faulty(9,
		Fault{Kind: DegradeLinks, At: time.Second, Link: Link{Delay: Delay{Lognormal: 30 * time.Millisecond, Sigma: 1}, Loss: 0.1, Duplicate: 0.2}},
		Fault{Kind: StoreUnknown, At: 2 * time.Second, For: 3 * time.Second, Probability: 0.3},
		Fault{Kind: StoreFailover, At: 6 * time.Second, Lag: time.Second, Isolated: time.Second},
		Fault{Kind: UnknownCommits, At: time.Second, Probability: 0.1},
		Fault{Kind: StopAgent, At: 7 * time.Second, For: time.Second, Agent: -1}))
	o.Length, o.Points, o.RandomAgents = 12*time.Second, 20, true
	var first []byte
	for range 2 {
		got, err := json.Marshal(run(t, o))
		if err != nil {
			t.Fatal(err)
		}
		if first != nil && !bytes.Equal(first, got) {
			t.Errorf("the second run differs:\n%s\n%s", first, got)
		}
		first = got
	}
}
