package overadmission

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Promise is the most that a normalized budget may exceed burst + rate·W
// within any window W: its float, the drift of clocks and one token of
// rounding; what other regions admit on their own under strategy independent;
// and what regions admit without a lease where its owner allows that.
func Promise(b policy.Budget, clocks lease.Clocks, w time.Duration) lease.Tokens {
	c := b.Contract
	var promised lease.Tokens
	if c.IsQuota() {
		if b.Strategy == policy.Independent {
			promised = lease.Tokens(len(b.Regions)-1) * c.Quota.N
		}
		return promised + locals(b, w)
	}
	minted := whole(c.Rate, w)
	promised = b.Float + drift(minted, clocks) + 1
	if b.Strategy == policy.Independent {
		// Each region rounds and drifts on its own.
		n := lease.Tokens(len(b.Regions))
		promised = (n-1)*(c.Burst+minted) + n*(drift(minted, clocks)+1)
	}
	return promised + locals(b, w)
}

// Late is what a clock error of d in the instants of decisions can add to a
// measurement.
func Late(r lease.Rate, d time.Duration) lease.Tokens { return whole(r, d) }

func locals(b policy.Budget, w time.Duration) lease.Tokens {
	if b.OnFailure.Mode != policy.AllowLocal {
		return 0
	}
	return lease.Tokens(len(b.Regions)) * (b.OnFailure.Burst + whole(b.OnFailure.Rate, w))
}

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
