package allocation

import (
	"cmp"
	"slices"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// NewState returns the state of a budget that the ledger does not know, its
// pool full: a pool starts full once in its life. For a deleted budget there
// is no pool.
func NewState(now Now, b policy.Budget) *State {
	s := &State{Budget: b}
	if b.Contract.IsQuota() {
		s.roll(now)
		return s
	}
	if b.Deleted {
		return s
	}
	p := Pool{MintedAt: now.Governed}
	p.Rate, p.Burst, p.Float = PoolContract(b)
	p.Available, p.Totals.Start = p.Burst, p.Burst
	s.Pools = []Pool{p}
	return s
}

// SetBudget puts b in force under its own name, and reports whether that
// changed anything. A deleted b ends the budget: what it had stays on record,
// since the time its bucket takes to fill says when its name may start afresh.
//
// No change adds a token, save that a quota's N, in the same calendar, moves
// what is left of the window by the difference. A bucket's new rate counts
// from now on and a new burst is a new cap: raised, it fills by minting;
// lowered, what does not fit is clamped, and what is leased above it is
// recalled. A change between bucket and quota, or of a quota's calendar, goes
// on with the tokens and leases there are, as far as they fit, until the next
// window begins full. Starting a full window at once would let two changes
// mint one, and a second pool beside the first would let old shares mint
// outside the new limit.
func (s *State) SetBudget(cfg Config, now Now, b policy.Budget) (changed bool) {
	if b.Deleted {
		kept := s.Budget
		kept.Deleted, kept.Version = true, b.Version
		b = kept
	}
	if samePolicy(s.Budget, b) {
		return false
	}
	if len(s.Pools) == 0 {
		*s = *NewState(now, b)
		return true
	}
	st := newStep(cfg, now, s)
	st.settle()
	before := s.Budget.Contract
	s.Budget = b
	switch p := s.current(now); {
	case p != nil:
		st.recontract(p, before)
	case !b.Contract.IsQuota():
		// The last window of a deleted quota is over: a bucket takes its place,
		// empty, as it would be after a change while the window was open.
		st.addBucket()
	}
	s.roll(now)
	return true
}

// samePolicy is policy's Same, for budgets of which one has been stored: empty
// and missing are then one.
func samePolicy(a, b policy.Budget) bool {
	for _, v := range []*policy.Budget{&a, &b} {
		if len(v.Match) == 0 {
			v.Match = nil
		}
		if len(v.Regions) == 0 {
			v.Regions = nil
		}
	}
	return a.Same(b)
}

// recontract puts the budget's contract on the pool that before was open for
// another one.
func (s *step) recontract(p *Pool, before policy.Contract) {
	contract := s.Budget.Contract
	rate, burst, float := PoolContract(s.Budget)
	sameCalendar := before.IsQuota() && contract.IsQuota() &&
		before.Quota.Per == contract.Quota.Per && before.Quota.Zone == contract.Quota.Zone
	if sameCalendar {
		p.Available += burst - p.Burst
		p.Totals.Adjusted += burst - p.Burst
	} else if before.IsQuota() || contract.IsQuota() {
		p = s.recalendar(p, contract)
	}
	s.setUnit(p, rate)
	p.Burst, p.Float = burst, float
	if !contract.IsQuota() {
		p.MintedAt = max(p.MintedAt, s.now.Governed)
	}
	p.shed()
}

// setUnit puts a rate on the pool and converts what is counted in its unit.
// Counts round up, so the sum of x may stand above the rate by less than one
// per share until they next shrink. What regions mint does not: what they are
// told rounds down. A rate of zero keeps the unit, for the shares that are still
// to shrink.
func (s *step) setUnit(p *Pool, rate lease.Rate) {
	if rate.Per == 0 {
		rate.Per = p.Rate.Per
	}
	old := p.Rate.Per
	p.Rate.Tokens = rate.Tokens
	if old == rate.Per {
		return
	}
	p.X, p.Carry = 0, 0
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Window != p.Start || !l.Kind.IsShare() {
			continue
		}
		s.accrue(l)
		l.X = lease.Rate{Tokens: l.X, Per: old}.In(rate.Per, true).Tokens
		l.ToldX = lease.Rate{Tokens: l.ToldX, Per: old}.In(rate.Per, false).Tokens
		l.MintCarry = 0
		p.X += l.X
	}
	p.Rate.Per = rate.Per
}

// recalendar makes the open pool the bucket's, or that of the rest of the
// calendar window that now lies in. Such a window begins at the change itself,
// so that its start is no other pool's. What was written off before stays so:
// a bucket may have minted it anew.
func (s *step) recalendar(p *Pool, contract policy.Contract) *Pool {
	old := p.Start
	p.Start, p.End = 0, 0
	if contract.IsQuota() {
		p.Start = s.now.Raw
		_, p.End = window(contract.Quota, s.now.Raw)
	}
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Window != old {
			continue
		}
		l.Window = p.Start
		if l.Kind == lease.Lump && !l.unended() {
			l.LateReturned = l.WrittenOff - l.LateUsed
		}
	}
	for i := range s.Regions {
		if s.Regions[i].Window == old {
			s.Regions[i].Window = p.Start
		}
	}
	s.sortPools()
	return s.current(s.now)
}

// addBucket adds an empty bucket for the budget's contract.
func (s *step) addBucket() {
	p := Pool{MintedAt: s.now.Governed}
	p.Rate, p.Burst, p.Float = PoolContract(s.Budget)
	s.Pools = append(s.Pools, p)
	s.sortPools()
}

func (s *State) sortPools() {
	slices.SortFunc(s.Pools, func(a, b Pool) int { return cmp.Compare(a.Start, b.Start) })
}

// roll opens the pool of the quota's window that now lies in, unless one is
// open, and drops those that are over and have no lease row left.
func (s *State) roll(now Now) {
	quota := s.Budget.Contract.Quota
	if !s.Budget.Contract.IsQuota() || s.Budget.Deleted || s.current(now) != nil {
		return
	}
	p := Pool{MintedAt: now.Governed}
	p.Start, p.End = window(quota, now.Raw)
	if n := len(s.Pools); n > 0 {
		p.Start = max(p.Start, s.Pools[n-1].End)
	}
	p.Rate, p.Burst, p.Float = PoolContract(s.Budget)
	p.Available, p.Totals.Start = p.Burst, p.Burst
	s.Pools = append(s.Pools, p)
	s.dropClosed(now)
}

// dropClosed removes pools whose window is over and that no lease row names.
// The only pool of a deleted budget stays until it is tidied away.
func (s *State) dropClosed(now Now) {
	s.Pools = slices.DeleteFunc(s.Pools, func(p Pool) bool {
		if p.openAt(now.Raw) || s.Budget.Deleted {
			return false
		}
		return !slices.ContainsFunc(s.Leases, func(l Lease) bool { return l.Window == p.Start })
	})
}
