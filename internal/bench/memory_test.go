package bench

import (
	"context"
	"crypto/rand"
	"flag"
	"fmt"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore/redis"
)

var (
	memoryBudgets = flag.Int("memory.budgets", 20_000, "how many `budgets` are in use at once where memory is measured")
	memoryProfile = flag.String("memory.profile", "", "write a heap profile of the agent with all of them in use into this `file`")
)

const (
	// memoryFirst are in use before anything is counted, so that what is needed
	// once (scripts, connections, buffers) is left out.
	memoryFirst   = 1_000
	memoryCallers = 64
	// memoryHold is what the ledger grants each of them.
	memoryHold = 1000
)

// generous is an allocator that keeps nothing: it lists budgets made anew and
// grants every region a lump, so that what memory is used is the agent's.
type generous struct {
	b *testing.B
	// own is set where each budget has limits of its own.
	own bool
}

func (g generous) ListBudgets(_ context.Context, since uint64) (policy.List, error) {
	if since > 0 {
		return policy.List{Version: since}, nil
	}
	budgets := routes(g.b, *memoryBudgets, memoryHold)
	for i := range budgets {
		if g.own {
			budgets[i].Contract.Rate.Tokens += lease.Tokens(i)
		}
	}
	return policy.List{Version: 1, Budgets: budgets, Full: true}, nil
}

func (g generous) SyncLeases(_ context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	var reply lease.SyncReply
	for i := range req.Items {
		item := lease.ItemReply{Budget: req.Items[i].Budget}
		for _, r := range req.Items[i].Leases {
			item.Leases = append(item.Leases, granted(&r))
		}
		reply.Items = append(reply.Items, item)
	}
	return reply, nil
}

func granted(r *lease.Report) lease.State {
	s := lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.NotPlanned, RetryAfter: time.Hour}
	if r.Kind == lease.Lump {
		s.Status, s.RetryAfter = lease.Active, 0
		s.Granted, s.TTL, s.Keep = r.Used+r.Returned+memoryHold, 10*time.Minute, lease.MaxTokens
	}
	return s
}

// BenchmarkMemory is what one more budget in use costs an agent and the
// region's Redis: the policy itself, what decisions and the keeper remember,
// the wallet, and the register of budgets in use.
func BenchmarkMemory(b *testing.B) {
	b.Run("alike", func(b *testing.B) { memory(b, false) })
	b.Run("own", func(b *testing.B) { memory(b, true) })
}

func memory(b *testing.B, own bool) {
	server := testredis.Start(b, testredis.Options{})
	store, err := redis.Open(b.Context(), redis.Options{Region: "us", Timeout: 5 * time.Second, Log: quiet}, server.Addr())
	if err != nil {
		b.Fatal(err)
	}
	empty := liveHeap()
	ctx, stop := context.WithCancel(b.Context())
	r := agent.NewRunner(agent.RunnerConfig{
		Options: agent.Options{Region: "us", Process: "p", Store: store, StoreDeadline: 5 * time.Second},
		Leases:  generous{b: b}, Policies: generous{b: b, own: own},
		Keeper: agent.KeeperConfig{Rand: mathrand.New(mathrand.NewPCG(1, 2)), Nonce: rand.Text},
	})
	var running sync.WaitGroup
	running.Go(func() { _ = r.Run(ctx) })
	defer func() { stop(); running.Wait(); _ = store.Shutdown() }()
	for !r.Ready() {
		time.Sleep(10 * time.Millisecond)
	}
	known := (liveHeap() - empty) / *memoryBudgets
	use(b, r, store, memoryFirst)
	heap, stored := usualHeap(), usedMemory(b, server)
	use(b, r, store, *memoryBudgets)
	agents := known + (usualHeap()-heap)/(*memoryBudgets-memoryFirst)
	redises := (usedMemory(b, server) - stored) / (*memoryBudgets - memoryFirst)
	writeHeapProfile(b)
	b.ReportMetric(float64(known), "B-known/budget")
	b.ReportMetric(float64(agents), "B-agent/budget")
	b.ReportMetric(float64(redises), "B-redis/budget")
	if own {
		report(Row{Item: "memory of an agent, per budget in use, each with a limit of its own", Ours: fmt.Sprintf("%d B", agents), Goal: "≤ 1,024 B"})
		return
	}
	report(Row{Item: "memory of an agent, per budget known", Ours: fmt.Sprintf("%d B", known)})
	report(Row{Item: "memory of an agent, per budget in use", Ours: fmt.Sprintf("%d B", agents), Goal: "≤ 1,024 B"})
	report(Row{Item: "memory of Redis, per budget in use", Ours: fmt.Sprintf("%d B", redises), Goal: "≤ 500 B"})
	runtime.KeepAlive(r)
}

// use puts the first n budgets to use: they are entered as used by another
// process too, for longer than this takes, so that all of them get a lease and
// keep it, and then decisions are made until each was allowed.
func use(b *testing.B, r *agent.Runner, store *redis.Store, n int) {
	b.Helper()
	rest, names := make([]int, n), make([]string, n)
	for i := range rest {
		rest[i], names[i] = i, "acme/"+route(i)
	}
	if err := store.Touch(b.Context(), names, time.Hour); err != nil {
		b.Fatal(err)
	}
	for granted := &r.Stats().Syncs[agent.SyncActive]; granted.Load() < int64(n); {
		time.Sleep(10 * time.Millisecond)
	}
	for len(rest) > 0 && !b.Failed() {
		rest = refused(b, r, rest)
	}
}

// refused makes a decision of each of these budgets, and returns those that were
// not allowed.
func refused(b *testing.B, r *agent.Runner, budgets []int) (rest []int) {
	var callers sync.WaitGroup
	var mu sync.Mutex
	var next atomic.Int64
	for range memoryCallers {
		callers.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(budgets); i = int(next.Add(1)) - 1 {
				a, err := r.Check(context.Background(), agent.Check{Budgets: []string{"acme/" + route(budgets[i])}, Cost: 1})
				if err != nil {
					b.Error(err)
				}
				if a.Outcome != agent.Allowed {
					mu.Lock()
					rest = append(rest, budgets[i])
					mu.Unlock()
				}
			}
		})
	}
	callers.Wait()
	return rest
}

func writeHeapProfile(b *testing.B) {
	if *memoryProfile == "" {
		return
	}
	f, err := os.Create(*memoryProfile)
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	if err := pprof.Lookup("heap").WriteTo(f, 0); err != nil {
		b.Fatal(err)
	}
}

// liveHeap is what is in use on the heap after a collection.
func liveHeap() int {
	var m runtime.MemStats
	for range 2 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// usualHeap is the median of several liveHeap: what is said of all budgets at once
// comes and goes within seconds.
func usualHeap() int {
	var looks []float64
	for range 7 {
		time.Sleep(700 * time.Millisecond)
		looks = append(looks, float64(liveHeap()))
	}
	return int(median(looks))
}

func usedMemory(b *testing.B, server *testredis.Server) int {
	b.Helper()
	var n int
	if _, err := fmt.Sscanf(infoLine(b, server, "memory", "used_memory"), "%d", &n); err != nil {
		b.Fatal(err)
	}
	return n
}
