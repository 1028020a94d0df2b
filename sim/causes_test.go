package sim

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Each declared term of the bound is reached by its own scenario, and every
// token above the contract gets that cause.
func TestEveryTokenAboveTheContractHasItsCause(t *testing.T) {
	at := 10 * time.Second
	dump := func(o *Options, first time.Duration) {
		o.Workloads = nil
		for _, r := range o.Topology.Regions {
			o.Workloads = append(o.Workloads, Workload{
				Name: r.Name, Region: r.Name, Budgets: []string{"t/a"},
				Pattern: Hoarder{Quiet: 20, First: first, Every: 5 * time.Second},
			})
		}
	}
	for _, c := range []struct {
		cause CauseName
		set   func(*Options)
	}{
		{CauseFloat, func(o *Options) {
			o.Budgets[0].OverAdmission.Tokens = 200
			dump(o, at)
		}},
		{CauseLocal, func(o *Options) {
			o.Budgets[0].OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: lease.Rate{Tokens: 50, Per: time.Second}, Burst: 100}
			o.Budgets[0].TTL = 2 * time.Second
			o.Faults = []Fault{{Kind: Partition, At: 8 * time.Second, For: 12 * time.Second, Region: "us"}}
			for i := range o.Workloads {
				o.Workloads[i].Pattern = Constant{PerSecond: 600}
			}
		}},
		{CauseRegrant, func(o *Options) {
			o.Seed = 16 // with which the old store's agent hears of the regrant only after the dump
			o.Topology.ReplicatedStores, o.Topology.StoreIsolation = true, 5*time.Second
			o.Budgets[0].Strategy = policy.Static
			o.Budgets[0].Regions = equalParts()
			o.Faults = []Fault{{Kind: StoreFailover, At: at, Lag: 100 * time.Millisecond, Isolated: 5 * time.Second}}
			dump(o, at+5*time.Second-100*time.Millisecond)
		}},
		{CauseSuspended, func(o *Options) {
			o.Budgets[0].Contract = perSecond(2400, 2400)
			o.Budgets[0].Strategy, o.Budgets[0].Regions = policy.Static, equalParts()
			for i := range o.Workloads {
				o.Workloads[i].Pattern = Phases{List: []Phase{{At: 0, PerSecond: 600}, {At: at}, {At: at + 9*time.Second, AtOnce: Everything}}}
			}
			o.Faults = []Fault{{Kind: SuspendAgent, At: at, For: 9*time.Second - time.Millisecond, Region: "us", Agent: 0}}
		}},
		{CauseIndependent, func(o *Options) { o.Strategy = Independent }},
		{CauseCut, func(o *Options) {
			dump(o, at)
			cut := o.Budgets[0]
			cut.Contract = perSecond(50, 50)
			o.Changes = []Change{{At: at - time.Millisecond, Apply: []policy.Budget{cut}}}
		}},
		{CauseFailover, func(o *Options) {
			o.Faults = []Fault{{Kind: DatabaseFailover, At: at, Lag: 2 * time.Second}}
			o.Workloads = o.Workloads[:1]
			o.Workloads[0].Pattern = Phases{List: []Phase{{At: 0, PerSecond: 0}, {At: at - time.Second, PerSecond: 2000}}}
		}},
		{CauseClock, func(o *Options) {
			o.Budgets[0].Strategy, o.Budgets[0].Regions = policy.Static, equalParts()
			for i := range o.Topology.Regions {
				o.Topology.Regions[i].Store.DriftPPM, o.Topology.Regions[i].Agent.DriftPPM = 200_000, 200_000
				o.Workloads[i].Pattern = Constant{PerSecond: 600}
			}
		}},
		{CauseWriteBack, func(o *Options) { o.Strategy = CountLocally }},
	} {
		t.Run(string(c.cause), func(t *testing.T) {
			o := smallRun()
			o.Length, o.Bounds = 25*time.Second, nil
			c.set(&o)
			b := run(t, o).Budgets[0]
			t.Logf("over %d, beyond %d, causes %v", b.Any.Over, b.NonConforming, b.Causes)
			var sum, mine lease.Tokens
			for _, k := range b.Causes {
				sum += k.Tokens
				if k.Name == c.cause {
					mine = k.Tokens
				}
			}
			if sum != b.NonConforming {
				t.Errorf("causes sum to %d, %d tokens were beyond the contract", sum, b.NonConforming)
			}
			if mine == 0 {
				t.Error("the cause was not reached")
			}
		})
	}
}

// A promise that is not kept is said so: here three whole limits against a
// promise of one.
func TestBrokenPromisesAreFound(t *testing.T) {
	o := smallRun()
	o.Strategy = Independent
	r, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, v := range r.Found {
		found[v.Invariant] = true
	}
	if !found["window bound"] || !found["lifetime bound"] {
		t.Errorf("found only %+v", r.Found)
	}
	if w := r.Budgets[0].Over[1]; w.Over <= w.Bound {
		t.Errorf("within %v: %d over, %d promised", w.W, w.Over, w.Bound)
	}
	o.StopAtViolation = true
	if r, err = Run(t.Context(), o); err != nil || r.Done >= o.Length {
		t.Errorf("it went on to %v, %v", r.Done, err)
	}
}
