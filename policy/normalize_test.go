package policy_test

import (
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func rate(t testing.TB, s string) lease.Rate {
	t.Helper()
	r, err := policy.ParseRate(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// search is the budget that the documentation shows.
func search(t testing.TB) policy.Budget {
	return policy.Budget{
		Name:          "acme/search",
		Match:         map[string]string{"tenant": "acme", "endpoint": "search"},
		Contract:      policy.Contract{Rate: rate(t, "1000/s"), Burst: 2000},
		Strategy:      policy.Dynamic,
		OverAdmission: policy.OverAdmission{MilliPercent: 5000, Within: 2 * time.Second},
		Regions: []policy.Region{
			{Name: "us", Weight: 60, Floor: rate(t, "100/s")},
			{Name: "eu", Weight: 40, Reserve: policy.Reserve{Rate: rate(t, "20/s"), Burst: 20}},
		},
		OnFailure: policy.Failure{Mode: policy.AllowLocal, Rate: rate(t, "20/s"), Burst: 20},
	}
}

func quota(n lease.Tokens) policy.Budget {
	return policy.Budget{Name: "q", Contract: policy.Contract{Quota: policy.Quota{N: n, Per: policy.Month}}}
}

func TestNormalizeFillsDefaults(t *testing.T) {
	b, err := policy.Budget{Name: "a", Contract: policy.Contract{Rate: rate(t, "10/s"), Burst: 20}}.Normalize(policy.DefaultDeployment())
	if err != nil {
		t.Fatal(err)
	}
	want := policy.Budget{
		Name: "a", Contract: policy.Contract{Rate: rate(t, "10/s"), Burst: 20}, Strategy: policy.Dynamic,
		TTL: 10 * time.Second, ShareTTL: time.Hour,
		OnFailure: policy.Failure{Mode: policy.Deny}, OnStoreLoss: policy.Regrant,
	}
	if !b.Same(want) {
		t.Errorf("got %+v\nwant %+v", b, want)
	}
	q, err := quota(5).Normalize(policy.DefaultDeployment())
	if err != nil || q.Contract.Quota.Zone != "UTC" || q.TTL != time.Minute {
		t.Errorf("quota: zone %q, ttl %v, %v; want UTC and 1m", q.Contract.Quota.Zone, q.TTL, err)
	}
}

// The lump ttl is three times what a full bucket lasts, from 10 s to 1 min.
func TestNormalizeDerivesTTL(t *testing.T) {
	for _, c := range []struct {
		rate  string
		burst lease.Tokens
		want  time.Duration
	}{{"1000/s", 100, 10 * time.Second}, {"1000/s", 5000, 15 * time.Second}, {"5/min", 5, time.Minute}, {"0/s", 5, time.Minute}, {"1/s", 0, 10 * time.Second}} {
		b, err := policy.Budget{Name: "a", Contract: policy.Contract{Rate: rate(t, c.rate), Burst: c.burst}}.Normalize(policy.DefaultDeployment())
		if err != nil || b.TTL != c.want {
			t.Errorf("%s burst %d: ttl %v, %v; want %v", c.rate, c.burst, b.TTL, err, c.want)
		}
	}
}

// 5 % of (2000 + 1000·2) are 200; drift takes 2, rounding 1, two local
// allowances of 20 + 20·2 take 120.
func TestFloatOfAPercentage(t *testing.T) {
	b, err := search(t).Normalize(policy.DefaultDeployment())
	if err != nil || b.Float != 77 {
		t.Fatalf("float %d, %v; want 77", b.Float, err)
	}
	b.OnFailure = policy.Failure{}
	if b, err = b.Normalize(policy.DefaultDeployment()); err != nil || b.Float != 197 {
		t.Errorf("without a local allowance: float %d, %v; want 197", b.Float, err)
	}
	replicated := policy.DefaultDeployment()
	replicated.ReplicatedStores = true
	_, err = b.Normalize(replicated)
	mention(t, err, "over_admission.percent", "200 accepted", "2 clock drift", "1 rounding", "8004 shares regranted", "= -7807", "on_store_loss: wait")
	b.OnStoreLoss = policy.Wait
	if b, err = b.Normalize(replicated); err != nil || b.Float != 197 {
		t.Errorf("replicated stores with wait: float %d, %v; want 197", b.Float, err)
	}
}

// What a percentage must leave room for beside the budget's own numbers, in
// what the deployment declares. Seen to catch, each alone: drift left out of a
// local bucket, processes not counted, the second bucket of a promotion not
// counted, the float left out of a regranted cap.
func TestFloatLeavesRoomForTheDeployment(t *testing.T) {
	for _, c := range []struct {
		note   string
		budget func(*policy.Budget)
		deploy func(*policy.Deployment)
		want   lease.Tokens
	}{
		// 200 accepted - 2 drift - 1 rounding - 2·floor(20 + 20·2·1.001).
		{"as documented", nil, nil, 77},
		// 4000 accepted; a region admits 20 + 500·2·1.001.
		{"a large allowance", func(b *policy.Budget) {
			b.OverAdmission.MilliPercent, b.OnFailure.Rate = 100_000, rate(t, "500/s")
		}, nil, 4000 - 3 - 2*1021},
		// Each region's processes mint 20·1.001 in a second.
		{"stores away for a second", nil, func(d *policy.Deployment) { d.StoreOutage = time.Second }, 77 - 2*20},
		// ... and never more than a bucket admits in the window.
		{
			"stores away for a minute", func(b *policy.Budget) { b.OverAdmission.MilliPercent = 10_000 },
			func(d *policy.Deployment) { d.StoreOutage = time.Minute }, 400 - 3 - 2*60 - 2*60,
		},
		// Two buckets of floor(2·(20 + 40.04)).
		{
			"promotions", func(b *policy.Budget) { b.OverAdmission.MilliPercent, b.OnStoreLoss = 10_000, policy.Wait },
			func(d *policy.Deployment) { d.ReplicatedStores = true }, 400 - 3 - 2*120,
		},
		// ... of floor(20 + 40.04 + 20·0.5·1.001).
		{
			"promotions, isolation known", func(b *policy.Budget) { b.OnStoreLoss = policy.Wait },
			func(d *policy.Deployment) { d.ReplicatedStores, d.StoreIsolation = true, 500*time.Millisecond }, 197 - 2*70,
		},
		// 50 % of 102,000 are 51,000; drift 100, rounding 1, and two shares of
		// ceil(2000 + float + 1000·(10 + 10)·1.001) each: the isolation and a ttl.
		{"regrants", func(b *policy.Budget) {
			b.OnFailure, b.OverAdmission = policy.Failure{}, policy.OverAdmission{MilliPercent: 50_000, Within: 100 * time.Second}
		}, func(d *policy.Deployment) { d.ReplicatedStores, d.StoreIsolation = true, 10*time.Second }, (51_000 - 101 - 2*22_020) / 3},
	} {
		b, d := search(t), policy.DefaultDeployment()
		if c.budget != nil {
			c.budget(&b)
		}
		if c.deploy != nil {
			c.deploy(&d)
		}
		if b, err := b.Normalize(d); err != nil || b.Float != c.want {
			t.Errorf("%s: float %d, %v; want %d", c.note, b.Float, err, c.want)
		}
	}
	b, d := search(t), policy.DefaultDeployment()
	b.Regions, b.OnFailure, d.ReplicatedStores = nil, policy.Failure{}, true
	if _, err := b.Normalize(d); !hasField(err, "regions") {
		t.Errorf("regranted shares of unnamed regions: %v", err)
	}
}

func TestFloatRefusesWhatTheTermsExceed(t *testing.T) {
	b := search(t)
	b.OverAdmission.MilliPercent = 2500
	_, err := b.Normalize(policy.DefaultDeployment())
	mention(t, err, "over_admission.percent", "100 accepted", "120 local allowance of 2 regions at 60", "= -23", "deny")
	b.OnFailure, b.OverAdmission.MilliPercent = policy.Failure{}, 1
	_, err = b.Normalize(policy.DefaultDeployment())
	mention(t, err, "0 accepted", "= -3")
}

// float + drift·rate·W + 1 + surcharges never exceeds p·(burst + rate·W), in
// exact numbers. Seen to catch: the drift term rounded down.
func TestFloatKeepsThePercentage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		b := policy.Budget{
			Name: "a",
			Contract: policy.Contract{
				Rate:  lease.Rate{Tokens: lease.Tokens(rapid.Int64Range(1, 1<<40).Draw(t, "rate")), Per: drawPeriod(t)},
				Burst: lease.Tokens(rapid.Int64Range(0, 1<<50).Draw(t, "burst")),
			},
			OverAdmission: policy.OverAdmission{
				MilliPercent: rapid.Int64Range(1, 100_000).Draw(t, "percent"),
				Within:       time.Duration(rapid.Int64Range(1000, 10_000_000).Draw(t, "within")) * time.Microsecond,
			},
		}
		b, err := b.Normalize(policy.DefaultDeployment())
		if err != nil {
			return
		}
		minted := big.NewRat(int64(b.Contract.Rate.Tokens), int64(b.Contract.Rate.Per))
		minted.Mul(minted, big.NewRat(int64(b.OverAdmission.Within), 1))
		accepted := new(big.Rat).SetInt64(int64(b.Contract.Burst))
		accepted.Add(accepted, minted).Mul(accepted, big.NewRat(b.OverAdmission.MilliPercent, 100_000))
		spent := new(big.Rat).Mul(minted, big.NewRat(1000, 1_000_000))
		spent.Add(spent, new(big.Rat).SetInt64(int64(b.Float)+1))
		if spent.Cmp(accepted) > 0 {
			t.Fatalf("float %d: %s spent of %s accepted", b.Float, spent.FloatString(3), accepted.FloatString(3))
		}
	})
}

