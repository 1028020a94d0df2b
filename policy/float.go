package policy

import (
	"fmt"
	"math/big"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Term is one named part of what a percentage within a window is spent on.
type Term struct {
	Name   string
	Tokens lease.Tokens
}

// Ceiling is how a percentage within a window becomes a float: Accepted less
// every Term. DESIGN 3.
type Ceiling struct {
	// Accepted is floor(p/100·(burst + rate·W)).
	Accepted lease.Tokens
	Terms    []Term
	// Float is what is left; negative when the terms alone exceed it.
	Float lease.Tokens
}

// String names each term with its number.
func (c Ceiling) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d accepted", c.Accepted)
	for _, t := range c.Terms {
		fmt.Fprintf(&b, " - %d %s", t.Tokens, t.Name)
	}
	fmt.Fprintf(&b, " = %d", c.Float)
	return b.String()
}

// ceiling computes the float of a budget with a percentage. Every number
// rounds against the owner: what is accepted down, what is spent of it up.
func (b Budget) ceiling(d Deployment) Ceiling {
	w := b.OverAdmission.Within
	rate, burst := b.Contract.Rate, b.Contract.Burst

	whole := new(big.Rat).Add(tokensRat(burst), minted(rate, w))
	whole.Mul(whole, big.NewRat(b.OverAdmission.MilliPercent, 100_000))
	c := Ceiling{Accepted: floor(whole)}

	drift := new(big.Rat).Mul(minted(rate, w), big.NewRat(d.Clocks.DriftPPM, 1_000_000))
	c.Terms = append(c.Terms,
		Term{"clock drift", ceil(drift)},
		Term{"rounding of minting", 1})
	if b.OnFailure.Mode == AllowLocal {
		local := new(big.Rat).Add(tokensRat(b.OnFailure.Burst), minted(b.OnFailure.Rate, w))
		each := ceil(local)
		c.Terms = append(c.Terms, Term{
			fmt.Sprintf("local allowance of %d regions at %d", len(b.Regions), each),
			times(each, len(b.Regions)),
		})
	}
	if b.OnStoreLoss == Regrant && d.ReplicatedStores {
		c.Terms = append(c.Terms, Term{"shares regranted while an isolated old primary still spends", b.regrantable(w)})
	}

	left := tokensRat(c.Accepted)
	for _, t := range c.Terms {
		left.Sub(left, tokensRat(t.Tokens))
	}
	c.Float = floor(left)
	return c
}

// regrantable is the most that isolated old primaries could spend within w of
// shares that were regranted meanwhile: each region's cap and its minting. The
// shares of a dynamic budget may come to the whole contract.
func (b Budget) regrantable(w time.Duration) lease.Tokens {
	return ceil(new(big.Rat).Add(tokensRat(b.Contract.Burst), minted(b.Contract.Rate, w)))
}

// minted is rate·w, exact.
func minted(r lease.Rate, w time.Duration) *big.Rat {
	if r.Zero() {
		return new(big.Rat)
	}
	product := new(big.Int).Mul(big.NewInt(int64(r.Tokens)), big.NewInt(int64(w/time.Microsecond)))
	return new(big.Rat).SetFrac(product, big.NewInt(int64(r.Per/time.Microsecond)))
}

func perSecond(r lease.Rate) *big.Rat { return minted(r, time.Second) }

func tokensRat(n lease.Tokens) *big.Rat { return new(big.Rat).SetInt64(int64(n)) }

// floor and ceil saturate at the range of int64.
func floor(r *big.Rat) lease.Tokens {
	return saturated(new(big.Int).Div(r.Num(), r.Denom()))
}

func ceil(r *big.Rat) lease.Tokens {
	n := new(big.Int).Neg(r.Num())
	return saturated(n.Neg(n.Div(n, r.Denom())))
}

func saturated(n *big.Int) lease.Tokens {
	if n.IsInt64() {
		return lease.Tokens(n.Int64())
	}
	if n.Sign() < 0 {
		return -1 << 63
	}
	return 1<<63 - 1
}

func times(n lease.Tokens, k int) lease.Tokens {
	return saturated(new(big.Int).Mul(big.NewInt(int64(n)), big.NewInt(int64(k))))
}
