package errorbound_test

import (
	"errors"
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

const second = time.Second

func perSecond(n lease.Tokens) lease.Rate { return lease.Rate{Tokens: n, Per: second} }

func normal(t testing.TB, b policy.Budget) policy.Budget {
	t.Helper()
	n, err := b.Normalize(policy.DefaultDeployment())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// worked is the budget of the worked example: three regions, 1000 tokens, 1000/s.
func worked(t testing.TB, s policy.Strategy) policy.Budget {
	return normal(t, policy.Budget{
		Name: "acme/worked", Strategy: s, Contract: policy.Contract{Rate: perSecond(1000), Burst: 1000},
		Regions: []policy.Region{{Name: "ap"}, {Name: "eu"}, {Name: "us"}},
	})
}

func over(t testing.TB, b policy.Budget, d errorbound.Deployment, w time.Duration) errorbound.Bound {
	t.Helper()
	bound, err := errorbound.Over(b, d, w)
	if err != nil {
		t.Fatal(err)
	}
	return bound
}

// The worked example, W = 2 s and rho = 1e-3, plus the token of
// rounding, and the other causes, all worked by hand.
func TestWorkedExample(t *testing.T) {
	local := policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}
	for _, c := range []struct {
		note     string
		strategy policy.Strategy
		budget   func(*policy.Budget)
		deploy   func(*errorbound.Deployment)
		cause    errorbound.Name
		of       lease.Tokens
		total    lease.Tokens
	}{
		{"static split", policy.Static, nil, nil, errorbound.Drift, 2, 2 + 1},
		{"independent quotas", policy.Independent, nil, nil, errorbound.Independence, 6000, 6000 + 6 + 1},
		{"dynamic", policy.Dynamic, func(b *policy.Budget) { b.Float = 140 }, nil, errorbound.Float, 140, 142 + 1},
		// sigma 900/s for 0.1 s, one store.
		{"unfenced fail-over", policy.Dynamic, func(b *policy.Budget) { b.Float = 140 }, func(d *errorbound.Deployment) {
			d.Unfenced, d.StoreLag, d.SpendRate, d.Failovers = true, second/10, perSecond(900), 1
		}, errorbound.StaleStore, 90, 142 + 1 + 90},
		// At an unknown rate, all that can be held, in every region.
		{"unfenced fail-overs", policy.Dynamic, func(b *policy.Budget) { b.Float = 140 }, func(d *errorbound.Deployment) {
			d.Unfenced, d.StoreLag = true, second/10
		}, errorbound.StaleStore, 3 * 1140, 143 + 3*1140},
		// 20 + 10·2·1.001 in each of three stores.
		{"local allowance", policy.Dynamic, func(b *policy.Budget) { b.OnFailure = local }, nil, errorbound.LocalStores, 3 * 40, 3 + 120},
		// Processes mint 10·1.001 in a second without the store.
		{
			"stores away", policy.Dynamic, func(b *policy.Budget) { b.OnFailure = local }, func(d *errorbound.Deployment) { d.StoreOutage = second },
			errorbound.LocalProcesses, 3 * 10, 3 + 120 + 30,
		},
		// An old primary for half a second: 20 + 10·2·1.001 + 10·0.5·1.001 of the
		// allowance, and 1000 + 1000·2·1.001 of a share, three times: for longer
		// than the window, as its ttl of 3 s comes after the isolation.
		{"isolated primaries", policy.Dynamic, func(b *policy.Budget) { b.OnFailure = local }, func(d *errorbound.Deployment) {
			d.ReplicatedStores, d.StoreIsolation = true, second/2
		}, errorbound.RegrantedShare, 3 * 3002, 3 + 3*45 + 3*3002},
		{"isolated primaries of a static split", policy.Static, nil, func(d *errorbound.Deployment) {
			d.ReplicatedStores, d.StoreIsolation = true, second/2
		}, errorbound.RegrantedShare, 1501, 3 + 1501},
		{"isolated primaries, waiting", policy.Dynamic, func(b *policy.Budget) { b.OnStoreLoss = policy.Wait }, func(d *errorbound.Deployment) {
			d.ReplicatedStores = true
		}, errorbound.RegrantedShare, 0, 3},
		// An eighth of 1000 each; 24 processes at most.
		{"suspended processes", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.Suspended = 2 }, errorbound.Suspension, 250, 3 + 250},
		{"all suspended", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.Suspended = 100 }, errorbound.Suspension, 24 * 125, 3 + 24*125},
		{"declared prefetch", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.Suspended, d.Prefetch = 1, 7 }, errorbound.Suspension, 7, 3 + 7},
		{"asynchronous ledger", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.AsyncLedger = true }, errorbound.LedgerLoss, 1000 + 2002, 3 + 3002},
		{
			"asynchronous ledger, independent", policy.Independent, nil, func(d *errorbound.Deployment) { d.AsyncLedger = true },
			errorbound.LedgerLoss, 3 * 3002, 6007 + 9006,
		},
		{"step of the ledger", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.LedgerStep = second / 4 }, errorbound.LedgerStep, 250, 3 + 250},
		{"long step of the ledger", policy.Dynamic, nil, func(d *errorbound.Deployment) { d.LedgerStep = 3 * second }, errorbound.LedgerStep, 1000, 3 + 1000},
		{"step of a store", policy.Independent, nil, func(d *errorbound.Deployment) { d.StoreStep = second / 20 }, errorbound.StoreStep, 50, 6007 + 50},
	} {
		b, d := worked(t, c.strategy), errorbound.Deployment{}
		if c.budget != nil {
			c.budget(&b)
		}
		d.Clocks = lease.DefaultClocks()
		if c.deploy != nil {
			c.deploy(&d)
		}
		bound := over(t, b, d, 2*second)
		if bound.Of(c.cause) != c.of || bound.Total != c.total || bound.Contract != 3000 {
			t.Errorf("%s: %s %d, total %d of %d; want %d and %d of 3000\n%+v", c.note, c.cause, bound.Of(c.cause), bound.Total, bound.Contract, c.of, c.total, bound.Causes)
		}
	}
}

