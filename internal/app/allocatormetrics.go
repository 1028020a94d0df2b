package app

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ration-dev/ration/lease"
)

// newAllocatorMetrics registers what an allocator reports.
func newAllocatorMetrics(reg prometheus.Registerer, a *Allocator) {
	var l live
	s := a.core.Stats()
	l.many(prometheus.CounterValue, "ration_ledger_items_total", "Sync items answered, by result.", []string{"result"},
		func(emit func(float64, ...string)) {
			for code := range s.Items {
				emit(float64(s.Items[code].Load()), resultOf(lease.Code(code)))
			}
		})
	l.counter("ration_ledger_commits_total", "Transactions that committed.", func() float64 { return float64(s.Commits.Load()) })
	l.counter("ration_ledger_committed_items_total", "Sync items in committed transactions.", func() float64 { return float64(s.Batched.Load()) })
	l.counter("ration_ledger_unknown_commits_total", "Transactions whose outcome is unknown.", func() float64 { return float64(s.UnknownCommits.Load()) })
	l.counter("ration_ledger_failed_commits_total", "Transactions that certainly did not commit.", func() float64 { return float64(s.Failed.Load()) })
	l.counter("ration_ledger_reruns_total", "Steps run again for a retried transaction.", func() float64 { return float64(s.Reruns.Load()) })
	l.counter("ration_ledger_swept_budgets_total", "Budgets swept because time demanded it.", func() float64 { return float64(s.Swept.Load()) })
	l.counter("ration_leases_expired_total", "Leases that ended by their deadline.", func() float64 { return float64(s.Expired.Load()) })
	l.counter("ration_leases_written_off_tokens_total", "Tokens lost with leases that expired.", func() float64 { return float64(s.WrittenOff.Load()) })
	l.counter("ration_long_poll_holds_total", "Sync items held until tokens came.", func() float64 { return float64(s.Holds.Load()) })
	l.counter("ration_long_poll_woken_total", "Held sync items that ended with enough.", func() float64 { return float64(s.Woken.Load()) })
	l.counter("ration_unauthenticated_calls_total", "Calls without a good credential.", func() float64 { return float64(a.stats.Unauthenticated.Load()) })
	l.counter("ration_panics_total", "Panics that were caught.", func() float64 {
		return float64(s.Panics.Load()) + float64(a.stats.Panics.Load()) + float64(a.panics.Load())
	})
	l.gauge("ration_clock_offset_seconds", "How far the governed clock is behind the database's.", a.pools.offset)
	poolMetrics(&l, &a.pools)
	reg.MustRegister(append([]prometheus.Collector{l, a.synced}, a.opt.Collectors...)...)
}

// poolMetrics adds what the last look at the ledger found.
func poolMetrics(l *live, p *pools) {
	for _, m := range []struct {
		name, help string
		kind       prometheus.ValueType
		value      func(poolSample) float64
	}{
		{"ration_pool_available_tokens", "Tokens in the pool; 0 in debt.", prometheus.GaugeValue, func(s poolSample) float64 { return s.available }},
		{"ration_pool_outstanding_tokens", "Tokens that leases may still spend.", prometheus.GaugeValue, func(s poolSample) float64 { return s.outstanding }},
		{"ration_pool_debt_tokens", "Tokens the pool owes.", prometheus.GaugeValue, func(s poolSample) float64 { return s.debt }},
		{"ration_pool_leased_tokens_per_second", "Rate that shares mint in the regions.", prometheus.GaugeValue, func(s poolSample) float64 { return s.x }},
		{"ration_pool_local_tokens_total", "Tokens admitted without a lease and booked.", prometheus.CounterValue, func(s poolSample) float64 { return s.local }},
	} {
		l.many(m.kind, m.name, m.help, []string{"budget"}, func(emit func(float64, ...string)) { p.each(emit, m.value) })
	}
}

func resultOf(code lease.Code) string {
	if code == 0 {
		return "ok"
	}
	return code.String()
}

// CommitDurations makes the histogram of a database's commits, and what is
// told of each.
func CommitDurations() (observe func(time.Duration), collectors []prometheus.Collector) {
	took := durations("ration_ledger_commit_duration_seconds", "Time until a commit was durable.")
	return func(d time.Duration) { took.WithLabelValues().Observe(d.Seconds()) }, []prometheus.Collector{took}
}
