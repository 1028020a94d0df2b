package sim

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// goal is a row of the design's table: what the dynamic plan is to reach.
type goal struct {
	burst lease.Tokens
	load  float64
	// used is the least part of the ideal bucket's admissions, denied the most
	// false denials, in percent; 0 for no goal.
	used, denied float64
}

var designGoals = []goal{
	{3000, 1.3, 99.5, 0},
	{600, 1.3, 99.0, 0},
	{300, 1.3, 98.5, 0},
	{3000, 0.9, 0, 0.1},
	{600, 0.9, 0, 0.5},
	{300, 0.9, 0, 0.6},
}

// designScenario is the one of the design's table: 3000 tokens a second, 80 %
// of demand in one region, which changes every minute.
func designScenario(g goal, seed uint64, s Strategy, length time.Duration) Options {
	return Options{
		Seed: seed, Length: length, Warmup: 5 * time.Second, Topology: threeRegions(2), Strategy: s,
		Budgets:   []policy.Budget{{Name: "t/a", Contract: perSecond(3000, g.burst)}},
		Workloads: hotLoad("t/a", 3000*g.load, 60*time.Second),
		Windows:   []time.Duration{time.Second},
		Bounds:    map[string]Bound{"t/a": zero(0)},
		Check:     CheckSome,
	}
}

// BenchmarkDesignGoals prints the figures of the design's table beside their
// goals, for tuning the plan: go test ./sim -run - -bench DesignGoals -benchtime 1x
func BenchmarkDesignGoals(b *testing.B) {
	for _, g := range designGoals {
		b.Run(fmt.Sprintf("burst=%d/load=%v", g.burst, g.load), func(b *testing.B) {
			for b.Loop() {
				start := time.Now()
				r := run(b, designScenario(g, 1, Dynamic, 190*time.Second))
				x := r.Budgets[0]
				b.Logf("used %.2f %% (goal %.1f), falsely denied %.3f %% (goal %.1f), over %d, rpcs %.1f, rebalance %v/%v of %d, longest denial %v; %d decisions at %.2f M/s",
					100*x.Utilisation(), g.used, 100*x.FalseDenialRate(), g.denied, x.Any.Over, r.RPCsPer1000,
					x.RebalanceMean, x.RebalanceWorst, x.Moves, x.LongestDenied,
					r.Decisions, float64(r.Decisions)/time.Since(start).Seconds()/1e6)
			}
		})
	}
}
