package bench

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/load"
)

const (
	// leaseCallers ask for the new budgets, each for the next one that has not
	// been allowed yet.
	leaseCallers = 256
	// leaseRate is each budget's.
	leaseRate = 1000
	// hotBudgets are asked for all the while, at hotRate in all.
	hotBudgets = 100
	hotRate    = 1000
	// leaseTimeout ends a measurement that does not come to an end.
	leaseTimeout = 2 * time.Minute
)

// BenchmarkFirstLeases is how long it takes until very many dynamic budgets
// that are first used at once all have a lease, and what that costs; beside it
// the latency of decisions over budgets that were in use before.
func BenchmarkFirstLeases(b *testing.B) {
	for _, n := range []int{1000, 5000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { firstLeases(b, n) })
	}
}

func firstLeases(b *testing.B, n int) {
	d := deploy(b, 1, routes(b, hotBudgets+n, leaseRate))
	defer d.stop()
	d.firstOf(b, 0, hotBudgets)
	ctx, cancel := context.WithCancel(b.Context())
	hot := make(chan []load.Result)
	go func() { hot <- d.hot(ctx) }()
	steps, redis, here, syncs := d.steps(b), d.redisCPU(b), processCPU(b), d.syncs()
	took, refused := d.firstOf(b, hotBudgets, n)
	steps, redis, here, syncs = d.steps(b)-steps, d.redisCPU(b)-redis, processCPU(b)-here, d.syncs()-syncs
	cancel()
	late := <-hot
	each := func(total float64) string { return count(total / float64(n)) }
	report(Row{
		Item: fmt.Sprintf("First leases of %s budgets at once", count(float64(n))),
		Ours: fmt.Sprintf("%.1f s, %.1f s of CPU and %.1f s of Redis; each %s store steps, %s answers without tokens; %s Sync calls in all; p99 of others' decisions %.1f ms",
			took.Seconds(), here, redis, each(steps), each(float64(refused)), count(float64(syncs)), 1000*p99(b, late)),
		Goal: map[int]string{10_000: "10 s on two idle cores"}[n],
	})
}

// p99 is the median of the runs', in seconds.
func p99(b *testing.B, runs []load.Result) float64 {
	var all []float64
	for _, r := range runs {
		all = append(all, noted(b, r).Quantile(99).Seconds())
	}
	return median(all)
}

// firstOf asks for n budgets from the given one on until each has been
// allowed, and returns how long that took and how many answers were others.
func (d *deployment) firstOf(b *testing.B, from, n int) (took time.Duration, refused int64) {
	b.Helper()
	left := make(chan int, n)
	for i := range n {
		left <- from + i
	}
	ctx, cancel := context.WithTimeout(b.Context(), leaseTimeout)
	defer cancel()
	var allowed, others atomic.Int64
	start := time.Now()
	var running sync.WaitGroup
	for range leaseCallers {
		running.Go(func() {
			for {
				select {
				case <-ctx.Done():
					return
				case i := <-left:
					if d.ask(ctx, i) != nil {
						others.Add(1)
						left <- i
					} else if allowed.Add(1) == int64(n) {
						cancel()
					}
				}
			}
		})
	}
	running.Wait()
	if allowed.Load() < int64(n) {
		b.Errorf("%d of %d budgets were allowed within %v", allowed.Load(), n, leaseTimeout)
	}
	return time.Since(start), others.Load()
}

// hot asks for the hot budgets in turn until ctx ends, in runs of a second, and
// returns each run's result.
func (d *deployment) hot(ctx context.Context) (runs []load.Result) {
	for ctx.Err() == nil {
		runs = append(runs, load.Open(64, hotRate, time.Second, func(_, n int) error {
			return d.ask(context.Background(), n%hotBudgets)
		}))
	}
	return runs
}

// ask makes one decision, which is to be an admission.
func (d *deployment) ask(ctx context.Context, budget int) error {
	answer, err := d.agents[0].Check(ctx, agent.Check{Budgets: []string{"acme/" + route(budget)}, Cost: 1})
	if err == nil && answer.Outcome != agent.Allowed {
		err = fmt.Errorf("%v: %s", answer.Outcome, answer.Reason)
	}
	return err
}

// steps is how many steps the region's store has made. Each of those that are made
// here reads one row, and many share a run of their script.
func (d *deployment) steps(b *testing.B) float64 {
	var calls float64
	if _, err := fmt.Sscanf(infoLine(b, d.redis, "commandstats", "cmdstat_get"), "calls=%f", &calls); err != nil {
		b.Fatal(err)
	}
	return calls
}

// redisCPU is the time in seconds that the region's store has computed for.
func (d *deployment) redisCPU(b *testing.B) (total float64) {
	for _, field := range []string{"used_cpu_user", "used_cpu_sys"} {
		var seconds float64
		if _, err := fmt.Sscan(infoLine(b, d.redis, "cpu", field), &seconds); err != nil {
			b.Fatal(err)
		}
		total += seconds
	}
	return total
}

// processCPU is the same of this process: the agent, the allocator and the
// callers.
func processCPU(tb testing.TB) float64 {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		tb.Fatal(err)
	}
	return (time.Duration(used.Utime.Nano()) + time.Duration(used.Stime.Nano())).Seconds()
}
