package bench

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	wallet "github.com/ration-dev/ration/regionstore/memory"
)

// region is one agent's deciding side over wallets in this process's memory,
// filled by hand: what grows here is the agent's own cost alone.
type region struct {
	decider *agent.Decider
	store   *wallet.Store
	flushed time.Time
}

func newRegion(budgets []policy.Budget) *region {
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	r := &region{store: wallet.New(clock, func() string { return "store" }, regionstore.DefaultConfig())}
	r.decider = agent.NewDecider(agent.Options{Region: "us", Process: "p", Store: r.store, StoreDeadline: -1}, new(agent.Stats), func(agent.Urgent) {})
	r.decider.SetBudgets(budgets)
	return r
}

// decide makes n decisions over the first active budgets in turn, flushing as
// often as an agent does, and returns what one took, flushes included.
func (r *region) decide(b *testing.B, n, active int) time.Duration {
	checks := make([]agent.Check, active)
	for i := range checks {
		checks[i] = agent.Check{Cost: 1, Descriptors: []agent.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "route", Value: route(i)}}}
	}
	ctx := context.Background()
	start := time.Now()
	for i := range n {
		if i%64 == 0 && time.Since(r.flushed) > flushEvery {
			r.decider.Flush(ctx, false)
			r.flushed = time.Now()
		}
		if a, _, err := r.decider.Begin(ctx, checks[i%active]); err != nil || a.Outcome != agent.Allowed {
			b.Fatalf("%+v, %v", a, err)
		}
	}
	return time.Since(start) / time.Duration(n)
}

const growthDecisions = 100_000

// BenchmarkGrowthAgent is what a decision costs, and a budget takes up, as
// there are more of them.
func BenchmarkGrowthAgent(b *testing.B) {
	for _, known := range []int{100, 10_000, 100_000, 1_000_000} {
		budgets := routes(b, known, servedRate)
		before := liveHeap()
		r := newRegion(budgets)
		each := float64(liveHeap()-before) / float64(known)
		grantLump(b, r.store, budgets[0].Name)
		r.decide(b, growthDecisions, 1)
		report(growth("known", known, r.medianDecision(b, 1), each, "beside its policy"))
		runtime.KeepAlive(budgets)
	}
	for _, active := range []int{100, 1000, 10_000, 100_000} {
		budgets := routes(b, active, servedRate)
		r := newRegion(budgets)
		for i := range budgets {
			grantLump(b, r.store, budgets[i].Name)
		}
		before := liveHeap()
		// Whatever is held ahead at first follows a demand that was hardly seen.
		for range 2 * rounds {
			r.decide(b, growthDecisions, active)
		}
		each := float64(liveHeap()-before) / float64(active)
		report(growth("active", active, r.medianDecision(b, active), each, "more than known"))
		runtime.KeepAlive(budgets)
	}
}

func (r *region) medianDecision(b *testing.B, active int) time.Duration {
	var all []float64
	for range rounds {
		all = append(all, float64(r.decide(b, growthDecisions, active)))
	}
	return time.Duration(median(all))
}

func growth(what string, n int, decision time.Duration, bytes float64, of string) Row {
	return Row{
		Item: fmt.Sprintf("Agent, %s budgets %s", count(float64(n)), what),
		Ours: fmt.Sprintf("%v a decision, %s B a budget %s", decision, count(max(0, bytes)), of),
		Goal: map[string]string{"active": "≤ 1,024 B"}[what],
	}
}
