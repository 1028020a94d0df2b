package allocation

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
)

func drawClaims(t *rapid.T, most lease.Tokens) []claim {
	n := rapid.IntRange(1, 6).Draw(t, "regions")
	claims := make([]claim, n)
	for i := range claims {
		claims[i] = claim{
			key:    fmt.Sprintf("r%d", i),
			demand: lease.Tokens(rapid.Int64Range(0, int64(most)).Draw(t, "demand")),
			floor:  lease.Tokens(rapid.Int64Range(0, int64(most)).Draw(t, "floor")),
			weight: rapid.Int64Range(1, 12).Draw(t, "weight"),
		}
		if rapid.Bool().Draw(t, "no floor") {
			claims[i].floor = 0
		}
	}
	return claims
}

// waterfillSlowly hands out the queue token by token.
func waterfillSlowly(claims []claim, total lease.Tokens) []lease.Tokens {
	type place struct {
		claimant int
		k        lease.Tokens
		floor    bool
	}
	var queue []place
	for i, c := range claims {
		for k := lease.Tokens(1); k <= c.demand; k++ {
			queue = append(queue, place{i, k, k <= c.floor})
		}
	}
	slices.SortFunc(queue, func(a, b place) int {
		switch {
		case a.floor != b.floor && a.floor:
			return -1
		case a.floor != b.floor:
			return 1
		case before(claims[a.claimant], a.k, claims[b.claimant], b.k):
			return -1
		}
		return 1
	})
	got := make([]lease.Tokens, len(claims))
	for _, p := range queue[:min(int(total), len(queue))] {
		got[p.claimant]++
	}
	return got
}

// Fault seen to be caught: ties broken by position.
func TestWaterfillAsTheSlowQueue(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := drawClaims(t, 60)
		total := lease.Tokens(rapid.Int64Range(0, 200).Draw(t, "total"))
		fast, slow := waterfill(claims, total), waterfillSlowly(claims, total)
		if !slices.Equal(fast, slow) {
			t.Fatalf("waterfill %v of %d: %v, by the queue %v", claims, total, fast, slow)
		}
	})
}

// Faults seen to be caught: a second fill that forgets what the floors took
// (sum), one without floors (floors kept).
func TestWaterfillProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]lease.Tokens{20, 100_000, lease.MaxTokens}).Draw(t, "most")
		claims := drawClaims(t, most)
		total := lease.Tokens(rapid.Int64Range(0, int64(most)).Draw(t, "total"))
		got := waterfill(claims, total)

		var sum, asked, floors lease.Tokens
		for i, c := range claims {
			if got[i] < 0 || got[i] > c.demand {
				t.Fatalf("claim %d got %d of a demand of %d", i, got[i], c.demand)
			}
			sum += got[i]
			asked += c.demand
			floors += min(c.floor, c.demand)
		}
		if sum != min(total, asked) {
			t.Fatalf("sum %d, want min(%d, %d)", sum, total, asked)
		}
		if floors <= total {
			for i, c := range claims {
				if got[i] < min(c.floor, c.demand) {
					t.Fatalf("claim %d got %d, its floor is %d", i, got[i], c.floor)
				}
			}
		}
		checkMaxMin(t, claims, got)
	})
}

// checkMaxMin: nobody above its floor holds a token that stands behind one
// that an unsatisfied claimant lacks; so nobody starves.
func checkMaxMin(t *rapid.T, claims []claim, got []lease.Tokens) {
	for i, c := range claims {
		if got[i] == c.demand || got[i] < c.floor {
			continue
		}
		for j, other := range claims {
			if got[j] > other.floor && j != i && before(c, got[i]+1, other, got[j]) {
				t.Fatalf("claim %d lacks its token %d while claim %d has its token %d", i, got[i]+1, j, got[j])
			}
		}
	}
}

// Fault seen to be caught: proportional instead of max-min shares.
func TestWaterfillOverReportingNeverPaysAndNeverCosts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := drawClaims(t, 1000)
		total := lease.Tokens(rapid.Int64Range(0, 3000).Draw(t, "total"))
		i := rapid.IntRange(0, len(claims)-1).Draw(t, "liar")
		honest := waterfill(claims, total)
		truth := claims[i].demand
		claims[i].demand += lease.Tokens(rapid.Int64Range(0, 5000).Draw(t, "more"))
		lied := waterfill(claims, total)
		if min(lied[i], truth) != honest[i] {
			t.Fatalf("useful part %d honest, %d by reporting %d instead of %d", honest[i], min(lied[i], truth), claims[i].demand, truth)
		}
		for j := range claims {
			if j != i && lied[j] > honest[j] {
				t.Fatalf("claim %d gained from another's demand", j)
			}
		}
	})
}

// Fault seen to be caught: ties broken by position.
func TestWaterfillOrderIndependent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		claims := drawClaims(t, 50)
		total := lease.Tokens(rapid.Int64Range(0, 150).Draw(t, "total"))
		got := map[string]lease.Tokens{}
		for i, x := range waterfill(claims, total) {
			got[claims[i].key] = x
		}
		shuffled := rapid.Permutation(claims).Draw(t, "shuffled")
		for i, x := range waterfill(shuffled, total) {
			if got[shuffled[i].key] != x {
				t.Fatalf("%s got %d in one order, %d in another", shuffled[i].key, got[shuffled[i].key], x)
			}
		}
	})
}