func TestQuotas(t *testing.T) {
	q := policy.Budget{
		Name: "q", Contract: policy.Contract{Quota: policy.Quota{N: 9000, Per: policy.Day}},
		Regions: []policy.Region{{Name: "eu"}, {Name: "us"}},
	}
	d := errorbound.Deployment{StoreStep: second, Suspended: 1}
	d.ReplicatedStores = true
	for _, c := range []struct {
		note  string
		edit  func(*policy.Budget)
		total lease.Tokens
	}{
		{"dynamic", nil, 9000 / 8},
		{"independent", func(b *policy.Budget) { b.Strategy = policy.Independent }, 9000 + 9000/8},
		// 26 h at 1/h in two stores, each with a second bucket after a promotion.
		{"local allowance", func(b *policy.Budget) {
			b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: lease.Rate{Tokens: 1, Per: time.Hour}, Burst: 5}
		}, 9000/8 + 2*(2*(5+26))},
	} {
		b := q
		if c.edit != nil {
			c.edit(&b)
		}
		bound := over(t, normal(t, b), d, 0)
		if bound.Total != c.total || bound.Window != 0 || bound.Contract != 9000 {
			t.Errorf("%s: total %d of %d in %v, want %d of 9000\n%+v", c.note, bound.Total, bound.Contract, bound.Window, c.total, bound.Causes)
		}
	}
}

// A quota's windows follow the database's clock as it stands: a step over the
// end of one leaves all that is out of it to be spent in the next.
func TestACalendarThatStepsCostsAWindow(t *testing.T) {
	q := policy.Budget{Name: "q", Contract: policy.Contract{Quota: policy.Quota{N: 9000, Per: policy.Day}}}
	for _, d := range []errorbound.Deployment{{CalendarStep: time.Microsecond}, {LedgerStep: second}} {
		if bound := over(t, normal(t, q), d, 0); bound.Of(errorbound.WindowEdge) != 9000 || bound.Total != 9000 {
			t.Errorf("%+v", bound.Causes)
		}
	}
	q.Strategy, q.Regions = policy.Independent, []policy.Region{{Name: "eu"}, {Name: "us"}}
	if bound := over(t, normal(t, q), errorbound.Deployment{CalendarStep: second}, 0); bound.Of(errorbound.WindowEdge) != 2*9000 {
		t.Errorf("%+v", bound.Causes)
	}
}

