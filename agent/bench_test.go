package agent

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// prefilled is a Decider whose pocket for every named budget never runs out.
func prefilled(tb testing.TB, names ...string) *Decider {
	budgets := make([]policy.Budget, 0, len(names))
	for _, n := range names {
		budgets = append(budgets, bucket(n, 1_000_000, lease.MaxTokens, policy.Dynamic))
	}
	start := time.Now()
	d := NewDecider(Options{Now: func() time.Duration { return time.Since(start) }}, &Stats{}, func(Urgent) {})
	d.SetBudgets(budgets)
	for _, n := range names {
		remembering(d.entry(n)).pocket.parts = []*part{newPart(lease.MaxTokens, 1<<62)}
	}
	return d
}

func checkOf(n int) Check {
	c := Check{Cost: 1, Descriptors: []Descriptor{{"tenant", "acme"}, {"endpoint", "search"}}}
	for i := range n {
		c.Descriptors = append(c.Descriptors, Descriptor{"budget", fmt.Sprintf("acme/%d", i)})
		c.Descriptors[i+2].Key = fmt.Sprintf("budget%d", i)
	}
	return c
}

// hotMatching is prefilled with one pair per budget, so that a request can match n.
func hotMatching(tb testing.TB, n, others int) *Decider {
	d := prefilled(tb)
	var budgets []policy.Budget
	for i := range n {
		b := bucket(fmt.Sprintf("acme/%d", i), 1_000_000, lease.MaxTokens, policy.Dynamic)
		b.Match = map[string]string{"tenant": "acme", fmt.Sprintf("budget%d", i): b.Name}
		budgets = append(budgets, b)
	}
	for i := range others {
		b := bucket(fmt.Sprintf("other/%d", i), 1, 1, policy.Dynamic)
		b.Match["tenant"] = "acme"
		budgets = append(budgets, b)
	}
	d.SetBudgets(budgets)
	for i := range n {
		remembering(d.entry(fmt.Sprintf("acme/%d", i))).pocket.parts = []*part{newPart(lease.MaxTokens, 1<<62)}
	}
	return d
}

// The hot path allocates nothing, whatever the number of budgets.
func TestDecideAllocatesNothing(t *testing.T) {
	for _, n := range []int{1, 3} {
		d, c := hotMatching(t, n, 1000), checkOf(n)
		ctx := context.Background()
		allocs := testing.AllocsPerRun(1000, func() {
			if a, p, err := d.Begin(ctx, c); a.Outcome != Allowed || a.Mode != FromPrefetch || p != nil || err != nil {
				t.Fatalf("%+v %v", a, err)
			}
		})
		if allocs != 0 {
			t.Errorf("%v allocations with %d budgets", allocs, n)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{1, 3} {
		b.Run(fmt.Sprintf("budgets=%d", n), func(b *testing.B) {
			d, c := hotMatching(b, n, 100_000), checkOf(n)
			ctx := context.Background()
			b.ReportAllocs()
			for b.Loop() {
				if a, _, _ := d.Begin(ctx, c); a.Outcome != Allowed {
					b.Fatalf("%+v", a)
				}
			}
		})
	}
	b.Run("x-time-rate", func(b *testing.B) {
		l := rate.NewLimiter(1e9, 1<<30)
		b.ReportAllocs()
		for b.Loop() {
			if !l.Allow() {
				b.Fatal("refused")
			}
		}
	})
}

func BenchmarkDecideParallel(b *testing.B) {
	d, c := hotMatching(b, 1, 0), checkOf(1)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if a, _, _ := d.Begin(context.Background(), c); a.Outcome != Allowed {
				b.Fatalf("%+v", a)
			}
		}
	})
}

func BenchmarkSetBudgets100k(b *testing.B) {
	d := hotMatching(b, 0, 100_000)
	var budgets []*terms
	for _, e := range d.index.Load().byName {
		budgets = append(budgets, e.policy.Load())
	}
	slices.SortFunc(budgets, byName)
	for b.Loop() {
		d.setBudgets(budgets)
	}
}

// BenchmarkFlush is one flush beside very many budgets that were used some
// seconds ago.
func BenchmarkFlush(b *testing.B) {
	d, now := prefilled(b), time.Hour
	d.opt.Now = func() time.Duration { return now }
	budgets := make([]policy.Budget, 100_000)
	for i := range budgets {
		budgets[i] = bucket(fmt.Sprintf("acme/%d", i), 1, 1000, policy.Dynamic)
	}
	d.SetBudgets(budgets)
	for i := range budgets {
		d.touch(d.entry(budgets[i].Name), now)
	}
	for b.Loop() {
		now += time.Microsecond
		d.Flush(context.Background(), false)
	}
}
