package errorbound_test

import (
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func TestFit(t *testing.T) {
	local := func(b *policy.Budget) {
		b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}
	}
	for _, c := range []struct {
		note     string
		strategy policy.Strategy
		budget   func(*policy.Budget)
		target   errorbound.Target
		float    lease.Tokens
		alone    []errorbound.Name // of an Unfit
	}{
		// 5 % of 3000 are 150; drift 2, rounding 1.
		{"5 % within 2 s", policy.Dynamic, nil, errorbound.Target{MilliPercent: 5000, Within: 2 * second}, 147, nil},
		{"10 tokens", policy.Static, nil, errorbound.Target{Tokens: 10, Within: 2 * second}, 7, nil},
		{"with local allowances", policy.Dynamic, local, errorbound.Target{MilliPercent: 5000, Within: 2 * second}, 27, nil},
		{"exactly what there is", policy.Dynamic, nil, errorbound.Target{Tokens: 3, Within: 2 * second}, 0, nil},
		{"nothing at all", policy.Dynamic, nil, errorbound.Target{Within: 2 * second}, 0, []errorbound.Name{errorbound.Drift, errorbound.Rounding}},
		{"independent", policy.Independent, nil, errorbound.Target{MilliPercent: 100_000, Within: 2 * second}, 0, []errorbound.Name{errorbound.Independence}},
		{"independent, doubled", policy.Independent, nil, errorbound.Target{Tokens: 7000, Within: 2 * second}, 0, nil},
		{"local allowances alone", policy.Dynamic, local, errorbound.Target{Tokens: 119, Within: 2 * second}, 0, []errorbound.Name{errorbound.LocalStores}},
		{"together", policy.Dynamic, local, errorbound.Target{Tokens: 122, Within: 2 * second}, 0, []errorbound.Name{}},
	} {
		b := worked(t, c.strategy)
		if c.budget != nil {
			c.budget(&b)
		}
		b.Float = 5 // which is ignored
		s, err := errorbound.Fit(b, errorbound.Deployment{}, c.target)
		if c.alone == nil {
			if err != nil || s.Float != c.float || s.Bound.Of(errorbound.Float) != c.float {
				t.Errorf("%s: %+v, %v; want a float of %d", c.note, s, err, c.float)
			}
			continue
		}
		unfit, ok := errors.AsType[*errorbound.Unfit](err)
		if !ok || len(unfit.Alone) != len(c.alone) {
			t.Errorf("%s: %v; want %v", c.note, err, c.alone)
			continue
		}
		for i, name := range c.alone {
			if unfit.Alone[i].Name != name || !strings.Contains(err.Error(), string(name)) {
				t.Errorf("%s: %v; want %s", c.note, err, name)
			}
		}
	}
}

func TestFitRefusesTargets(t *testing.T) {
	for field, target := range map[string]errorbound.Target{
		"window":  {Tokens: 1},
		"tokens":  {Tokens: -1, Within: second},
		"percent": {MilliPercent: 100_001, Within: second},
	} {
		_, err := errorbound.Fit(worked(t, policy.Dynamic), errorbound.Deployment{}, target)
		if e, ok := errors.AsType[*lease.Error](err); !ok || e.Field != field {
			t.Errorf("%+v: %v, want an error at %s", target, err, field)
		}
	}
	both := errorbound.Target{Tokens: 1, MilliPercent: 1, Within: second}
	if _, err := errorbound.Fit(worked(t, policy.Dynamic), errorbound.Deployment{}, both); err == nil {
		t.Error("tokens and a percentage together are no target")
	}
}

// What Fit finds keeps the target, and no larger float does; where it finds
// nothing, none does. Seen to catch: a search that stops one short.
func TestFitIsTheInverseOfOver(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, w := drawn(t)
		target := errorbound.Target{Tokens: lease.Tokens(rapid.Int64Range(0, 400_000).Draw(t, "target")), Within: w}
		s, err := errorbound.Fit(b, d, target)
		at := func(float lease.Tokens) lease.Tokens {
			b := b
			b.Float = float
			bound, err := errorbound.Over(b, d, w)
			if err != nil {
				t.Fatal(err)
			}
			return bound.Total
		}
		if _, unfit := errors.AsType[*errorbound.Unfit](err); unfit {
			if got := at(0); got <= target.Tokens {
				t.Fatalf("unfit for %d, yet without float the bound is %d", target.Tokens, got)
			}
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		takesFloat := !b.Contract.IsQuota() && b.Strategy != policy.Independent
		if got := at(s.Float); got > target.Tokens || got != s.Bound.Total {
			t.Fatalf("float %d: bound %d (said %d) of %d", s.Float, got, s.Bound.Total, target.Tokens)
		}
		if takesFloat && at(s.Float+1) <= target.Tokens {
			t.Fatalf("float %d, and one more fits", s.Float)
		}
		if !takesFloat && s.Float != 0 {
			t.Fatalf("float %d", s.Float)
		}
	})
}