// After a cut, what is out above the new ceiling replaces the float where it
// is larger, and shares mint on above the new rate until they die.
func TestOverCut(t *testing.T) {
	before, after := worked(t, policy.Dynamic), worked(t, policy.Dynamic)
	before.Float, after.Float = 100, 40
	after.Contract = policy.Contract{Rate: perSecond(400), Burst: 500}
	d := errorbound.Deployment{}
	for _, c := range []struct {
		note          string
		before, after policy.Budget
		w             time.Duration
		cut, total    lease.Tokens
	}{
		// 1100 - 540, and 600/s for 2 s; drift is the old rate's.
		{"cut", before, after, 2 * second, 560 + 1200, 40 + 1760 + 2 + 1},
		// A lease lives for 10 s and its guard: (10.25 s·2·rho/(1 - rho) rounded
		// up + 1 µs) + 250 ms + 5 ms.
		{"cut, long window", before, after, 60 * second, 560 + 6166, 40 + 6726 + 60 + 1},
		{"raise", after, before, 2 * second, 0, 100 + 2 + 1},
		{"no change", before, before, 2 * second, 0, 100 + 2 + 1},
	} {
		bound, err := errorbound.OverCut(c.before, c.after, d, c.w)
		if err != nil || bound.Of(errorbound.LimitCut) != c.cut || bound.Total != c.total {
			t.Errorf("%s: cut %d, total %d, %v; want %d and %d", c.note, bound.Of(errorbound.LimitCut), bound.Total, err, c.cut, c.total)
		}
	}
	if steady := over(t, before, d, 2*second); steady.Of(errorbound.LimitCut) != 0 {
		t.Error("a limit that is not cut has an excess")
	}
	_, err := errorbound.OverCut(before, normal(t, policy.Budget{Name: "q", Contract: policy.Contract{Quota: policy.Quota{N: 1, Per: policy.Day}}}), d, second)
	if lease.CodeOf(err) != lease.Invalid {
		t.Errorf("a bucket that becomes a quota: %v", err)
	}
}

// What still goes by the old policy is bounded by the worse of the two.
func TestOverCutKeepsTheOldAllowance(t *testing.T) {
	before, after := worked(t, policy.Dynamic), worked(t, policy.Static)
	before.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}
	before.OnStoreLoss, after.OnStoreLoss = policy.Regrant, policy.Wait
	d := errorbound.Deployment{}
	d.ReplicatedStores, d.StoreIsolation = true, second/2
	bound, err := errorbound.OverCut(before, after, d, 2*second)
	if err != nil || bound.Of(errorbound.LocalStores) != 3*45 || bound.Of(errorbound.RegrantedShare) != 3*3002 {
		t.Errorf("%+v, %v", bound, err)
	}
}

// drawn is a normalized budget, a deployment and a window, all at random.
func drawn(t *rapid.T) (policy.Budget, errorbound.Deployment, time.Duration) {
	d := errorbound.Deployment{
		Regions: rapid.IntRange(0, 9).Draw(t, "regions"), AgentsPerRegion: rapid.IntRange(0, 20).Draw(t, "agents"),
		Prefetch: lease.Tokens(rapid.Int64Range(0, 50).Draw(t, "prefetch")), Suspended: rapid.IntRange(0, 100).Draw(t, "suspended"),
		Unfenced: rapid.Bool().Draw(t, "unfenced"), StoreLag: span(t, "lag"), Failovers: rapid.IntRange(0, 5).Draw(t, "failovers"),
		LedgerStep: span(t, "ledger step"), StoreStep: span(t, "store step"), AsyncLedger: rapid.Bool().Draw(t, "async"),
		RTT: span(t, "rtt"), Outage: span(t, "outage"),
	}
	if rapid.Bool().Draw(t, "spend rate known") {
		d.SpendRate = rateOf(t, "spend rate")
	}
	d.Clocks = lease.DefaultClocks()
	d.Clocks.DriftPPM = rapid.Int64Range(0, 100_000).Draw(t, "drift")
	d.ReplicatedStores = rapid.Bool().Draw(t, "replicated")
	d.StoreIsolation, d.StoreOutage = span(t, "isolation"), span(t, "store outage")
	return budgetOf(t), d, time.Duration(rapid.Int64Range(1, 20_000_000).Draw(t, "window")) * time.Microsecond
}

func span(t *rapid.T, label string) time.Duration {
	return time.Duration(rapid.Int64Range(0, 5_000).Draw(t, label)) * time.Millisecond
}

func rateOf(t *rapid.T, label string) lease.Rate {
	return lease.Rate{
		Tokens: lease.Tokens(rapid.Int64Range(1, 5000).Draw(t, label)),
		Per:    rapid.SampledFrom([]time.Duration{second, time.Minute, time.Hour, 250 * time.Millisecond, 7 * second}).Draw(t, label+" period"),
	}
}

