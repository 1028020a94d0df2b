package allocation

import (
	"fmt"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// step is one pure step on a budget's state: the state, the time, and the
// bounds it may rely on. Its methods change the state in place.
type step struct {
	*State
	cfg Config
	now Now
	// region is who speaks, in a Sync.
	region string
}

func newStep(cfg Config, now Now, s *State) *step {
	return &step{State: s, cfg: cfg.withDefaults(), now: now}
}

// Sync applies one item of a region's request to s and answers it. The
// message may be new, repeated, late, or from a life of the region's store
// that is over; whatever it says, s keeps its invariants.
//
// Everything is booked before anything is granted, so that what one lease of
// the item gives back is there for another. Every Sync changes s, a replay
// too, so that a store which writes what changed makes each answer durable.
func Sync(cfg Config, now Now, s *State, region string, it lease.Item) lease.ItemReply {
	reply := lease.ItemReply{Budget: it.Budget, Version: s.Budget.Version}
	if reply.Err = s.refuse(region, it); reply.Err != nil {
		return reply
	}
	st := newStep(cfg, now, s)
	st.region = region
	st.settle()

	fresh := make([]bool, len(it.Leases))
	for i := range it.Leases {
		fresh[i] = st.isNew(&it.Leases[i])
	}
	st.hear(it, fresh)
	st.bookLocal(it.Local)
	for i := range it.Leases {
		if fresh[i] {
			st.book(&it.Leases[i])
		}
	}
	plan := st.plan()
	reply.Leases = make([]lease.State, len(it.Leases))
	for i := range it.Leases {
		r := it.Leases[i]
		if plan.OnDemand {
			r.Want = min(r.Want, it.Waiting)
		}
		reply.Leases[i] = st.answer(&r, fresh[i], plan, it.Waiting)
	}
	return reply
}

// refuse names what makes an item as a whole unacceptable.
func (s *State) refuse(region string, it lease.Item) *lease.Error {
	if !s.serves(region) {
		return lease.Errorf(lease.UnknownRegion, "region", "budget %q has no part for region %q", s.Budget.Name, region)
	}
	for i := range it.Leases {
		r := &it.Leases[i]
		if s.foreign(region, r) || twice(it.Leases[:i], r) {
			return lease.Errorf(lease.Foreign, fmt.Sprintf("leases[%d].incarnation", i),
				"incarnation belongs to another region or kind")
		}
	}
	return nil
}

func (s *State) foreign(region string, r *lease.Report) bool {
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Incarnation == r.Incarnation && (l.Region != region || l.Kind != r.Kind) {
			return true
		}
	}
	return false
}

func twice(before []lease.Report, r *lease.Report) bool {
	for i := range before {
		if before[i].Incarnation == r.Incarnation {
			return true
		}
	}
	return false
}

// isNew reports whether a report is to be processed: it is newer than what the
// lease's row has answered, or there is no row. The same sequence gets the
// same answer, an older one the current state.
func (s *step) isNew(r *lease.Report) bool {
	l := s.find(s.region, r.Kind, r.Incarnation)
	switch {
	case l == nil || r.Seq > l.Seq:
		return true
	case r.Seq == l.Seq:
		return mutant.On(mutant.ReplayGrantsAgain)
	}
	return mutant.On(mutant.OlderSequenceProcessed)
}

// hear remembers what the planner is to know of the region. An item that only
// repeats is no news, except that the region is there.
func (s *step) hear(it lease.Item, fresh []bool) {
	if len(s.Pools) == 0 {
		return
	}
	row := s.regionRow(s.region)
	row.SeenAt = max(row.SeenAt, s.now.Governed)
	row.DemandTotal = max(row.DemandTotal, it.DemandTotal)
	news := len(fresh) == 0
	for i := range it.Leases {
		news = news || fresh[i]
		if fresh[i] && it.Leases[i].Kind == lease.Lump {
			row.Want = it.Leases[i].Want
		}
	}
	if !news {
		return
	}
	row.Demand, row.Waiting = it.Demand, it.Waiting
	if it.RTT > 0 {
		row.RTT = it.RTT
	}
}

// bookLocal books what was admitted without a lease as debt, each counter's
// increase once, as far as it can be true.
func (s *step) bookLocal(uses []lease.LocalUse) {
	p := s.current(s.now)
	if p == nil || len(uses) == 0 {
		return
	}
	most := s.mostOwed(p)
	for _, use := range uses {
		row := s.local(s.region, use.Source)
		row.SeenAt = max(row.SeenAt, s.now.Governed)
		if use.Total > row.Total {
			p.owe(use.Total-row.Total, most)
			row.Total = use.Total
		}
	}
}

