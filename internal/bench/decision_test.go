package bench

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
	wallets "github.com/ration-dev/ration/regionstore/memory"
)

const (
	hotRounds = 11
	hotFor    = 100 * time.Millisecond
	// hotWarm is for the estimate of the process's own demand, from which it
	// takes tokens ahead.
	hotWarm = 300 * time.Millisecond
	// flushEvery is how often a Runner settles.
	flushEvery = 50 * time.Millisecond
)

// hotAgent decides over wallets in its own memory, which hold more tokens than
// any benchmark takes; as in production, it takes them ahead for some 20 ms and
// settles what it used. Of its budgets, the first spent ones have wallets.
type hotAgent struct {
	*agent.Decider
	stats  agent.Stats
	store  *wallets.Store
	checks []agent.Check
}

func newHotAgent(b *testing.B, known, spent int, observer agent.Observer) *hotAgent {
	b.Helper()
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	h := &hotAgent{store: wallets.New(clock, func() string { return "life" }, regionstore.DefaultConfig())}
	h.Decider = agent.NewDecider(agent.Options{
		Region: "us", Process: "p", Store: h.store, StoreDeadline: -1, Observer: observer,
	}, &h.stats, func(agent.Urgent) {})
	budgets := routes(b, known, 1<<40)
	h.SetBudgets(budgets)
	for _, x := range budgets[:spent] {
		grantLump(b, h.store, x.Name)
		h.checks = append(h.checks, agent.Check{Cost: 1, Descriptors: []agent.Descriptor{
			{Key: "tenant", Value: "acme"}, {Key: "route", Value: x.Match["route"]}, {Key: "method", Value: "GET"},
		}})
	}
	stop := make(chan struct{})
	var flushing sync.WaitGroup
	flushing.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(flushEvery):
				h.Flush(context.Background(), false)
			}
		}
	})
	b.Cleanup(func() { close(stop); flushing.Wait() })
	return h
}

// grantLump fills a wallet as an allocator's answer does.
func grantLump(b *testing.B, store regionstore.Store, budget string) {
	b.Helper()
	ctx := context.Background()
	opened, err := store.Open(ctx, regionstore.OpenRequest{
		Budget: budget, Nonces: [lease.Kinds]lease.Incarnation{"r", "p", "l"}, LocalNonce: "n",
	})
	if err != nil {
		b.Fatal(err)
	}
	lump := opened.View.Row.Leases[lease.Lump-1].Incarnation
	begun, err := store.Begin(ctx, regionstore.BeginRequest{
		Budget: budget, Intents: []regionstore.Intent{{Kind: lease.Lump, Incarnation: lump, Want: 1, LowerBeta: -1}},
	})
	if err != nil {
		b.Fatal(err)
	}
	if _, err := store.Install(ctx, regionstore.InstallRequest{Budget: budget, States: []lease.State{{
		Kind: lease.Lump, Incarnation: lump, Seq: begun.Reports[0].Report.Seq, Status: lease.Active,
		Granted: 1 << 50, TTL: 24 * time.Hour, Keep: lease.MaxTokens,
	}}}); err != nil {
		b.Fatal(err)
	}
}

// decide makes one decision, which has to be allowed.
func (h *hotAgent) decide(b *testing.B, i int) {
	a, p, err := h.Begin(context.Background(), h.checks[i])
	if a.Outcome != agent.Allowed || p != nil || err != nil {
		b.Errorf("%+v, pending %v, %v", a, p != nil, err)
	}
}

// cpuPer lets as many goroutines as cores call do for a while, and returns the
// processor time of one call in nanoseconds: what the machine does beside is
// left out, what cores do to one another is not. do gets the goroutine and its
// turn.
func cpuPer(cores int, span time.Duration, do func(g, turn int)) float64 {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(cores))
	var wg sync.WaitGroup
	var total atomic.Int64
	before, start := cpuTime(), time.Now()
	for g := range cores {
		wg.Go(func() {
			n := 0
			for time.Since(start) < span {
				for range 500 {
					do(g, n)
					n++
				}
			}
			total.Add(int64(n))
		})
	}
	wg.Wait()
	return float64(cpuTime()-before) / float64(total.Load())
}

// cpuTime is what this process has used of its processors.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHotDecision compares decisions on prefetched budgets with the
// limiter that Go programs use in their own memory, which knows one limit and
// looks nothing up.
func BenchmarkHotDecision(b *testing.B) {
	cores := min(2, runtime.NumCPU())
	for _, c := range []struct {
		item         string
		known, spent int
		cores        int
		observer     agent.Observer
		goal         string
	}{
		{"hot decision, 1 budget", 1, 1, 1, nil, "< 100 ns"},
		{"hot decision, 1 budget, as a server observes it", 1, 1, 1, app.AgentObserver(), ""},
		{"hot decision, 1 of 100,000 budgets", 100_000, 1, 1, nil, "< 100 ns"},
		{"hot decision, 16 of 100,000 budgets in turn", 100_000, 16, 1, nil, ""},
		{fmt.Sprintf("hot decision, %d cores, a budget each", cores), 1000, cores, cores, nil, "scales with cores"},
		{fmt.Sprintf("hot decision, %d cores, one budget", cores), 1000, 1, cores, nil, "scales with cores"},
	} {
		b.Run(c.item, func(b *testing.B) {
			hotDecision(b, c.item, newHotAgent(b, c.known, c.spent, c.observer), c.cores, c.goal)
		})
	}
}

func hotDecision(b *testing.B, item string, h *hotAgent, cores int, goal string) {
	limiters := make([]*rate.Limiter, len(h.checks))
	for i := range limiters {
		limiters[i] = rate.NewLimiter(1e12, 1<<40)
	}
	decide := func(g, turn int) { h.decide(b, (g+turn*cores)%len(h.checks)) }
	allow := func(g, turn int) {
		if !limiters[(g+turn*cores)%len(limiters)].Allow() {
			b.Error("refused")
		}
	}
	cpuPer(cores, hotWarm, decide)
	if n := testing.AllocsPerRun(1000, func() { decide(0, 0) }); n >= 1 {
		b.Errorf("%v allocations", n)
	}
	before := h.hits()
	got := compare(hotRounds,
		func() float64 { return cpuPer(cores, hotFor, decide) },
		func() float64 { return cpuPer(cores, hotFor, allow) })
	b.ReportMetric(got.Ours, "ns/decision")
	b.ReportMetric(got.Yardstick, "ns/Allow")
	b.ReportMetric(h.hits().share(before), "share-from-memory")
	report(Row{
		Item: item, Ours: count(got.Ours) + " ns", Yardstick: "x/time/rate " + count(got.Yardstick) + " ns",
		Ratio: ratio(got.Ratio), Goal: goal,
	})
}

// hits counts decisions allowed from memory, and all of them.
type hits struct{ memory, all int64 }

func (h *hotAgent) hits() hits {
	h.Flush(context.Background(), false)
	n := hits{memory: h.stats.Decisions[agent.Allowed][agent.FromPrefetch].Load()}
	for m := range h.stats.Decisions[agent.Allowed] {
		n.all += h.stats.Decisions[agent.Allowed][m].Load()
	}
	return n
}

func (n hits) share(before hits) float64 {
	return float64(n.memory-before.memory) / float64(n.all-before.all)
}