func budgetOf(t *rapid.T) policy.Budget {
	b := policy.Budget{
		Name:        "acme/any",
		Strategy:    rapid.SampledFrom([]policy.Strategy{policy.Static, policy.Independent, policy.Dynamic}).Draw(t, "strategy"),
		OnStoreLoss: rapid.SampledFrom([]policy.OnStoreLoss{policy.Regrant, policy.Wait}).Draw(t, "store loss"),
	}
	if rapid.IntRange(0, 4).Draw(t, "quota") == 0 {
		b.Contract.Quota = policy.Quota{N: lease.Tokens(rapid.Int64Range(100, 1_000_000).Draw(t, "n")), Per: rapid.SampledFrom([]policy.Period{policy.Hour, policy.Day, policy.Month}).Draw(t, "per")}
	} else {
		b.Contract = policy.Contract{Rate: rateOf(t, "rate"), Burst: lease.Tokens(rapid.Int64Range(10, 100_000).Draw(t, "burst"))}
		if b.Strategy != policy.Independent {
			b.OverAdmission.Tokens = lease.Tokens(rapid.Int64Range(0, 1000).Draw(t, "float"))
		}
	}
	names := []string{"ap", "eu", "sa", "us"}[:rapid.IntRange(1, 4).Draw(t, "named")]
	if b.Strategy != policy.Dynamic || rapid.Bool().Draw(t, "names regions") {
		for _, n := range names {
			b.Regions = append(b.Regions, policy.Region{Name: n})
		}
	}
	if rapid.Bool().Draw(t, "local") {
		b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: rateOf(t, "local rate"), Burst: lease.Tokens(rapid.Int64Range(1, 500).Draw(t, "local burst"))}
	}
	n, err := b.Normalize(policy.DefaultDeployment())
	if err != nil {
		t.Skip("not a budget")
	}
	return n
}

// Every number is what its formula, as printed, comes to, and the total is
// their sum. Seen to catch: a formula printed without its second bucket.
func TestFormulasSayWhatWasComputed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, w := drawn(t)
		bound, err := errorbound.Over(b, d, w)
		if err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "cut") {
			before := b
			before.Contract.Burst *= 2
			before.Contract.Quota.N *= 2
			before.Contract.Rate.Tokens *= 3
			if bound, err = errorbound.OverCut(before, b, d, w); err != nil {
				t.Fatal(err)
			}
		}
		sum := lease.Tokens(0)
		for _, c := range bound.Causes {
			sum += c.Tokens
			switch {
			case c.Tokens < 0, c.Zero == "", c.Formula == "" && c.Tokens != 0:
				t.Fatalf("%+v", c)
			case c.Formula != "":
				v, err := evaluate(c.Formula)
				if err != nil || roundedUp(v).Cmp(new(big.Rat).SetInt64(int64(c.Tokens))) != 0 {
					t.Fatalf("%s is %d, its formula %s is %v (%v)", c.Name, c.Tokens, c.Formula, v, err)
				}
			}
		}
		if bound.Total != sum {
			t.Fatalf("total %d, sum %d", bound.Total, sum)
		}
	})
}

