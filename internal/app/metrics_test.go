package app

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

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

func TestWalletLabelsAreBounded(t *testing.T) {
	w := &wallets{}
	var all []agent.Wallet
	for i := range 300 {
		all = append(all, agent.Wallet{Budget: fmt.Sprintf("b%03d", i), Live: [lease.Kinds]lease.Tokens{0, 0, 2}})
	}
	all[5].Budget = otherBudgets
	w.look(all)
	reg := newRegistry()
	newAgentMetrics(reg, &agent.Stats{}, newAgentTimes(&outage{}), w, &atomic.Int64{})
	n, err := testutil.GatherAndCount(reg, "ration_wallet_tokens")
	if err != nil || n > (maxBudgetLabels+1)*lease.Kinds {
		t.Errorf("%d series, %v", n, err)
	}
}

// Names, units and help follow the conventions.
func TestMetricsAreWellNamed(t *testing.T) {
	observe, commits := CommitDurations()
	observe(1)
	a := NewAllocator(AllocatorOptions{Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Log: quiet, Collectors: commits})
	reg := newRegistry()
	newAgentMetrics(reg, &agent.Stats{}, newAgentTimes(&outage{}), &wallets{}, &atomic.Int64{})
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
