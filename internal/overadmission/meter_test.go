package overadmission_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/internal/overadmission"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func bucket(tokens, burst lease.Tokens) policy.Contract {
	return policy.Contract{Rate: lease.Rate{Tokens: tokens, Per: time.Second}, Burst: burst}
}

const second = lease.Time(1_000_000)

// A bucket of 3 with 3 per second admits at most 5 in any second of the known
// example, which is one below 3 + 3.
func TestMeterOnAKnownExample(t *testing.T) {
	m := overadmission.New(bucket(3, 3), time.Second)
	for _, at := range []lease.Time{0, 0, 0, 334_000, 667_000} {
		m.Add(second+at, 1)
	}
	got := m.Worst()
	if m.Admitted() != 5 || got[0].Tokens != 0 || got[1].Tokens != -1 {
		t.Errorf("admitted %d, worst %+v; want 5, 0 over any window and -1 over 1s", m.Admitted(), got)
	}
}

// Two fixed windows back to back admit 6 within a second where 3 + 0·W are
// allowed.
func TestMeterSeesABoundaryBurst(t *testing.T) {
	m := overadmission.New(bucket(0, 3), time.Second)
	for _, at := range []lease.Time{820, 880, 940, 1000, 1060, 1120} {
		m.Add(at*1000, 1)
	}
	for _, e := range m.Worst() {
		if e.Tokens != 3 {
			t.Errorf("window %v: excess %d, want 3", e.Window, e.Tokens)
		}
	}
}

// The meter agrees with looking at every window. Seen to catch: an event of
// age exactly W counted as inside.
func TestMeterAgreesWithEveryWindow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := bucket(lease.Tokens(rapid.Int64Range(0, 9).Draw(t, "rate")), lease.Tokens(rapid.Int64Range(0, 9).Draw(t, "burst")))
		const w = 500 * time.Millisecond
		m := overadmission.New(c, w)
		var at []lease.Time
		now := lease.Time(0)
		for _, gap := range rapid.SliceOfN(rapid.SampledFrom([]lease.Time{0, 1, 100_000, 250_000, 500_000, 499_999}), 1, 40).Draw(t, "gaps") {
			now += gap
			at = append(at, now)
			m.Add(now, 1)
		}
		wantAny, wantW := -c.Burst, -c.Burst-c.Rate.Tokens/2
		for i := range at {
			for j := i; j < len(at); j++ {
				n, length := lease.Tokens(j-i+1), at[j].Sub(at[i])
				minted, _ := c.Rate.Mint(length, 0)
				wantAny = max(wantAny, n-minted-c.Burst)
				if length < w {
					wantW = max(wantW, n-c.Rate.Tokens/2-c.Burst)
				}
			}
		}
		got := m.Worst()
		if got[0].Tokens != wantAny || got[1].Tokens != wantW {
			t.Fatalf("got %+v, want %d over any window and %d over %v", got, wantAny, wantW, w)
		}
	})
}

// A quota's calendar windows count apart.
func TestMeterOfAQuota(t *testing.T) {
	m := overadmission.New(policy.Contract{Quota: policy.Quota{N: 5, Per: policy.Hour, Zone: "UTC"}})
	m.Add(3599*second, 5)
	m.Add(3600*second, 4)
	if got := m.Worst(); got[0].Tokens != 0 {
		t.Errorf("excess %d, want 0", got[0].Tokens)
	}
	m.Add(3601*second, 3)
	if got := m.Worst(); got[0].Tokens != 2 {
		t.Errorf("excess %d, want 2", got[0].Tokens)
	}
}

func TestPromise(t *testing.T) {
	b := policy.Budget{Contract: bucket(1000, 500), Float: 20, Strategy: policy.Dynamic}
	d := policy.DefaultDeployment()
	if got := overadmission.Promise(b, d, 3, 2*time.Second); got != 23 {
		t.Errorf("dynamic: %d, want 20 + 2 of drift + 1", got)
	}
	b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: lease.Rate{Tokens: 5, Per: time.Second}, Burst: 10}
	b.Regions = make([]policy.Region, 3)
	if got := overadmission.Promise(b, d, 3, 2*time.Second); got != 83 {
		t.Errorf("with local allowances: %d, want 23 + 3·20", got)
	}
	b.OnFailure, b.Strategy, b.Float = policy.Failure{}, policy.Independent, 0
	if got := overadmission.Promise(b, d, 3, 2*time.Second); got != 5009 {
		t.Errorf("independent: %d, want 2·2500 + 3·(2 + 1)", got)
	}
}
