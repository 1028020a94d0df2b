package bench

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/load"
)

const (
	coordinationBudgets = 100
	coordinationRate    = 10_000 // decisions per second
	coordinationFor     = 10 * time.Second
)

// BenchmarkCoordination counts what a region's agents say to the allocator at
// a steady load, over 100 budgets whose bursts are two seconds of their rates.
func BenchmarkCoordination(b *testing.B) {
	for _, agents := range []int{1, 2, 4, 8} {
		d := deploy(b, agents, routes(b, coordinationBudgets, 2*coordinationRate/coordinationBudgets))
		d.steady(b, 5*time.Second) // leases are had and demand is known
		before := d.syncs()
		r := d.steady(b, coordinationFor)
		calls := float64(d.syncs() - before)
		report(Row{
			fmt.Sprintf("Sync calls of a region, %s decisions/s, %d budgets, agents: %d", count(r.PerSecond()), coordinationBudgets, agents),
			fmt.Sprintf("%s, %s per 1,000 decisions", perSecond(calls/r.Length.Seconds()), count(calls/float64(r.Calls-r.Failed)*1000)),
			"", "", "≤ 5/s, ≤ 1",
		})
		if r.Failed > 0 {
			b.Logf("%d agents: %d of %d not admitted: %v", agents, r.Failed, r.Calls, r.Err)
		}
		d.stop()
	}
}

// steady asks the agents in turn for each budget in turn.
func (d *deployment) steady(b *testing.B, length time.Duration) load.Result {
	b.Helper()
	return load.Open(64, coordinationRate, length, func(_, n int) error {
		a := d.agents[n%len(d.agents)]
		budget := "acme/" + route(n/len(d.agents)%coordinationBudgets)
		answer, err := a.Check(context.Background(), agent.Check{Budgets: []string{budget}, Cost: 1})
		if err == nil && answer.Outcome != agent.Allowed {
			err = fmt.Errorf("%v: %s", answer.Outcome, answer.Reason)
		}
		return err
	})
}
