package errorbound

import (
	"math/big"
	"time"

	"github.com/ration-dev/ration/lease"
)

const million = 1_000_000

// minted is rate·w, exact; 0 for a negative w.
func minted(r lease.Rate, w time.Duration) *big.Rat {
	if r.Zero() || w <= 0 {
		return new(big.Rat)
	}
	product := new(big.Int).Mul(big.NewInt(int64(r.Tokens)), big.NewInt(int64(w)))
	return new(big.Rat).SetFrac(product, big.NewInt(int64(r.Per)))
}

func whole(n lease.Tokens) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

func sum(terms ...*big.Rat) *big.Rat {
	total := new(big.Rat)
	for _, t := range terms {
		total.Add(total, t)
	}
	return total
}

func scale(r *big.Rat, n int64) *big.Rat { return new(big.Rat).Mul(r, new(big.Rat).SetInt64(n)) }

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) <= 0 {
		return a
	}
	return b
}

func most(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) >= 0 {
		return a
	}
	return b
}

// ceil and floor saturate at the range of int64.
func ceil(r *big.Rat) lease.Tokens {
	n := new(big.Int).Neg(r.Num())
	return saturated(n.Neg(n.Div(n, r.Denom())))
}

func floor(r *big.Rat) lease.Tokens { return saturated(new(big.Int).Div(r.Num(), r.Denom())) }

func saturated(n *big.Int) lease.Tokens {
	switch {
	case n.IsInt64():
		return lease.Tokens(n.Int64())
	case n.Sign() < 0:
		return -1 << 63
	}
	return 1<<63 - 1
}

// timeFor is how long r takes to make n tokens, rounded up to a microsecond;
// 0 when it never does.
func timeFor(r lease.Rate, n lease.Tokens) time.Duration {
	d, ok := r.TimeFor(n, 0)
	if !ok {
		return 0
	}
	return d
}

// longer is a + b, saturated.
func longer(a, b time.Duration) time.Duration {
	if a > 1<<63-1-b {
		return 1<<63 - 1
	}
	return a + b
}