func TestNormalizeRefuses(t *testing.T) {
	for _, c := range []struct {
		note  string
		edit  func(*policy.Budget)
		field string
	}{
		{"no name", func(b *policy.Budget) { b.Name = "" }, "name"},
		{"long name", func(b *policy.Budget) { b.Name = strings.Repeat("x", 257) }, "name"},
		{"not UTF-8", func(b *policy.Budget) { b.Name = "\xff" }, "name"},
		{"NUL", func(b *policy.Budget) { b.Name = "a\x00b" }, "name"},
		{"empty match value", func(b *policy.Budget) { b.Match["tenant"] = "" }, "match.tenant"},
		{"empty match key", func(b *policy.Budget) { b.Match[""] = "x" }, `match[""]`},
		{"negative rate", func(b *policy.Budget) { b.Contract.Rate.Tokens = -1 }, "limit.rate"},
		{"huge rate", func(b *policy.Budget) { b.Contract.Rate.Tokens = lease.MaxTokens + 1 }, "limit.rate"},
		{"no period", func(b *policy.Budget) { b.Contract.Rate.Per = 0 }, "limit.rate"},
		{"long period", func(b *policy.Budget) { b.Contract.Rate.Per = lease.MaxPeriod + 1000 }, "limit.rate"},
		{"nanoseconds", func(b *policy.Budget) { b.Contract.Rate.Per = 1500 }, "limit.rate"},
		{"negative burst", func(b *policy.Budget) { b.Contract.Burst = -1 }, "limit.burst"},
		{"both contracts", func(b *policy.Budget) { b.Contract.Quota.Per = policy.Day }, "limit"},
		{"quota without window", func(b *policy.Budget) { b.Contract.Quota.N = 5 }, "limit.per"},
		{"strategy", func(b *policy.Budget) { b.Strategy = "magic" }, "strategy"},
		{"static without regions", func(b *policy.Budget) { b.Strategy, b.Regions = policy.Static, nil }, "regions"},
		{"static with reserve", func(b *policy.Budget) { b.Strategy = policy.Static }, "regions.eu.reserve"},
		{"independent with float", func(b *policy.Budget) { b.Strategy = policy.Independent }, "over_admission"},
		{"region twice", func(b *policy.Budget) { b.Regions[1].Name = "us" }, "regions.us"},
		{"region without name", func(b *policy.Budget) { b.Regions[1].Name = "" }, `regions[""]`},
		{"weight missing", func(b *policy.Budget) { b.Regions[1].Weight = 0 }, "regions.eu.weight"},
		{"weight negative", func(b *policy.Budget) { b.Regions[1].Weight = -1 }, "regions.eu.weight"},
		{"reserve above the rate", func(b *policy.Budget) { b.Regions[1].Reserve.Rate.Tokens = 1001 }, "regions"},
		{"reserve above the burst", func(b *policy.Budget) { b.Regions[1].Reserve.Burst = 2001 }, "regions"},
		{"reserve without burst", func(b *policy.Budget) { b.Regions[1].Reserve.Burst = 0 }, "regions.eu.reserve"},
		{"floors above the rate", func(b *policy.Budget) { b.Regions[0].Floor.Tokens = 1001 }, "regions"},
		{"short ttl", func(b *policy.Budget) { b.TTL = time.Millisecond }, "lease.ttl"},
		{"negative ttl", func(b *policy.Budget) { b.TTL = -time.Second }, "lease.ttl"},
		{"long share ttl", func(b *policy.Budget) { b.ShareTTL = 25 * time.Hour }, "lease.share_ttl"},
		{"long wait", func(b *policy.Budget) { b.Wait = 301 * time.Millisecond }, "wait"},
		{"failure mode", func(b *policy.Budget) { b.OnFailure.Mode = "open" }, "on_failure.mode"},
		{"deny with allowance", func(b *policy.Budget) { b.OnFailure.Mode = policy.Deny }, "on_failure"},
		{"local without burst", func(b *policy.Budget) { b.OnFailure.Burst = 0 }, "on_failure.burst"},
		{"store loss", func(b *policy.Budget) { b.OnStoreLoss = "hope" }, "on_store_loss"},
		{"percent without window", func(b *policy.Budget) { b.OverAdmission.Within = 0 }, "over_admission.within"},
		{"percent and tokens", func(b *policy.Budget) { b.OverAdmission.Tokens = 1 }, "over_admission"},
		{"percent above 100", func(b *policy.Budget) { b.OverAdmission.MilliPercent = 100_001 }, "over_admission.percent"},
		{"nowhere to count allowances", func(b *policy.Budget) { b.Regions = nil }, "regions"},
		{"float and burst too large", func(b *policy.Budget) { b.OverAdmission = policy.OverAdmission{Tokens: lease.MaxTokens} }, "over_admission.tokens"},
	} {
		b := search(t)
		c.edit(&b)
		_, err := b.Normalize(policy.DefaultDeployment())
		if !hasField(err, c.field) {
			t.Errorf("%s: want an error at %s, got %v", c.note, c.field, err)
		}
		if err != nil && lease.CodeOf(err) != lease.Invalid {
			t.Errorf("%s: code %v, want invalid", c.note, lease.CodeOf(err))
		}
	}
}