// mostOwed is how deep a pool may be in debt: a full bucket, what it mints in
// the time for which a counter is remembered, and what every region's local
// allowance admits in it. No outage of that length costs more, and a counter
// that says more, by a fault or on purpose, would deny all regions for years.
func (s *step) mostOwed(p *Pool) lease.Tokens {
	minted, _ := p.Rate.Mint(s.cfg.Silence, 0)
	local := s.Budget.OnFailure
	admitted, _ := local.Rate.Mint(s.cfg.Silence, 0)
	regions := lease.Tokens(min(maxRegions, max(len(s.Budget.Regions), len(s.Regions))))
	return min(lease.MaxTokens, p.Burst+minted+regions*(local.Burst+admitted))
}

// book takes over the totals of a report that is to be processed.
func (s *step) book(r *lease.Report) {
	l := s.find(s.region, r.Kind, r.Incarnation)
	if l == nil {
		if r.Kind.IsShare() {
			s.regrant(r)
		}
		return
	}
	l.Seq = r.Seq
	switch {
	case mutant.On(mutant.EndedRevived) && l.Ending == Expired:
		l.Ending = Open
	case !l.unended():
		s.bookLate(l, r)
	case r.Kind.IsShare():
		s.bookShare(l, r)
	default:
		s.bookLump(l, r)
	}
}

// plan asks the planner what each region should hold, and remembers its
// hysteresis. A deleted budget plans nothing.
func (s *step) plan() Target {
	p := s.current(s.now)
	if p == nil || s.Budget.Deleted {
		return Target{}
	}
	planner := s.cfg.Planner
	if planner == nil {
		planner = Plan
	}
	mine := Target{}
	for _, t := range planner(s.State, p, s.now.Governed) {
		if i, known := s.searchRegion(t.Region); known {
			s.Regions[i].Paced = t.Paced.Beta > 0
		}
		if t.Region == s.region {
			mine = t
		}
	}
	return mine
}

// share returns the planned share of a kind.
func (t Target) share(k lease.Kind) Share {
	if k == lease.Reserve {
		return t.Reserve
	}
	return t.Paced
}

// answer grants what a new report may get and returns the lease's state.
func (s *step) answer(r *lease.Report, fresh bool, plan Target, waiting lease.Tokens) lease.State {
	l := s.find(s.region, r.Kind, r.Incarnation)
	switch {
	case l == nil && claimsLife(r):
		// Its row is gone: it ended long ago.
		return ended(r)
	case l == nil && r.Kind.IsShare():
		return s.openShare(r, plan)
	case l == nil:
		return s.openLump(r, plan, waiting)
	case !l.unended():
		return ended(r)
	case !fresh:
		return s.state(l)
	case r.Kind.IsShare():
		s.renewShare(l, plan)
	default:
		s.renewLump(l, r, plan, waiting)
	}
	if !l.unended() {
		return ended(r)
	}
	return s.state(l)
}

// claimsLife reports whether r can only come from a lease that was granted.
func claimsLife(r *lease.Report) bool {
	return r.Closed || r.Used > 0 || r.Returned > 0 || r.Prefetched > 0 || r.Beta > 0 || r.X.Tokens > 0
}

func ended(r *lease.Report) lease.State {
	return lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.Ended}
}

// state is a lease's answer as its row has it: after a Sync the new one, on a
// replay the same again.
func (s *step) state(l *Lease) lease.State {
	st := lease.State{
		Kind: l.Kind, Incarnation: l.Incarnation, Seq: l.Seq, Status: lease.Active,
		Granted: l.Granted, TTL: l.TTL, Keep: l.Keep, Short: l.Short, RetryAfter: l.RetryAfter,
	}
	if l.Kind.IsShare() {
		st.X = lease.Rate{Tokens: l.ToldX, Per: s.poolOf(l).Rate.Per}
		st.Beta = l.ToldBeta
	}
	return st
}

// extend tells a lease its ttl and moves its reclaim to when the region will
// have stopped by its own clock. A shorter ttl never brings it forward: the
// answer may be lost, and the one before it not.
func (s *step) extend(l *Lease, ttl time.Duration) {
	l.TTL = ttl
	reclaim := s.now.Governed.Add(ttl + s.cfg.Clocks.Guard(ttl))
	if mutant.On(mutant.NoGuard) {
		reclaim = s.now.Governed.Add(ttl)
	}
	if mutant.On(mutant.ShorterTTLReclaimsEarlier) {
		l.Reclaim = reclaim
		return
	}
	l.Reclaim = max(l.Reclaim, reclaim)
}

// ttl returns how long a lease of the pool may live from now: a region must
// have stopped by the end of a quota's window. Near that end it is 0, and then
// nothing is granted.
func (s *step) ttl(p *Pool, kind lease.Kind) time.Duration {
	ttl := s.Budget.TTL
	if kind == lease.Reserve {
		ttl = s.Budget.ShareTTL
	}
	if p.isWindow() {
		left := p.End.Sub(s.now.Raw)
		ttl = min(ttl, left-s.cfg.Clocks.Guard(max(0, left)))
	}
	return max(0, ttl)
}
