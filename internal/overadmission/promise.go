package overadmission

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Promise is the most that a normalized budget may exceed burst + rate·W
// within any window W in a deployment of so many regions: its float, the drift
// of clocks and one token of rounding; what other regions admit on their own
// under strategy independent; what regions admit without a lease where its
// owner allows that; and what isolated stores may go on spending.
func Promise(b policy.Budget, d policy.Deployment, regions int, w time.Duration) lease.Tokens {
	c := b.Contract
	stores, processes := b.LocalSurcharge(d, regions, w)
	promised := stores + processes + b.RegrantSurcharge(d, regions, w)
	independent := b.Strategy == policy.Independent
	switch {
	case c.IsQuota() && independent:
		return promised + lease.Tokens(len(b.Regions)-1)*c.Quota.N
	case c.IsQuota():
		return promised
	case independent:
		// Each region rounds and drifts on its own.
		n, minted := lease.Tokens(len(b.Regions)), whole(c.Rate, w)
		return promised + (n-1)*(c.Burst+minted) + n*(drift(minted, d.Clocks)+1)
	}
	return promised + b.Float + drift(whole(c.Rate, w), d.Clocks) + 1
}

// Late is what a clock error of d in the instants of decisions can add to a
// measurement.
func Late(r lease.Rate, d time.Duration) lease.Tokens { return whole(r, d) }

// whole is rate·w rounded up.
func whole(r lease.Rate, w time.Duration) lease.Tokens {
	if r.Zero() || w <= 0 {
		return 0
	}
	n, rest := r.Mint(w, 0)
	if rest > 0 {
		n++
	}
	return n
}

func drift(minted lease.Tokens, clocks lease.Clocks) lease.Tokens {
	parts := minted / 1_000_000 * lease.Tokens(clocks.DriftPPM)
	return parts + (minted%1_000_000*lease.Tokens(clocks.DriftPPM)+999_999)/1_000_000
}