func TestNormalizeRefusesQuotas(t *testing.T) {
	for _, c := range []struct {
		note  string
		edit  func(*policy.Budget)
		field string
	}{
		{"negative", func(b *policy.Budget) { b.Contract.Quota.N = -1 }, "limit.quota"},
		{"period", func(b *policy.Budget) { b.Contract.Quota.Per = "decade" }, "limit.per"},
		{"zone", func(b *policy.Budget) { b.Contract.Quota.Zone = "Mars/Base" }, "limit.zone"},
		{"float", func(b *policy.Budget) { b.OverAdmission.Tokens = 1 }, "over_admission"},
		{"percentage", func(b *policy.Budget) {
			b.OverAdmission = policy.OverAdmission{MilliPercent: 5000, Within: time.Second}
		}, "over_admission"},
		{"reserve", func(b *policy.Budget) {
			b.Regions = []policy.Region{{Name: "us", Reserve: policy.Reserve{Rate: lease.Rate{Tokens: 1, Per: time.Second}, Burst: 1}}}
		}, "regions.us.reserve"},
	} {
		b := quota(10)
		c.edit(&b)
		if _, err := b.Normalize(policy.DefaultDeployment()); !hasField(err, c.field) {
			t.Errorf("%s: want an error at %s, got %v", c.note, c.field, err)
		}
	}
}