// The float that a file's percentage comes to is the largest that keeps it: no
// part of the promise is given away, and none is broken. Seen to catch: a
// surcharge computed apart in either place.
func TestPolicyAndBoundAgree(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		b, d, w := drawn(t)
		d = errorbound.Deployment{Deployment: d.Deployment}
		if b.Contract.IsQuota() || b.Strategy == policy.Independent {
			t.Skip("takes no percentage")
		}
		b.OverAdmission = policy.OverAdmission{MilliPercent: rapid.Int64Range(1, 100_000).Draw(t, "percent"), Within: w}
		target := errorbound.Target{MilliPercent: b.OverAdmission.MilliPercent, Within: w}
		n, err := b.Normalize(d.Deployment)
		if err != nil {
			if len(b.Regions) == 0 || w < time.Millisecond {
				return
			}
			if _, err := errorbound.Fit(b, d, target); err == nil {
				t.Fatal("refused, yet it fits")
			}
			return
		}
		found++
		s, err := errorbound.Fit(n, d, target)
		if err != nil || s.Float != n.Float {
			t.Fatalf("the file's float is %d, the largest that fits %d (%v)", n.Float, s.Float, err)
		}
		v, err := errorbound.Judge(n, d, second)
		if err != nil || !v.Kept || v.Promise.Window != w {
			t.Fatalf("%+v, %v", v, err)
		}
	})
	if found == 0 {
		t.Error("no percentage was ever accepted")
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		note    string
		budget  func(*policy.Budget)
		deploy  func(*errorbound.Deployment)
		promise lease.Tokens
		kept    bool
		beyond  []errorbound.Name
	}{
		{"float 0", nil, nil, 3, true, nil},
		{"tokens", func(b *policy.Budget) { b.Float, b.OverAdmission.Tokens = 50, 50 }, nil, 53, true, nil},
		{"a local allowance that the file states", func(b *policy.Budget) {
			b.OnFailure = policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}
		}, nil, 123, true, nil},
		{"promotions double it", func(b *policy.Budget) {
			b.OnFailure, b.OnStoreLoss = policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(10), Burst: 20}, policy.Wait
		}, func(d *errorbound.Deployment) { d.ReplicatedStores = true }, 123, false, []errorbound.Name{errorbound.LocalStores}},
		{
			"faults of the deployment", nil, func(d *errorbound.Deployment) { d.Suspended, d.AsyncLedger = 1, true },
			3, false,
			[]errorbound.Name{errorbound.LedgerLoss, errorbound.Suspension},
		},
	} {
		b, d := worked(t, policy.Dynamic), errorbound.Deployment{}
		if c.budget != nil {
			c.budget(&b)
		}
		if c.deploy != nil {
			c.deploy(&d)
		}
		d.Clocks = lease.DefaultClocks()
		v, err := errorbound.Judge(b, d, 2*second)
		if err != nil || v.Promise.Tokens != c.promise || v.Kept != c.kept || len(v.Beyond) != len(c.beyond) {
			t.Errorf("%s: %+v, %v", c.note, v, err)
			continue
		}
		for i := range c.beyond {
			if v.Beyond[i] != c.beyond[i] {
				t.Errorf("%s: beyond %v, want %v", c.note, v.Beyond, c.beyond)
			}
		}
	}
}

// slow computes a bound apart from the package, in whole numbers over one
// denominator, from the formulas read once more.
func slow(b policy.Budget, d errorbound.Deployment, w time.Duration) *big.Int {
	den := new(big.Int).Mul(big.NewInt(1_000_000), big.NewInt(int64(b.Contract.Rate.Per)))
	made := func(per time.Duration, n lease.Tokens, span time.Duration, ppm int64) *big.Int {
		v := new(big.Int).Mul(den, big.NewInt(int64(n)))
		v.Mul(v, big.NewInt(int64(span)))
		v.Mul(v, big.NewInt(ppm))
		return v.Div(v, new(big.Int).Mul(big.NewInt(int64(per)), big.NewInt(1_000_000)))
	}
	up := func(v *big.Int) *big.Int {
		q, r := new(big.Int).DivMod(v, den, new(big.Int))
		if r.Sign() > 0 {
			q.Add(q, big.NewInt(1))
		}
		return q
	}
	ppm := d.Clocks.DriftPPM
	rate := b.Contract.Rate
	all := big.NewInt(int64(b.Float))
	regions := int64(len(b.Regions))
	copies := int64(1)
	if b.Strategy == policy.Independent {
		copies = regions
		one := new(big.Int).Mul(den, big.NewInt(int64(b.Contract.Burst)))
		one.Add(one, made(rate.Per, rate.Tokens, w, 1_000_000))
		all.Add(all, up(one.Mul(one, big.NewInt(regions-1))))
	}
	all.Add(all, up(made(rate.Per, rate.Tokens*lease.Tokens(copies), w, ppm)))
	tick := up(made(rate.Per, rate.Tokens*lease.Tokens(copies), time.Microsecond, 1_000_000))
	all.Add(all, big.NewInt(max(1, tick.Int64())))
	if b.OnFailure.Mode == policy.AllowLocal {
		f := b.OnFailure
		// Tokens come one by one, so count those that have come.
		local := int64(f.Burst)
		for made := new(big.Int); ; local++ {
			made.Add(made, new(big.Int).Mul(big.NewInt(int64(f.Rate.Per)), big.NewInt(1_000_000)))
			have := new(big.Int).Mul(big.NewInt(int64(f.Rate.Tokens)), big.NewInt(int64(w)))
			have.Mul(have, big.NewInt(1_000_000+ppm))
			have.Add(have, big.NewInt(int64(f.Rate.Tokens)*int64(time.Microsecond)*1_000_000))
			if have.Cmp(made) < 0 {
				break
			}
		}
		all.Add(all, big.NewInt(local*regions))
	}
	return all
}

// Without faults of the deployment, Over is the slow sum.
func TestOverIsTheSlowSum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b, d, w := drawn(t)
		d = errorbound.Deployment{Deployment: policy.Deployment{Clocks: d.Clocks}}
		if b.Contract.IsQuota() || len(b.Regions) == 0 {
			t.Skip("not in the slow sum")
		}
		bound, err := errorbound.Over(b, d, w)
		if want := slow(b, d, w); err != nil || want.Cmp(big.NewInt(int64(bound.Total))) != 0 {
			t.Fatalf("%d, %v; the slow sum is %s\n%+v", bound.Total, err, want, bound.Causes)
		}
	})
}