// A bound falls with nothing that gets worse.
func TestOverIsMonotone(t *testing.T) {
	longer := func(d *time.Duration) { *d += 700 * time.Millisecond }
	worse := map[string]func(*policy.Budget, *errorbound.Deployment, *time.Duration){
		"window":    func(_ *policy.Budget, _ *errorbound.Deployment, w *time.Duration) { longer(w) },
		"burst":     func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.Contract.Burst += 9 },
		"rate":      func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.Contract.Rate.Tokens += 9 },
		"n":         func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.Contract.Quota.N += 9 },
		"float":     func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.Float += 9 },
		"ttl":       func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { longer(&b.TTL) },
		"share ttl": func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { longer(&b.ShareTTL) },
		"regrant":   func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.OnStoreLoss = policy.Regrant },
		"local": func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) {
			b.OnFailure.Mode = policy.AllowLocal
		},
		"local rate": func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) { b.OnFailure.Rate.Tokens += 3 },
		"local burst": func(b *policy.Budget, _ *errorbound.Deployment, _ *time.Duration) {
			b.OnFailure.Burst += 3
		},
		"drift":   func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.Clocks.DriftPPM += 500 },
		"regions": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.Regions = max(3, d.Regions) + 1 },
		"agents": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) {
			d.AgentsPerRegion = max(8, d.AgentsPerRegion) + 1
		},
		"suspended": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.Suspended++ },
		"prefetch":  func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.Prefetch = d.Prefetch + 200_000 },
		"unfenced":  func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.Unfenced = true },
		"lag":       func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { longer(&d.StoreLag) },
		"spend rate": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) {
			if d.SpendRate.Tokens *= 2; rapidUnknown(d.SpendRate) {
				d.SpendRate = lease.Rate{}
			}
		},
		"failovers": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) {
			d.Failovers = max(9, d.Failovers) + 1
		},
		"ledger step":  func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { longer(&d.LedgerStep) },
		"store step":   func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { longer(&d.StoreStep) },
		"async":        func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.AsyncLedger = true },
		"replicated":   func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.ReplicatedStores = true },
		"store outage": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { longer(&d.StoreOutage) },
		"no isolation": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) { d.StoreIsolation = 0 },
		"isolation": func(_ *policy.Budget, d *errorbound.Deployment, _ *time.Duration) {
			if d.StoreIsolation > 0 {
				longer(&d.StoreIsolation)
			}
		},
	}
	for name, edit := range worse {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				b, d, w := drawn(t)
				before, err := errorbound.Over(b, d, w)
				if err != nil {
					t.Fatal(err)
				}
				edit(&b, &d, &w)
				after, err := errorbound.Over(b, d, w)
				if err != nil {
					t.Fatal(err)
				}
				if after.Total < before.Total {
					t.Fatalf("falls from %d to %d\n%+v\n%+v", before.Total, after.Total, before.Causes, after.Causes)
				}
			})
		})
	}
}

func rapidUnknown(r lease.Rate) bool { return r.Tokens > 8000 }

// What is too large for its type saturates upwards, and never wraps.
func TestBoundsSaturate(t *testing.T) {
	b := worked(t, policy.Dynamic)
	b.Contract = policy.Contract{Rate: lease.Rate{Tokens: lease.MaxTokens, Per: time.Microsecond}, Burst: lease.MaxTokens}
	bound := over(t, b, errorbound.Deployment{AsyncLedger: true}, 24*time.Hour)
	if bound.Total != 1<<63-1 || bound.Contract != 1<<63-1 {
		t.Errorf("total %d, contract %d", bound.Total, bound.Contract)
	}
}

func TestDeploymentNamesTheFieldAtFault(t *testing.T) {
	b := worked(t, policy.Dynamic)
	for field, edit := range map[string]func(*errorbound.Deployment){
		"clocks.drift_ppm":  func(d *errorbound.Deployment) { d.Clocks.DriftPPM = 500_001 },
		"clocks.back_step":  func(d *errorbound.Deployment) { d.Clocks.BackStep = -1 },
		"clocks.quantum":    func(d *errorbound.Deployment) { d.Clocks.Quantum = 1 },
		"regions":           func(d *errorbound.Deployment) { d.Regions = policy.MaxRegions + 1 },
		"agents_per_region": func(d *errorbound.Deployment) { d.AgentsPerRegion = -1 },
		"prefetch":          func(d *errorbound.Deployment) { d.Prefetch = -1 },
		"suspended":         func(d *errorbound.Deployment) { d.Suspended = -1 },
		"failovers":         func(d *errorbound.Deployment) { d.Failovers = -1 },
		"spend_rate":        func(d *errorbound.Deployment) { d.SpendRate = lease.Rate{Tokens: 1} },
		"store_isolation":   func(d *errorbound.Deployment) { d.StoreIsolation = -second },
		"store_outage":      func(d *errorbound.Deployment) { d.StoreOutage = 367 * 24 * time.Hour },
		"store_lag":         func(d *errorbound.Deployment) { d.StoreLag = 1 },
		"ledger_step":       func(d *errorbound.Deployment) { d.LedgerStep = -second },
		"store_step":        func(d *errorbound.Deployment) { d.StoreStep = -second },
		"rtt":               func(d *errorbound.Deployment) { d.RTT = -second },
		"outage":            func(d *errorbound.Deployment) { d.Outage = -second },
	} {
		d := errorbound.DefaultDeployment()
		edit(&d)
		_, err := errorbound.Over(b, d, second)
		if e, ok := errors.AsType[*lease.Error](err); !ok || e.Code != lease.Invalid || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	for _, w := range []time.Duration{0, -second, 1} {
		if _, err := errorbound.Over(b, errorbound.Deployment{}, w); lease.CodeOf(err) != lease.Invalid {
			t.Errorf("window %v: %v", w, err)
		}
	}
}