// A static split of 100 by 60 and 40 gives 60 and 40, one whose part of the
// burst rounds down to nothing is refused, and a limit of 0 is a limit of 0.
func TestStaticParts(t *testing.T) {
	b := policy.Budget{
		Name: "a", Strategy: policy.Static, Contract: policy.Contract{Rate: rate(t, "100/s"), Burst: 100},
		Regions: []policy.Region{{Name: "us", Weight: 60}, {Name: "eu", Weight: 40}},
	}
	b, err := b.Normalize(policy.DefaultDeployment())
	if err != nil || b.Part(0, 100) != 40 || b.Part(1, 100) != 60 {
		t.Fatalf("eu %d, us %d, %v; want 40 and 60", b.Part(0, 100), b.Part(1, 100), err)
	}
	b.Contract.Burst = 2
	_, err = b.Normalize(policy.DefaultDeployment())
	mention(t, err, "regions.eu.weight", "40/100 of 2 rounds down to 0")
	b.Contract = policy.Contract{}
	if _, err = b.Normalize(policy.DefaultDeployment()); err != nil {
		t.Errorf("a zero limit: %v", err)
	}
}

// The parts of all regions never exceed the whole.
func TestPartsFit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var b policy.Budget
		for _, w := range rapid.SliceOfN(rapid.Int64Range(1, policy.MaxWeight), 1, policy.MaxRegions).Draw(t, "weights") {
			b.Regions = append(b.Regions, policy.Region{Weight: w})
		}
		total := lease.Tokens(rapid.Int64Range(0, int64(lease.MaxTokens)).Draw(t, "total"))
		var sum lease.Tokens
		for i := range b.Regions {
			sum += b.Part(i, total)
		}
		if sum > total || total-sum >= lease.Tokens(len(b.Regions)) {
			t.Fatalf("parts of %d sum to %d", total, sum)
		}
	})
}

func TestNormalizeIsIdempotent(t *testing.T) {
	for _, b := range []policy.Budget{search(t), quota(7)} {
		once, err := b.Normalize(policy.DefaultDeployment())
		if err != nil {
			t.Fatal(err)
		}
		twice, err := once.Normalize(policy.DefaultDeployment())
		if err != nil || !once.Same(twice) {
			t.Errorf("%v: once %+v\ntwice %+v", err, once, twice)
		}
	}
}

func TestNormalizeLeavesItsInputAlone(t *testing.T) {
	b := search(t)
	if _, err := b.Normalize(policy.DefaultDeployment()); err != nil || b.Regions[0].Name != "us" {
		t.Errorf("the caller's regions were sorted: %v, %v", b.Regions, err)
	}
}

func hasField(err error, field string) bool {
	for _, e := range policy.AllErrors(err) {
		if e.Field == field {
			return true
		}
	}
	return false
}

func mention(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, w := range words {
		if err == nil || !strings.Contains(err.Error(), w) {
			t.Errorf("want %q in the error, got %v", w, err)
		}
	}
}
