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
// every Term.
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
		Term{"rounding of minting", b.RoundingSurcharge(1)})
	regions := len(b.Regions)
	if stores, processes := b.LocalSurcharge(d, regions, w); stores > 0 {
		c.Terms = append(c.Terms, Term{fmt.Sprintf("local allowance of %d regions at %d", regions, stores/lease.Tokens(max(1, regions))), stores})
		if processes > 0 {
			c.Terms = append(c.Terms, Term{"local allowance in processes while stores are away", processes})
		}
	}
	c.Float = c.left()
	if b.RegrantSurcharge(d, regions, w) > 0 {
		c.regrant(b, d, w)
	}
	return c
}

// left is Accepted less the terms.
func (c Ceiling) left() lease.Tokens {
	left := tokensRat(c.Accepted)
	for _, t := range c.Terms {
		left.Sub(left, tokensRat(t.Tokens))
	}
	return floor(left)
}

// regrant adds the term of regranted shares. The caps of a dynamic budget's
// shares may come to burst and float together, so the term rises with the very
// float that it lowers: by one per region for each token.
func (c *Ceiling) regrant(b Budget, d Deployment, w time.Duration) {
	b.Float = 0
	left := max(0, c.Float-b.RegrantSurcharge(d, len(b.Regions), w))
	if b.Strategy == Dynamic {
		left /= lease.Tokens(1 + len(b.Regions))
	}
	b.Float = left
	c.Terms = append(c.Terms, Term{
		"shares regranted while an isolated old primary still spends", b.RegrantSurcharge(d, len(b.Regions), w),
	})
	if c.Float = c.left(); c.Float > 0 {
		c.Float = left // what the division leaves over is not worth a term of its own
	}
}

// RoundingSurcharge is what a bucket with the rates of so many contracts mints
// too much because clocks are read in whole ticks, one more of which may seem to
// have passed within a window: at least a token. A quota mints nothing.
func (b Budget) RoundingSurcharge(contracts int) lease.Tokens {
	if b.Contract.IsQuota() {
		return 0
	}
	return max(1, ceil(new(big.Rat).Mul(minted(b.Contract.Rate, lease.Tick), big.NewRat(int64(contracts), 1))))
}

// LocalSurcharge is the most that regions may admit without a lease within w:
// in their stores, and in processes whose store is away. Both are 0 unless the
// failure mode is AllowLocal.
//
// A store's bucket holds its burst and mints all the time. A promotion may
// leave two of them minting until the old primary has stopped. A process's
// bucket starts empty at each outage of its store and mints during it, so all
// of a region's together have no more than one bucket mints in an outage, and
// no more than one bucket may admit within w. All of them run on clocks that
// may be fast, and show up to a tick more than has passed. What a region
// admits is a whole number of tokens, and a bucket holds no fraction above its
// burst, so the fraction at the end is cut off.
func (b Budget) LocalSurcharge(d Deployment, regions int, w time.Duration) (stores, processes lease.Tokens) {
	f := b.OnFailure
	if f.Mode != AllowLocal {
		return 0, 0
	}
	fast := func(w time.Duration) *big.Rat {
		if w <= 0 {
			return new(big.Rat)
		}
		shown := mintedFast(f.Rate, w, d.Clocks)
		return shown.Add(shown, minted(f.Rate, lease.Tick))
	}
	bucket := new(big.Rat).Add(tokensRat(f.Burst), fast(w))
	store := new(big.Rat).Set(bucket)
	if d.ReplicatedStores {
		second := bucket
		if d.StoreIsolation > 0 {
			second = least(bucket, fast(d.StoreIsolation))
		}
		store.Add(store, second)
	}
	process := least(bucket, fast(d.StoreOutage))
	return times(floor(store), regions), times(floor(process), regions)
}

// RegrantSurcharge is the most that could be spent within w of shares that
// were regranted while a primary still serves them, if each region's store
// fails over once: what the share held, at most its cap, and what it goes on
// minting while the old primary accepts writes. It is 0 with standalone stores,
// whose restart proves the balance gone, with Wait, and for a quota, which has
// no shares.
//
// The parts of a static budget are fixed, so all regions' together are one
// contract; those of an independent one are a contract each. A dynamic
// budget's rate and caps move on as soon as they are regranted, so that each
// region's may have been all there is.
//
// Either primary may ask for the other's share: neither can tell whether its
// row was lost or it was replaced. So the share that the ledger has taken back
// may be the new primary's, which mints until it is told so or dies, a ttl
// after the last time that the old one could ask. Where parts are fixed, what
// was granted in its place stays counted for at least as long, and nothing
// mints it.
func (b Budget) RegrantSurcharge(d Deployment, regions int, w time.Duration) lease.Tokens {
	if !d.ReplicatedStores || b.OnStoreLoss != Regrant || b.Contract.IsQuota() {
		return 0
	}
	w = b.RegrantWindow(d, w)
	share := new(big.Rat).Add(tokensRat(b.Contract.Burst), mintedFast(b.Contract.Rate, w, d.Clocks))
	share.Add(share, OverTick(b.Contract.Rate))
	switch b.Strategy {
	case Static:
		regions = 1
	case Dynamic:
		share.Add(share, tokensRat(b.Float))
	}
	return times(ceil(share), regions)
}

// RegrantWindow is how long within w a share may mint that was regranted.
func (b Budget) RegrantWindow(d Deployment, w time.Duration) time.Duration {
	switch {
	case d.StoreIsolation == 0:
		return w
	case b.Strategy == Dynamic:
		return min(w, d.StoreIsolation+b.TTL)
	}
	return min(w, d.StoreIsolation)
}

func least(a, b *big.Rat) *big.Rat {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// minted is rate·w, exact.
func minted(r lease.Rate, w time.Duration) *big.Rat {
	if r.Zero() {
		return new(big.Rat)
	}
	product := new(big.Int).Mul(big.NewInt(int64(r.Tokens)), big.NewInt(int64(w/time.Microsecond)))
	return new(big.Rat).SetFrac(product, big.NewInt(int64(r.Per/time.Microsecond)))
}

// mintedFast is what rate mints within w by a clock as fast as any may be. Read
// in whole ticks the clock shows up to one more than has passed, which is left to
// whoever rounds: beside a token, which rounding up adds already, OverTick.
func mintedFast(r lease.Rate, w time.Duration, c lease.Clocks) *big.Rat {
	return new(big.Rat).Mul(minted(r, w), big.NewRat(1_000_000+c.DriftPPM, 1_000_000))
}

// OverTick is what a rate mints in a tick above one token.
func OverTick(r lease.Rate) *big.Rat {
	over := minted(r, lease.Tick)
	if over.Sub(over, tokensRat(1)).Sign() < 0 {
		over.SetInt64(0)
	}
	return over
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
