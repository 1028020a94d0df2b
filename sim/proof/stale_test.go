//go:build mutants

package proof_test

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// S34: where no script compares the store's replication id, a store that comes
// back old gives once more what has left it since. The memory store always
// compares, so that it takes the mutant to show that the bound of unfenced
// stores holds, and is attained.
func TestMutantStaleStoreIsTight(t *testing.T) {
	defer mutant.Enable(mutant.NoReplicationID)()
	for _, c := range []struct {
		name  string
		spend lease.Rate
	}{
		{name: "spent at an unknown rate"},
		// Between the snapshot and the restart, 480 tokens at 48/10ms.
		{"spent at a known rate", lease.Rate{Tokens: 4800, Per: second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := attackStaleStore()
			d := declared(&o)
			d.Unfenced, d.StoreLag, d.SpendRate = true, 100*ms, c.spend
			b, err := o.Budgets[0].Normalize(d.Deployment)
			if err != nil {
				t.Fatal(err)
			}
			const w = 2 * second
			bound, err := errorbound.Over(b, d, w)
			if err != nil {
				t.Fatal(err)
			}
			o.Windows = []time.Duration{w}
			r, err := sim.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			over := r.Budgets[0].Over[0].Over
			t.Logf("%d of %d (%s %d) within %v", over, bound.Total, errorbound.StaleStore, bound.Of(errorbound.StaleStore), w)
			if over > bound.Total || 100*over < 90*bound.Total {
				t.Errorf("%d above the contract, bound %d", over, bound.Total)
			}
		})
	}
}

// A region spends its full share within 100 ms, and again after its store has
// come back from before that.
func attackStaleStore() sim.Options {
	o := small(1, policy.Budget{Contract: perSecond(10, 480), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Faults = []sim.Fault{{Kind: sim.StoreRestore, At: 4100 * ms, Lag: 100 * ms}}
	o.Length = 6 * second
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(0, 5, false), phase(4001*ms, 100, true), phase(4102*ms, 100, true)}})
	return o
}
