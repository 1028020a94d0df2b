package allocation

import (
	"math/bits"

	"github.com/ration-dev/ration/lease"
)

// claim is one region's part in a water-filling.
type claim struct {
	// key names the claimant and breaks ties, so that the order of claims does
	// not matter; keys are distinct.
	key string
	// demand is what the claimant can use, floor what it gets first of that, and
	// weight (>= 1) its claim on the rest. Tokens in 0..MaxTokens.
	demand, floor lease.Tokens
	weight        int64
}

// waterfill divides total among claims by weighted max-min fairness with
// floors, in whole tokens: the k-th token of a claimant stands in a queue at
// k/weight, floors before the rest, and the first total tokens of the queue
// are given. So the sum is exactly min(total, sum of demands), nobody gets
// more than its demand, asking for more never costs oneself a token, and
// never gains a token that is of use. total < 0 counts as 0.
func waterfill(claims []claim, total lease.Tokens) []lease.Tokens {
	got := make([]lease.Tokens, len(claims))
	limit := make([]lease.Tokens, len(claims))
	for i, c := range claims {
		limit[i] = max(0, min(c.floor, c.demand))
	}
	left := fill(claims, got, limit, max(0, total))
	for i, c := range claims {
		limit[i] = max(0, c.demand)
	}
	fill(claims, got, limit, left)
	return got
}

// fill raises got towards limit by n tokens in all, in the order of the queue
// that waterfill describes, and returns what of n is left over.
func fill(claims []claim, got, limit []lease.Tokens, n lease.Tokens) lease.Tokens {
	room := lease.Tokens(0)
	for i := range claims {
		room += min(limit[i]-got[i], n-min(room, n))
	}
	if room < n {
		copy(got, limit)
		return n - room
	}
	level := fillLevel(claims, got, limit, n)
	for i, c := range claims {
		upTo := filledTo(level, c.weight, got[i], limit[i])
		n -= upTo - got[i]
		got[i] = upTo
	}
	for ; n > 0; n-- {
		next := nextInQueue(claims, got, limit)
		if next < 0 {
			break
		}
		got[next]++
	}
	return n
}

// fillLevel returns a level just below the one at which n tokens have been
// given: by far less than a token's worth for any sum that matters, so that
// few are left for the exact comparison, but by more than floating point errs.
func fillLevel(claims []claim, got, limit []lease.Tokens, n lease.Tokens) float64 {
	low, high := 0.0, 0.0
	for i, c := range claims {
		high = max(high, float64(limit[i])/float64(c.weight))
	}
	for range 64 {
		mid := low + (high-low)/2
		if fillSum(claims, got, limit, mid) <= n {
			low = mid
		} else {
			high = mid
		}
	}
	return low * (1 - 1e-12)
}

func fillSum(claims []claim, got, limit []lease.Tokens, level float64) lease.Tokens {
	sum := lease.Tokens(0)
	for i, c := range claims {
		sum = min(lease.MaxTokens+1, sum+filledTo(level, c.weight, got[i], limit[i])-got[i])
	}
	return sum
}

// filledTo is where a claimant stands at a level.
func filledTo(level float64, weight int64, got, limit lease.Tokens) lease.Tokens {
	at := level * float64(weight)
	if at >= float64(limit) {
		return limit
	}
	return max(got, lease.Tokens(at))
}

// nextInQueue returns the claimant of the next token, -1 if all have theirs.
func nextInQueue(claims []claim, got, limit []lease.Tokens) int {
	best := -1
	for i := range claims {
		if got[i] >= limit[i] {
			continue
		}
		if best < 0 || before(claims[i], got[i]+1, claims[best], got[best]+1) {
			best = i
		}
	}
	return best
}

// before reports whether a's k-th token stands before b's m-th: k/a.weight <
// m/b.weight, exactly, ties by key.
func before(a claim, k lease.Tokens, b claim, m lease.Tokens) bool {
	hi1, lo1 := bits.Mul64(uint64(k), uint64(b.weight))
	hi2, lo2 := bits.Mul64(uint64(m), uint64(a.weight))
	if hi1 != hi2 {
		return hi1 < hi2
	}
	if lo1 != lo2 {
		return lo1 < lo2
	}
	return a.key < b.key
}
