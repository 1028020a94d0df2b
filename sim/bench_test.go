package sim

import (
	"context"
	"fmt"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/ration-dev/ration/policy"
)

// dayOptions is a simulated day of 30,000 requests a second over ten budgets
// in three regions, with a Sync a second, in bulk.
func dayOptions(length, step time.Duration) Options {
	o := Options{
		Seed: 1, Length: length, Topology: threeRegions(1), Bulk: step, SyncEvery: time.Second,
		Check: CheckNone, Windows: []time.Duration{time.Minute}, Points: 500, Bounds: map[string]Bound{},
	}
	for i := range 10 {
		name := fmt.Sprintf("t/%d", i)
		o.Budgets = append(o.Budgets, policy.Budget{Name: name, Contract: perSecond(3300, 33_000)})
		o.Bounds[name] = zero(0)
		for k, r := range []string{"us", "eu", "sa"} {
			o.Workloads = append(o.Workloads, Workload{
				Name: name + r, Region: r, Budgets: []string{name},
				Pattern: Diurnal{Mean: 1000, Swing: 0.5, Shift: time.Duration(k) * 8 * time.Hour},
			})
		}
	}
	return o
}

// processor returns the processor time this process has used, which a busy
// machine does not distort as much as the clock.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkBulkDay reports what a day takes in bulk, by its first half hour: the
// day itself is what runs, because its length decides how often it is sampled.
func BenchmarkBulkDay(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command sets it
	const day, part = 24 * time.Hour, 28 * time.Minute
	for _, step := range []time.Duration{time.Second, 250 * time.Millisecond} {
		b.Run(step.String(), func(b *testing.B) {
			var r *Result
			var done time.Duration
			start, used := time.Now(), processor()
			for b.Loop() {
				r = runUpTo(b, part, dayOptions(day, step))
				done += r.Done
			}
			days := done.Seconds() / day.Seconds()
			b.ReportMetric((processor()-used).Seconds()/days, "cpu-s/day")
			b.ReportMetric(done.Seconds()/time.Since(start).Seconds(), "x-real-time")
			b.ReportMetric(time.Since(start).Seconds()/days, "s/day")
			b.ReportMetric(100*r.Total.Utilisation(), "%used")
			b.ReportMetric(100*r.Total.FalseDenialRate(), "%false")
		})
	}
}

// runUpTo interrupts a run at the first progress that is told after an instant.
func runUpTo(b *testing.B, until time.Duration, o Options) *Result {
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	o.Progress = func(done time.Duration) {
		if done >= until {
			stop()
		}
	}
	r, err := Run(ctx, o)
	if err != nil || r.Done < until {
		b.Fatal(r, err)
	}
	return r
}

// BenchmarkRequests reports simulated requests per second where prefetch
// serves them.
func BenchmarkRequests(b *testing.B) {
	o := Options{
		Seed: 1, Length: 5 * time.Second, Topology: threeRegions(1), Check: CheckNone,
		Budgets: []policy.Budget{{Name: "t/a", Contract: perSecond(400_000, 400_000)}},
	}
	for _, r := range []string{"us", "eu", "sa"} {
		o.Workloads = append(o.Workloads, Workload{Region: r, Budgets: []string{"t/a"}, Pattern: Constant{PerSecond: 100_000}})
	}
	var n int64
	start, used := time.Now(), processor()
	for b.Loop() {
		n += run(b, o).Decisions
	}
	b.ReportMetric(float64(n)/(processor()-used).Seconds(), "requests/cpu-s")
	b.ReportMetric(float64(n)/time.Since(start).Seconds(), "requests/s")
}
