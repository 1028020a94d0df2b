package sim

import (
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

// BenchmarkBulkDay reports how much faster than real time a day passes.
func BenchmarkBulkDay(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // as the command sets it
	for _, step := range []time.Duration{time.Second, 250 * time.Millisecond} {
		b.Run(step.String(), func(b *testing.B) {
			const length = 24 * time.Hour / 48
			var r *Result
			start, used := time.Now(), processor()
			for b.Loop() {
				r = run(b, dayOptions(length, step))
			}
			took := time.Since(start) / time.Duration(b.N)
			used = (processor() - used) / time.Duration(b.N)
			b.ReportMetric(used.Seconds()*48, "cpu-s/day")
			b.ReportMetric(length.Seconds()/took.Seconds(), "x-real-time")
			b.ReportMetric(took.Seconds()*48, "s/day")
			b.ReportMetric(100*r.Total.Utilisation(), "%used")
			b.ReportMetric(100*r.Total.FalseDenialRate(), "%false")
		})
	}
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
