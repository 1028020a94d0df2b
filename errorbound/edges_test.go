package errorbound_test

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// What a fault can reach is bounded by how long leases live, by what a process
// may hold, and by how long an old primary goes on.
func TestEdgesOfFaults(t *testing.T) {
	async := errorbound.Deployment{AsyncLedger: true}
	known := errorbound.Deployment{Unfenced: true, StoreLag: second / 10, SpendRate: perSecond(900), Failovers: 1}
	known.ReplicatedStores, known.StoreIsolation = true, second/2
	for _, c := range []struct {
		note   string
		budget policy.Budget
		deploy errorbound.Deployment
		cause  errorbound.Name
		want   lease.Tokens
	}{
		// A paced share lives 10.275522 s, one of share_ttl through the window.
		{"lost commits, short leases", worked(t, policy.Dynamic), async, errorbound.LedgerLoss, 1000 + 10_286},
		{"lost commits, long leases", worked(t, policy.Static), async, errorbound.LedgerLoss, 1000 + 60_060},
		{"lost commits, a reserve", reserved(t), async, errorbound.LedgerLoss, 1000 + 60_060},
		// 900/s for the lag and the isolation.
		{"old primary at a known rate", worked(t, policy.Dynamic), known, errorbound.StaleStore, 540},
		{"a rate below one a tick", worked(t, policy.Dynamic), errorbound.Deployment{}, errorbound.Rounding, 1},
		{"a rate above it", fastest(t, policy.Dynamic), errorbound.Deployment{}, errorbound.Rounding, 3},
		{"three contracts above it", fastest(t, policy.Independent), errorbound.Deployment{}, errorbound.Rounding, 8},
		// A minute of a clock that is fast by a thousandth, and what a tick mints above a token.
		{"regranted above it", fastest(t, policy.Static), errorbound.Deployment{Deployment: policy.Deployment{ReplicatedStores: true}}, errorbound.RegrantedShare, 1000 + 150_150_000 + 2},
		{"small contracts are not prefetched", sized(t, 99), errorbound.Deployment{Suspended: 1}, errorbound.Suspension, 0},
		{"others are", sized(t, 100), errorbound.Deployment{Suspended: 1}, errorbound.Suspension, 12},
	} {
		if got := over(t, c.budget, c.deploy, time.Minute).Of(c.cause); got != c.want {
			t.Errorf("%s: %d, want %d", c.note, got, c.want)
		}
	}
}

// fastest has a budget with 2.5 tokens in a tick.
func fastest(t *testing.T, s policy.Strategy) policy.Budget {
	b := worked(t, s)
	b.Contract.Rate = perSecond(2_500_000)
	return normal(t, b)
}

func reserved(t *testing.T) policy.Budget {
	b := worked(t, policy.Dynamic)
	b.Regions[0].Reserve = policy.Reserve{Rate: perSecond(1), Burst: 1}
	return normal(t, b)
}

func sized(t *testing.T, burst lease.Tokens) policy.Budget {
	b := worked(t, policy.Dynamic)
	b.Contract.Burst = burst
	return normal(t, b)
}

// While a limit is being cut, faults find what the old one left: its ceiling,
// its rate, its regions, its lifetimes.
func TestFaultsDuringACut(t *testing.T) {
	before, after := worked(t, policy.Dynamic), worked(t, policy.Dynamic)
	after.Contract = policy.Contract{Rate: perSecond(100), Burst: 100}
	cut := func(before, after policy.Budget, d errorbound.Deployment, w time.Duration, cause errorbound.Name) lease.Tokens {
		t.Helper()
		bound, err := errorbound.OverCut(before, after, d, w)
		if err != nil {
			t.Fatal(err)
		}
		return bound.Of(cause)
	}
	if got := cut(before, after, errorbound.Deployment{AsyncLedger: true}, 2*second, errorbound.LedgerLoss); got != 1000+2002 {
		t.Errorf("ceiling and rate: %d", got)
	}
	long := before
	long.TTL = time.Minute
	if got := cut(long, after, errorbound.Deployment{AsyncLedger: true}, 20*second, errorbound.LedgerLoss); got != 1000+20_020 {
		t.Errorf("lifetime: %d", got)
	}
	local := policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}
	fewer := after
	fewer.Regions, fewer.OnFailure = fewer.Regions[:1], local
	if got := cut(before, fewer, errorbound.Deployment{}, 2*second, errorbound.LocalStores); got != 3*40 {
		t.Errorf("regions: %d", got)
	}
	if got := cut(worked(t, policy.Independent), after, errorbound.Deployment{}, 2*second, errorbound.Drift); got != 6 {
		t.Errorf("contracts of the pool: %d", got)
	}
	if got := cut(worked(t, policy.Independent), after, errorbound.Deployment{AsyncLedger: true}, 2*second, errorbound.LedgerLoss); got != 3*(1000+2002) {
		t.Errorf("ceiling of the pool: %d", got)
	}
	// An independent pool of three contracts that becomes one of 100 and 100/s.
	if got := cut(worked(t, policy.Independent), after, errorbound.Deployment{}, 2*second, errorbound.LimitCut); got != 2900+2*2900 {
		t.Errorf("what it leaves: %d", got)
	}
}
