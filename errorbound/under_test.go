package errorbound_test

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func loss(t testing.TB, b policy.Budget, d errorbound.Deployment, name string) errorbound.Loss {
	t.Helper()
	losses, err := errorbound.Under(b, d)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range losses {
		if l.Name == name {
			return l
		}
	}
	t.Fatalf("no loss %q among %+v", name, losses)
	return errorbound.Loss{}
}

// Losses worked by hand, for 1000 tokens and 1000/s in three regions, a ttl of
// 10 s and a round trip of 100 ms.
func TestUnder(t *testing.T) {
	reserve := func(b *policy.Budget) { b.Regions[0].Reserve = policy.Reserve{Rate: perSecond(100), Burst: 50} }
	uneven := func(b *policy.Budget) { b.Regions[0].Weight, b.Regions[1].Weight, b.Regions[2].Weight = 1, 3, 6 }
	guard := lease.DefaultClocks().Guard
	const ms = time.Millisecond
	for _, c := range []struct {
		loss     string
		strategy policy.Strategy
		budget   func(*policy.Budget)
		deploy   errorbound.Deployment
		tokens   lease.Tokens
		last     time.Duration
		says     string
	}{
		{errorbound.DeadRegion, policy.Dynamic, nil, errorbound.Deployment{}, 1000 + 10_276, 10*second + guard(10*second), "lease.ttl"},
		{errorbound.DeadRegion, policy.Dynamic, reserve, errorbound.Deployment{}, 1000 + 10_276 + 360_746, time.Hour + guard(time.Hour), "share_ttl"},
		{errorbound.DeadRegion, policy.Static, uneven, errorbound.Deployment{}, 600 + 2_164_478, time.Hour + guard(time.Hour), "share_ttl"},
		{errorbound.DeadProcess, policy.Dynamic, nil, errorbound.Deployment{}, 125, 2 * (16*second + guard(16*second)), "none"},
		{errorbound.IdleParts, policy.Dynamic, nil, errorbound.Deployment{}, 0, 0, "whole contract"},
		{errorbound.IdleParts, policy.Static, uneven, errorbound.Deployment{}, 900, 0, "dynamic"},
		// Regions may spend all there is before they report it.
		{errorbound.FalseDenials, policy.Dynamic, nil, errorbound.Deployment{}, 1000, 0, "{tokens: 1000}"},
		{errorbound.FalseDenials, policy.Dynamic, func(b *policy.Budget) { b.Float = 240 }, errorbound.Deployment{}, 760, 0, "{tokens: 1000}"},
		// A tenth unsaid, and what three regions spend in 150 ms + 100 ms + 500 ms.
		{errorbound.FalseDenials, policy.Dynamic, nil, errorbound.Deployment{SpendRate: perSecond(100)}, 325, 0, "{tokens: 325}"},
		{errorbound.FalseDenials, policy.Static, nil, errorbound.Deployment{}, 0, 0, "cap"},
		{errorbound.Reporting, policy.Dynamic, large, errorbound.Deployment{RTT: 116 * ms}, 0, 0, "within the ceiling"},
		{errorbound.Reporting, policy.Dynamic, large, errorbound.Deployment{RTT: 117 * ms}, 0, 0, "round trip"},
		// Two of 20 are parked: of 100/s a tenth; 18 of them take 800 ms a turn.
		{errorbound.Reporting, policy.Dynamic, tiny(20, 20), errorbound.Deployment{}, 2, 0, "wait"},
		{errorbound.Reporting, policy.Dynamic, tiny(100, 20), errorbound.Deployment{}, 78, 0, "wait"},
		{errorbound.Reporting, policy.Dynamic, tiny(3, 2), errorbound.Deployment{}, 3, 0, "wait"},
		// A bucket that holds nothing admits nothing anyway.
		{errorbound.Reporting, policy.Dynamic, tiny(3, 0), errorbound.Deployment{}, 0, 0, "round trip"},
		{errorbound.Rebalance, policy.Dynamic, nil, errorbound.Deployment{RTT: 200 * ms}, 1000, second, "floor"},
		{errorbound.Rebalance, policy.Static, nil, errorbound.Deployment{}, 0, 0, "dynamic"},
		{errorbound.ColdStart, policy.Dynamic, nil, errorbound.Deployment{}, 120, 120 * ms, "reserve"},
		{errorbound.ColdStart, policy.Dynamic, func(b *policy.Budget) { b.Wait = 200 * ms }, errorbound.Deployment{}, 0, 120 * ms, "reserve"},
		{errorbound.ColdStart, policy.Static, nil, errorbound.Deployment{}, 0, 0, "before"},
		{errorbound.StoreLost, policy.Static, uneven, errorbound.Deployment{}, 600, 320 * ms, "regrant"},
		{
			errorbound.StoreLost, policy.Static, func(b *policy.Budget) { uneven(b); b.OnStoreLoss = policy.Wait },
			errorbound.Deployment{},
			600 + 2_164_478, time.Hour + guard(time.Hour), "regrant",
		},
		{errorbound.AllocatorAway, policy.Dynamic, nil, errorbound.Deployment{}, 0, 0, "declared"},
		{errorbound.AllocatorAway, policy.Dynamic, nil, errorbound.Deployment{Outage: 60 * second}, 66_370, 66_370 * ms, "reserve"},
		{errorbound.AllocatorAway, policy.Dynamic, reserve, errorbound.Deployment{Outage: 60 * second}, 59_733, 66_370 * ms, "reserve"},
		{errorbound.AllocatorAway, policy.Static, nil, errorbound.Deployment{Outage: 2 * time.Hour}, 3_606_470, 2*time.Hour + 6370*ms, "share_ttl"},
	} {
		b := worked(t, c.strategy)
		if c.budget != nil {
			c.budget(&b)
		}
		l := loss(t, b, c.deploy, c.loss)
		if l.Tokens != c.tokens || l.For != c.last || !strings.Contains(l.Setting, c.says) {
			t.Errorf("%s of %s: %+v; want %d for %v, mentioning %q", c.loss, c.strategy, l, c.tokens, c.last, c.says)
		}
	}
}

