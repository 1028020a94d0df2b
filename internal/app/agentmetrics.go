package app

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// agentTimes is the agent.Observer of a server.
type agentTimes struct {
	decided, stored, synced *prometheus.HistogramVec
	// byOutcome has decided's histograms: to look one up by its label takes
	// longer than a decision from memory.
	byOutcome [agent.Unavailable + 1]prometheus.Observer
	store     *outage
}

func newAgentTimes(store *outage) *agentTimes {
	t := &agentTimes{
		store:   store,
		decided: durations("ration_decision_duration_seconds", "Time to decide, waits for tokens included.", "outcome"),
		stored:  durations("ration_store_duration_seconds", "Time of one call of the region's store.", "step", "result"),
		synced:  durations("ration_sync_duration_seconds", "Time of one SyncLeases call.", "result"),
	}
	for o := agent.Allowed; o <= agent.Unavailable; o++ {
		t.byOutcome[o] = t.decided.WithLabelValues(o.String())
	}
	return t
}

// AgentObserver is the observer that an Agent has, for whoever measures what
// observing costs.
func AgentObserver() agent.Observer {
	start := time.Now()
	return newAgentTimes(&outage{what: "the region's store", now: func() time.Duration { return 1 + time.Since(start) }})
}

func (t *agentTimes) Decided(took time.Duration, outcome agent.Outcome, _ agent.Mode) {
	t.byOutcome[outcome].Observe(took.Seconds())
}

func (t *agentTimes) StoreCalled(took time.Duration, step string, err error) {
	t.store.saw(err)
	t.stored.WithLabelValues(step, okOrFailed(err)).Observe(took.Seconds())
}

func (t *agentTimes) Synced(took time.Duration, _ int, err error) {
	t.synced.WithLabelValues(okOrFailed(err)).Observe(took.Seconds())
}

func okOrFailed(err error) string {
	if err != nil {
		return "failed"
	}
	return "ok"
}

// newAgentMetrics registers what an agent reports. panics counts those of the
// servers around it.
func newAgentMetrics(reg prometheus.Registerer, s *agent.Stats, times *agentTimes, w *wallets, panics *atomic.Int64) {
	var l live
	count := func(name, help string, n *atomic.Int64) {
		l.counter(name, help, func() float64 { return float64(n.Load()) })
	}
	decisionMetrics(&l, s)
	l.many(prometheus.CounterValue, "ration_sync_items_total", "Sync items, by result.", []string{"result"}, func(emit func(float64, ...string)) {
		for r := range s.Syncs {
			emit(float64(s.Syncs[r].Load()), agent.SyncResult(r).String())
		}
	})
	l.many(prometheus.CounterValue, "ration_incarnation_changes_total",
		"New lives in the region's store: rows opened, rows found from another life of the store, leases given a new name.", []string{"what"},
		func(emit func(float64, ...string)) {
			emit(float64(s.Opened.Load()), "opened")
			emit(float64(s.Voided.Load()), "voided")
			emit(float64(s.Incarnations.Load()), "lease")
		})
	l.many(prometheus.CounterValue, "ration_local_tokens_total", "Tokens admitted without a lease, by where they were counted.", []string{"where"},
		func(emit func(float64, ...string)) {
			emit(float64(s.LocalStore.Load()), "store")
			emit(float64(s.LocalProcess.Load()), "process")
		})
	count("ration_sync_calls_total", "SyncLeases calls.", &s.SyncCalls)
	count("ration_sequences_resumed_total", "Pending sequences of other processes sent again.", &s.Resumed)
	count("ration_prefetched_tokens_total", "Tokens taken into memory ahead of use.", &s.Prefetched)
	count("ration_prefetch_returned_tokens_total", "Prefetched tokens given back unused.", &s.GivenBack)
	count("ration_prefetch_discarded_tokens_total", "Prefetched tokens dropped because the process was late.", &s.Discarded)
	count("ration_late_takes_total", "Takes whose answer came after their decision went on without it.", &s.LateTakes)
	count("ration_late_tokens_total", "Tokens used by such takes, for nobody.", &s.LateTokens)
	count("ration_store_errors_total", "Store calls of unknown outcome.", &s.StoreErrors)
	count("ration_breaker_opened_total", "Times that the store's circuit breaker opened.", &s.BreakerOpened)
	count("ration_breaker_refused_total", "Store calls that the breaker stopped.", &s.BreakerRefused)
	count("ration_urgent_dropped_total", "Urgent requests that found the queue full.", &s.UrgentDropped)
	l.counter("ration_panics_total", "Panics that were caught.", func() float64 { return float64(s.Panics.Load() + panics.Load()) })
	l.many(prometheus.GaugeValue, "ration_wallet_tokens", "Tokens that the region could spend when this agent looked last, by lease.", []string{"budget", "lease"}, w.each)
	reg.MustRegister(l, times.decided, times.stored, times.synced)
}

func decisionMetrics(l *live, s *agent.Stats) {
	l.many(prometheus.CounterValue, "ration_decisions_total", "Decisions, by outcome and by what they rest on.", []string{"outcome", "mode"},
		func(emit func(float64, ...string)) {
			for o := agent.Allowed; o <= agent.Unavailable; o++ {
				for m := agent.FromPrefetch; m <= agent.FromMemory; m++ {
					emit(float64(s.Decisions[o][m].Load()), o.String(), m.String())
				}
			}
		})
	l.counter("ration_invalid_checks_total", "Checks refused as malformed.", func() float64 { return float64(s.Invalid.Load()) })
	l.counter("ration_waiters_refused_total", "Decisions that could not wait because too many others did.", func() float64 { return float64(s.WaitersRefused.Load()) })
}

// wallets are what the region holds of the budgets in use, as of a look that who
// collects repeats after walletPeriod; the last one stands while the agent does not
// answer.
type wallets struct {
	// ask looks; most is how many budgets are told apart.
	ask func(ctx context.Context, most int) (first []agent.Wallet, others agent.Wallet, ok bool)

	mu    sync.Mutex // guards what follows
	until time.Time  // until when nobody looks again
	last  []agent.Wallet
}

const (
	walletPeriod = 2 * time.Second
	// walletPatience is how long a look may take, which waits for what the agent is
	// at.
	walletPatience = time.Second
)

// each emits the first maxBudgetLabels budgets by name, and one series for all
// others, of which a budget is that has its name.
func (w *wallets) each(emit func(float64, ...string)) {
	for _, one := range w.fresh() {
		for k := range one.Live {
			emit(float64(one.Live[k]), one.Budget, lease.Kind(k+1).String())
		}
	}
}

func (w *wallets) fresh() []agent.Wallet {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Now().Before(w.until) {
		return w.last
	}
	ctx, cancel := context.WithTimeout(context.Background(), walletPatience)
	defer cancel()
	first, others, ok := w.ask(ctx, maxBudgetLabels)
	w.until = time.Now().Add(walletPeriod)
	if !ok {
		return w.last
	}
	named := slices.IndexFunc(first, func(one agent.Wallet) bool { return one.Budget == otherBudgets })
	if named >= 0 {
		others.Add(&first[named])
		first = slices.Delete(first, named, named+1)
	}
	if others != (agent.Wallet{}) {
		others.Budget = otherBudgets
		first = append(first, others)
	}
	w.last = first
	return w.last
}
