package allocation

import (
	"math/bits"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// The pool's arithmetic. A token is at any time in one of three places: in
// the pool (Available), in a region's wallet, or gone. What a region may hold
// is counted in Outstanding, never too low, so what can be spent anywhere is
// at most Available + Outstanding, and that sum is held to the ceiling. It
// rises by minting and by nothing else; every function here either moves
// tokens between the two, or lets some go.

// ceiling is what Available and Outstanding may reach together.
func (p *Pool) ceiling() lease.Tokens { return p.Burst + p.Float }

// room is how far the sum stands below the ceiling; negative after a cut. A
// pool in debt has no more room than an empty one: its debt is to be minted
// off, not lent out again as a cap.
func (p *Pool) room() lease.Tokens {
	if mutant.On(mutant.CeilingIgnoresOutstanding) {
		return p.ceiling() - max(0, p.Available)
	}
	return p.ceiling() - max(0, p.Available) - p.Outstanding
}

// unleased is the rate that is not in shares; 0 while X stands above a rate
// that was cut.
func (p *Pool) unleased() lease.Rate {
	return lease.Rate{Tokens: max(0, p.Rate.Tokens-p.X), Per: p.Rate.Per}
}

// advance mints what the unleased rate made since the last minting. An earlier
// now, or the same, changes nothing. X must not change before advance has
// brought the pool to the present.
func (p *Pool) advance(now lease.Time) {
	if now <= p.MintedAt {
		return
	}
	n, carry := p.unleased().Mint(now.Sub(p.MintedAt), p.Carry)
	p.MintedAt, p.Carry = now, carry
	p.Totals.Minted += n
	p.credit(n)
	p.Totals.rebase()
}

// credit adds n tokens, as far as they fit under Burst and the ceiling; the
// rest is clamped. A full pool also forgets the remainder of its minting: it
// would otherwise hold a part of a token too many. Tokens that are already
// there are never taken away.
func (p *Pool) credit(n lease.Tokens) {
	limit := min(p.Burst, p.ceiling()-p.Outstanding)
	if mutant.On(mutant.CeilingIgnoresOutstanding) {
		limit = p.Burst
	}
	fits := min(n, max(0, limit-p.Available))
	p.Available += fits
	p.Totals.Clamped += n - fits
	if p.Available >= limit {
		p.Carry = 0
	}
}

// shed lets go of the tokens that do not fit a contract that was cut.
func (p *Pool) shed() {
	limit := max(0, min(p.Burst, p.ceiling()-p.Outstanding))
	if cut := p.Available - limit; cut > 0 {
		p.Available = limit
		p.Totals.Clamped += cut
		p.Carry = 0
	}
}

// owe books n tokens that were admitted without a lease, up to a debt of most.
// What is above that is an alarm, as all totals are that cannot be true.
func (p *Pool) owe(n, most lease.Tokens) {
	fits := min(n, max(0, p.Available+most))
	p.Available -= fits
	p.Totals.Debt += fits
	if fits < n {
		p.Totals.Alarms++
	}
}

// endow returns what a share's cap is given to begin with when it grows by
// beta: as full as the pool is, relative to what the ceiling leaves it. So
// regions that take their shares one after the other fare alike, and room for
// the cap is made in the very amount that lacks: beta - endow(beta) never
// exceeds room() if beta <= room() + Available.
func (p *Pool) endow(beta lease.Tokens) lease.Tokens {
	whole := p.ceiling() - p.Outstanding
	if p.Available <= 0 || whole <= 0 {
		return 0
	}
	if beta >= whole {
		return min(beta, p.Available)
	}
	hi, lo := bits.Mul64(uint64(beta), uint64(p.Available))
	lo, carry := bits.Add64(lo, uint64(whole)-1, 0)
	n, _ := bits.Div64(hi+carry, lo, uint64(whole))
	return min(lease.Tokens(n), beta, p.Available)
}

// rebase keeps the sums of a pool that mints absurdly much, all of it clamped,
// within their type: what never went anywhere is struck from both sides.
func (t *Totals) rebase() {
	const most = 1 << 61
	if t.Minted < most {
		return
	}
	both := min(t.Minted, t.Clamped)
	t.Minted -= both
	t.Clamped -= both
}
