package allocation

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Whatever a region says within the bounds of the wire, true or not, in
// whatever order: no invariant that the ledger can keep by itself breaks.
// Seen to fail when bookLump trusts the totals of a report.
func TestAnyReportKeepsTheInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		at := lease.Time(1_800_000_000_000_000)
		now := Now{Governed: at, Raw: at}
		amount := rapid.OneOf(rapid.Int64Range(0, 30), rapid.SampledFrom([]int64{int64(lease.MaxTokens) / 2, int64(lease.MaxTokens)}))
		tokens := func(what string) lease.Tokens { return lease.Tokens(amount.Draw(rt, what)) }
		b := drawBudget(rt, tokens)
		s := NewState(now, b)
		for range rapid.IntRange(20, 60).Draw(rt, "steps") {
			now.Governed = now.Governed.Add(drawSpan(rt))
			now.Raw = max(now.Raw, now.Governed)
			before := *s
			before.Pools, before.Leases = append([]Pool(nil), s.Pools...), append([]Lease(nil), s.Leases...)
			if rapid.IntRange(0, 19).Draw(rt, "change") == 0 {
				s.SetBudget(Config{}, now, drawBudget(rt, tokens))
			} else {
				Sync(Config{}, now, s, rapid.SampledFrom([]string{"eu", "us"}).Draw(rt, "region"), drawItem(rt, tokens))
			}
			if err := CheckStep(&before, s); err != nil {
				rt.Fatal(err)
			}
		}
	})
}

func drawSpan(rt *rapid.T) time.Duration {
	return rapid.SampledFrom([]time.Duration{
		0, 0, time.Millisecond, time.Millisecond, time.Second, time.Second, 11 * time.Second, 2 * time.Hour, 400 * 24 * time.Hour,
	}).Draw(rt, "span")
}

func drawBudget(rt *rapid.T, tokens func(string) lease.Tokens) policy.Budget {
	strategy := rapid.SampledFrom([]policy.Strategy{policy.Dynamic, policy.Static, policy.Independent}).Draw(rt, "strategy")
	b := bucket(tokens("rate"), tokens("burst"), strategy, policy.Region{Name: "eu", Weight: 1}, policy.Region{Name: "us", Weight: 2})
	b.Float = tokens("float")
	if rapid.IntRange(0, 2).Draw(rt, "quota") == 0 {
		b.Float = 0
		b.Contract = policy.Contract{Quota: policy.Quota{N: tokens("n"), Per: policy.Day, Zone: "UTC"}}
	}
	b.TTL, b.ShareTTL, b.OnStoreLoss = 10*time.Second, time.Hour, policy.Regrant
	b.Deleted = rapid.IntRange(0, 9).Draw(rt, "deleted") == 0
	return b
}

func drawItem(rt *rapid.T, tokens func(string) lease.Tokens) lease.Item {
	name := rapid.SampledFrom([]lease.Incarnation{"a", "b"})
	it := lease.Item{Demand: rapid.Float64Range(0, 1e12).Draw(rt, "demand"), Waiting: tokens("waiting"), DemandTotal: tokens("demand total")}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if rapid.IntRange(0, 3).Draw(rt, "reported") == 0 {
			continue
		}
		r := lease.Report{
			Kind:        kind,
			Incarnation: lease.Incarnation(kind.String()) + name.Draw(rt, "incarnation"),
			Seq:         rapid.Uint64Range(1, 9).Draw(rt, "seq"),
			Want:        tokens("want"),
			Regrant:     lease.Incarnation(kind.String()) + name.Draw(rt, "regrant"),
		}
		if rapid.Bool().Draw(rt, "claims") {
			r.Used, r.Returned = tokens("used"), tokens("returned")
			r.X = lease.Rate{Tokens: tokens("x"), Per: rapid.SampledFrom([]time.Duration{0, time.Microsecond, time.Second, lease.MaxPeriod}).Draw(rt, "per")}
			r.Beta, r.Prefetched, r.Granted = tokens("beta"), tokens("prefetched"), tokens("granted")
			r.Closed = rapid.IntRange(0, 3).Draw(rt, "closed") == 0
		}
		it.Leases = append(it.Leases, r)
	}
	if rapid.Bool().Draw(rt, "local") {
		it.Local = []lease.LocalUse{{Source: "s", Total: tokens("local")}}
	}
	return it
}
