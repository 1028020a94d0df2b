package app

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/ration-dev/ration/agent"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

// However many budgets owners make, and whatever they call them, the number of
// series is bounded and their sum is whole.
func TestBudgetLabelsAreBounded(t *testing.T) {
	a := NewAllocator(AllocatorOptions{Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Log: quiet})
	var budgets []policy.Budget
	for i := range 250 {
		budgets = append(budgets, bucket(t, fmt.Sprintf("b%03d", i), 0, 10))
	}
	budgets = append(budgets, bucket(t, otherBudgets, 0, 10))
	if _, err := a.core.Apply(t.Context(), budgets); err != nil {
		t.Fatal(err)
	}
	if err := a.pools.look(t.Context(), a.opt.Store); err != nil {
		t.Fatal(err)
	}
	samples := *a.pools.last.Load()
	var sum float64
	for _, s := range samples {
		sum += s.available
	}
	if len(samples) != maxBudgetLabels+1 || sum != 2510 {
		t.Errorf("%d series with %v tokens together, want %d with 2510", len(samples), sum, maxBudgetLabels+1)
	}
	if _, err := a.registry.Gather(); err != nil {
		t.Errorf("gathering: %v", err)
	}
}

// The same of an agent, which is asked once however often its metrics are
// collected in a short time, and whose last answer stands while it does not answer.
func TestWalletLabelsAreBounded(t *testing.T) {
	asked, answers := 0, true
	w := &wallets{ask: func(_ context.Context, most int) (first []agent.Wallet, others agent.Wallet, ok bool) {
		asked++
		for i := range most {
			first = append(first, agent.Wallet{Budget: fmt.Sprintf("b%03d", i), Live: [lease.Kinds]lease.Tokens{0, 0, 2}})
		}
		first[5].Budget = otherBudgets
		return first, agent.Wallet{Live: [lease.Kinds]lease.Tokens{0, 0, 200}}, answers
	}}
	reg := newRegistry()
	newAgentMetrics(reg, &agent.Stats{}, newAgentTimes(&outage{}), w, &atomic.Int64{})
	gather := func() (sum float64, series int) {
		all, err := reg.Gather()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range all {
			if f.GetName() == "ration_wallet_tokens" {
				for _, m := range f.GetMetric() {
					sum, series = sum+m.GetGauge().GetValue(), series+1
				}
			}
		}
		return sum, series
	}
	for i := range 4 {
		if answers = i < 2; i == 2 {
			w.until = time.Time{}
		}
		if sum, series := gather(); sum != 2*maxBudgetLabels+200 || series != maxBudgetLabels*lease.Kinds {
			t.Errorf("%d series with %v tokens together, want %d with %d", series, sum, maxBudgetLabels*lease.Kinds, 2*maxBudgetLabels+200)
		}
	}
	if asked != 2 {
		t.Errorf("asked %d times, want 1, and 1 once that was old", asked)
	}
}

func none(context.Context, int) (first []agent.Wallet, others agent.Wallet, ok bool) { return }

// Names, units and help follow the conventions.
func TestMetricsAreWellNamed(t *testing.T) {
	observe, commits := CommitDurations()
	observe(1)
	a := NewAllocator(AllocatorOptions{Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Log: quiet, Collectors: commits})
	reg := newRegistry()
	newAgentMetrics(reg, &agent.Stats{}, newAgentTimes(&outage{}), &wallets{ask: none}, &atomic.Int64{})
	for _, r := range []*prometheus.Registry{a.registry, reg} {
		problems, err := testutil.GatherAndLint(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "ration_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
	}
}
