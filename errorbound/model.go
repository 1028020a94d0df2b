package errorbound

import (
	"math/big"
	"strconv"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// model is what the causes of one budget are computed from.
type model struct {
	budget  policy.Budget
	deploy  Deployment
	window  time.Duration
	quota   bool
	regions int
	// rate and burst are the contract's; a quota has N as its burst, and no rate.
	rate  lease.Rate
	burst lease.Tokens
	// pools is how many contracts the pool carries: one per region for an
	// independent budget, else 1.
	pools int
	// ceiling is what the pool and the regions may hold together.
	ceiling *big.Rat
	// life is the longest that a lease of the budget may live past its last
	// extension, by the ledger's clock, until it is reclaimed.
	life time.Duration
}

// newModel reads a normalized budget, whose values are in bounds.
func newModel(b policy.Budget, d Deployment, w time.Duration) *model {
	m := &model{
		budget: b, deploy: d, window: w, quota: b.Contract.IsQuota(), pools: 1,
		regions: len(b.Regions), rate: b.Contract.Rate, burst: b.Contract.Limit(),
	}
	if m.regions == 0 {
		m.regions = d.Regions
	}
	if m.quota {
		m.rate = lease.Rate{}
	}
	if b.Strategy == policy.Independent {
		m.pools = m.regions
	}
	m.life = m.longestLife()
	m.ceiling = sum(scale(whole(m.burst), int64(m.pools)), whole(b.Float))
	return m
}

// fast is what a rate mints in w by a clock as fast as any may be. It shows up
// to a tick more than has passed: one token of that is covered where the sum is
// rounded up, the rest is added here.
func (m *model) fast(r lease.Rate, w time.Duration) *big.Rat {
	if w <= 0 {
		return new(big.Rat)
	}
	fast := new(big.Rat).Mul(minted(r, w), big.NewRat(million+m.deploy.Clocks.DriftPPM, million))
	return fast.Add(fast, policy.OverTick(r))
}

// heldByOne is the most that one region may hold: of an independent budget
// its contract, else all there is.
func (m *model) heldByOne() *big.Rat {
	return new(big.Rat).Quo(m.ceiling, whole(lease.Tokens(m.pools)))
}

// prefetch is the most that one process holds, with how that is known.
func (m *model) prefetch() (lease.Tokens, string) {
	switch {
	case m.deploy.Prefetch > 0:
		return m.deploy.Prefetch, "as declared"
	case m.burst < prefetchLimit:
		return 0, "contracts below " + strconv.Itoa(int(prefetchLimit)) + " tokens are not prefetched"
	}
	return floor(new(big.Rat).Quo(m.heldByOne(), whole(prefetchPart))), "an eighth of what a wallet may hold"
}

// prefetchLimit and prefetchPart are the agent's rule for how much a process
// takes ahead.
const (
	prefetchLimit lease.Tokens = 100
	prefetchPart  lease.Tokens = 8
)

func (m *model) longestLife() time.Duration {
	ttl := m.budget.TTL
	if m.hasStanding() {
		ttl = max(ttl, m.budget.ShareTTL)
	}
	return m.reclaimed(ttl)
}

// reclaimed is when the ledger takes a lease back.
func (m *model) reclaimed(ttl time.Duration) time.Duration {
	return longer(ttl, m.deploy.Clocks.Guard(ttl))
}

// hasStanding reports whether regions hold shares for share_ttl.
func (m *model) hasStanding() bool {
	if m.quota {
		return false
	}
	if m.budget.Strategy != policy.Dynamic {
		return true
	}
	for _, r := range m.budget.Regions {
		if !r.Reserve.Rate.Zero() {
			return true
		}
	}
	return false
}

// reservedWithin is what standing shares mint in w.
func (m *model) reservedWithin(w time.Duration) *big.Rat {
	if m.budget.Strategy != policy.Dynamic {
		return minted(m.rate, w)
	}
	total := new(big.Rat)
	for _, r := range m.budget.Regions {
		total.Add(total, minted(r.Reserve.Rate, w))
	}
	return least(total, minted(m.rate, w))
}