func tiny(rate, burst lease.Tokens) func(*policy.Budget) {
	return func(b *policy.Budget) { b.Contract = policy.Contract{Rate: perSecond(rate), Burst: burst} }
}

// large gives a budget a burst of three seconds of its rate.
func large(b *policy.Budget) { b.Contract.Burst = 3000 }

// The plan paces exactly where it is said to: above 4 % of the ceiling on
// the way, of a tiny one above three tenths in flight.
func TestUnderNamesTheKind(t *testing.T) {
	for _, c := range []struct {
		rate, burst lease.Tokens
		rtt         time.Duration
		kind, says  string
	}{
		{1000, 3000, 116 * time.Millisecond, "lumps", "0: on the way are"},
		{1000, 3000, 117 * time.Millisecond, "paced shares", "paced shares"},
		{10, 20, 500 * time.Millisecond, "lumps", "parks up to 2"},
		{10, 20, 501 * time.Millisecond, "paced shares", "parks up to 2"},
	} {
		b := worked(t, policy.Dynamic)
		b.Contract.Rate.Tokens, b.Contract.Burst = c.rate, c.burst
		d := errorbound.Deployment{RTT: c.rtt}
		s, err := errorbound.Fit(b, d, errorbound.Target{Tokens: 2, Within: second})
		if l := loss(t, b, d, errorbound.Reporting); err != nil || s.Kind != c.kind || !strings.Contains(l.Formula, c.says) {
			t.Errorf("%d/s burst %d, round trip %v: %s, %v, %s; want %s, %q", c.rate, c.burst, c.rtt, s.Kind, err, l.Formula, c.kind, c.says)
		}
	}
	s, err := errorbound.Fit(worked(t, policy.Dynamic), errorbound.Deployment{RTT: second}, errorbound.Target{Tokens: 100, Within: second})
	if err != nil || s.Kind != "paced shares" || s.Inventory != 1098 || s.Prefetch != 137 || s.Heartbeat != second ||
		s.TTL != 10*second || s.Guard != lease.DefaultClocks().Guard(10*second) {
		t.Errorf("%+v, %v", s, err)
	}
}

// Every loss of every budget has a formula, a setting, and no negative number.
func TestUnderIsComplete(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, _ := drawn(t)
		losses, err := errorbound.Under(b, d)
		if err != nil || len(losses) != 9 {
			t.Fatalf("%+v, %v", losses, err)
		}
		for _, l := range losses {
			if l.Tokens < 0 || l.For < 0 || l.Formula == "" || l.Setting == "" {
				t.Fatalf("%+v", l)
			}
		}
	})
}
