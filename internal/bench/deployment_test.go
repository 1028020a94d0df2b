package bench

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

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
	allocator, err := startAllocator(b.Context(), budgets)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = allocator.Stop(context.Background()) })
	d := &deployment{redis: testredis.Start(b, testredis.Options{})}
	for range agents {
		store, err := openStore(b.Context(), d.redis.Addr())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = store.Shutdown() })
		a, err := startAgent(b.Context(), store, allocator.Source(), allocator.Core())
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = a.Stop(context.Background()) })
		d.agents = append(d.agents, a)
	}
	return d
}

// startAllocator starts one over a ledger in this process's memory, with the
// budgets in force.
func startAllocator(ctx context.Context, budgets []policy.Budget) (*app.Allocator, error) {
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	allocator := app.NewAllocator(app.AllocatorOptions{
		Store: ledger.New(clock), Credentials: rpc.Insecure{}, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: quiet,
	})
	for some := range slices.Chunk(budgets, maxApply) {
		if _, err := allocator.Core().Apply(ctx, some); err != nil {
			return nil, err
		}
	}
	return allocator, allocator.Start(ctx)
}

// lateAfter is when a call of the store counts as failed: all parts share the
// machine, and a late answer is no dead store.
const lateAfter = time.Second

func openStore(ctx context.Context, addr string) (*redis.Store, error) {
	return redis.Open(ctx, redis.Options{Region: "us", Timeout: lateAfter, Log: quiet}, addr)
}

// startAgent starts an agent of the region, and returns once it is ready.
func startAgent(ctx context.Context, store *redis.Store, leases lease.Source, policies policy.Source) (*app.Agent, error) {
	a := app.NewAgent(app.AgentOptions{
		Region: "us", Store: store, Leases: leases, Policies: policies,
		GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: quiet, StoreDeadline: lateAfter,
	})
	if err := a.Start(ctx); err != nil {
		return nil, err
	}
	if err := a.AwaitReady(ctx); err != nil {
		return nil, errors.Join(err, a.Stop(context.WithoutCancel(ctx)))
	}
	return a, nil
}

// routes are n budgets of one tenant, each for one route, all of this rate and
// a burst of two seconds of it.
func routes(tb testing.TB, n int, rate lease.Tokens) []policy.Budget {
	tb.Helper()
	return routesOf(tb, n, rate, policy.Dynamic)
}

// routesOf is routes for a strategy; static ones are the one region's whole.
func routesOf(tb testing.TB, n int, rate lease.Tokens, strategy policy.Strategy) []policy.Budget {
	tb.Helper()
	budgets := make([]policy.Budget, n)
	for i := range budgets {
		var err error
		budgets[i], err = policy.Budget{
			Name: "acme/" + route(i), Match: map[string]string{"tenant": "acme", "route": route(i)},
			Contract: policy.Contract{Rate: lease.Rate{Tokens: rate, Per: time.Second}, Burst: 2 * rate},
			Strategy: strategy, Regions: []policy.Region{{Name: "us", Weight: 1}},
		}.Normalize(policy.DefaultDeployment())
		if err != nil {
			tb.Fatal(err)
		}
	}
	return budgets
}

func route(i int) string { return fmt.Sprintf("r%06d", i) }

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
