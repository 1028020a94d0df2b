package bench

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore/redis"
)

// maxApply is how many budgets one change may have.
const maxApply = 1000

var quiet = slog.New(slog.DiscardHandler)

// deployment is one region's agents over a Redis of their own, and an
// allocator over a ledger in this process's memory, a call away.
type deployment struct {
	agents []*app.Agent
	redis  *testredis.Server
}

// deploy starts it with the budgets in force, until the benchmark ends.
func deploy(b *testing.B, agents int, budgets []policy.Budget) *deployment {
	b.Helper()
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	allocator := app.NewAllocator(app.AllocatorOptions{
		Store: ledger.New(clock), Credentials: rpc.Insecure{}, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: quiet,
	})
	for some := range slices.Chunk(budgets, maxApply) {
		if _, err := allocator.Core().Apply(b.Context(), some); err != nil {
			b.Fatal(err)
		}
	}
	if err := allocator.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = allocator.Stop(context.Background()) })
	d := &deployment{redis: testredis.Start(b, testredis.Options{})}
	for range agents {
		store, err := redis.Open(b.Context(), redis.Options{Region: "us", Timeout: time.Second, Log: quiet}, d.redis.Addr())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Shutdown() })
		a := app.NewAgent(app.AgentOptions{
			Region: "us", Store: store, Leases: allocator.Source(), Policies: allocator.Core(),
			GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: quiet,
			// All parts share the machine: a late answer is no dead store.
			StoreDeadline: time.Second,
		})
		if err := a.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = a.Stop(context.Background()) })
		if err := a.AwaitReady(b.Context()); err != nil {
			b.Fatal(err)
		}
		d.agents = append(d.agents, a)
	}
	return d
}

// routes are n budgets of one tenant, each for one route, all of this rate and
// a burst of two seconds of it.
func routes(b *testing.B, n int, rate lease.Tokens) []policy.Budget {
	b.Helper()
	return routesOf(b, n, rate, policy.Dynamic)
}

// routesOf is routes for a strategy; static ones are the one region's whole.
func routesOf(b *testing.B, n int, rate lease.Tokens, strategy policy.Strategy) []policy.Budget {
	b.Helper()
	budgets := make([]policy.Budget, n)
	for i := range budgets {
		var err error
		budgets[i], err = policy.Budget{
			Name: "acme/" + route(i), Match: map[string]string{"tenant": "acme", "route": route(i)},
			Contract: policy.Contract{Rate: lease.Rate{Tokens: rate, Per: time.Second}, Burst: 2 * rate},
			Strategy: strategy, Regions: []policy.Region{{Name: "us", Weight: 1}},
		}.Normalize(policy.DefaultDeployment())
		if err != nil {
			b.Fatal(err)
		}
	}
	return budgets
}

func route(i int) string { return fmt.Sprintf("r%06d", i) }

// decided sums the agents' decisions by what they rest on.
func (d *deployment) decided() map[agent.Mode]int64 {
	out := map[agent.Mode]int64{}
	for _, a := range d.agents {
		s := a.Runner().Stats()
		for o := range s.Decisions {
			for m := range s.Decisions[o] {
				out[agent.Mode(m)] += s.Decisions[o][m].Load()
			}
		}
	}
	return out
}

// stop ends the agents before the benchmark does, for the next deployment's
// sake.
func (d *deployment) stop() {
	for _, a := range d.agents {
		_ = a.Stop(context.Background())
	}
}

func (d *deployment) syncs() (n int64) {
	for _, a := range d.agents {
		n += a.Runner().Stats().SyncCalls.Load()
	}
	return n
}
