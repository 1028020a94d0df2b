package policy_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/policy"
)

// The index finds what comparing every budget finds. Seen to catch: a budget
// filed only under its first pair by name although matched by another.
func TestIndexMatchesAsASlowSearch(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "c"})
	rapid.Check(t, func(t *rapid.T) {
		matches := rapid.SliceOfN(rapid.MapOfN(word, word, 0, 3), 0, 12).Draw(t, "matches")
		var budgets []policy.Budget
		for i, m := range matches {
			budgets = append(budgets, policy.Budget{Name: fmt.Sprint(i), Match: m})
		}
		request := rapid.MapOfN(word, word, 0, 3).Draw(t, "request")
		var pairs []policy.Pair
		for k, v := range request {
			pairs = append(pairs, policy.Pair{Key: k, Value: v})
		}
		var want []int
		for i, b := range budgets {
			all := len(b.Match) > 0
			for k, v := range b.Match {
				all = all && request[k] == v
			}
			if all {
				want = append(want, i)
			}
		}
		got := policy.NewIndex(budgets).Match(nil, pairs)
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("found %v, want %v", got, want)
		}
	})
}

func TestIndexDoesNotAllocate(t *testing.T) {
	x := policy.NewIndex([]policy.Budget{{Name: "s", Match: map[string]string{"tenant": "acme", "endpoint": "search"}}})
	pairs := []policy.Pair{{Key: "tenant", Value: "acme"}, {Key: "endpoint", Value: "search"}}
	dst := make([]int, 0, 4)
	if n := testing.AllocsPerRun(100, func() { dst = x.Match(dst[:0], pairs) }); n != 0 || len(dst) != 1 {
		t.Errorf("%v allocations, found %v; want 0 and one budget", n, dst)
	}
}

func TestIndexNamed(t *testing.T) {
	x := policy.NewIndex([]policy.Budget{{Name: "a"}, {Name: "b", Version: 1}, {Name: "b", Version: 2}})
	i, ok := x.Named("b")
	if !ok || x.At(i).Version != 2 || x.Len() != 3 {
		t.Errorf("b is at %d, %v", i, ok)
	}
	if _, ok := x.Named("c"); ok {
		t.Error("found a budget that is not there")
	}
}
