package allocation

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// askAgain is when a region that got less than it might, for a reason that
// only other regions' messages can change, should ask again.
const askAgain = time.Second

func notPlanned(r *lease.Report, short lease.Shortage, retry time.Duration) lease.State {
	return lease.State{
		Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq,
		Status: lease.NotPlanned, Short: short, RetryAfter: retry,
	}
}

// newLease is the row that a first grant makes.
func (s *step) newLease(r *lease.Report, p *Pool) *Lease {
	s.forgetEnded(s.region, r.Kind)
	return s.addLease(Lease{
		Region: s.region, Kind: r.Kind, Incarnation: r.Incarnation,
		Window: p.Start, Seq: r.Seq, MintedAt: s.now.Governed,
	})
}

// openShare grants a new share, if the plan holds one, none of its kind stands
// in the way, and the pool has room for it. In the place of a share that was
// just regranted, or beside what is left of one, it starts empty.
func (s *step) openShare(r *lease.Report, plan Target) lease.State {
	p := s.current(s.now)
	share := plan.share(r.Kind)
	if p == nil || p.Burst == 0 {
		return notPlanned(r, lease.LimitZero, askAgain)
	}
	if share.Beta <= 0 {
		return notPlanned(r, lease.Enough, askAgain)
	}
	if other := s.inTheWay(s.region, r.Kind); other != nil {
		st := notPlanned(r, lease.Enough, max(askAgain, other.Reclaim.Sub(s.now.Governed)))
		if s.Budget.OnStoreLoss == policy.Regrant && !other.Closing {
			st.RetryAfter = askAgain
		}
		st.Holder = other.Incarnation
		return st
	}
	ttl := s.ttl(p, r.Kind)
	if ttl <= 0 {
		return notPlanned(r, lease.PoolEmpty, askAgain)
	}
	l := s.newLease(r, p)
	s.growShare(l, share, s.regrantedNow(r) || s.remainder(s.region, r.Kind))
	if l.X == 0 && l.Granted == 0 || l.Beta == 0 {
		short := s.whyNoShare(p, l)
		s.dropLease(l)
		return notPlanned(r, short, askAgain)
	}
	s.finishShare(l, share, ttl)
	return s.state(l)
}

// dropLease takes back a row that was made in this step and holds nothing
// worth telling.
func (s *step) dropLease(l *Lease) {
	s.setX(l, 0)
	s.setHold(l, 0)
	i, _ := s.search(l.Region, l.Kind, l.Incarnation)
	s.Leases = append(s.Leases[:i], s.Leases[i+1:]...)
}

func (s *step) whyNoShare(p *Pool, l *Lease) lease.Shortage {
	if l.Beta == 0 {
		return lease.CeilingReached
	}
	return lease.PoolEmpty
}

// renewShare extends a share and moves it towards the plan.
func (s *step) renewShare(l *Lease, plan Target) {
	p := s.poolOf(l)
	share := plan.share(l.Kind)
	ttl := s.ttl(p, l.Kind)
	if l.Closing || !p.openAt(s.now.Raw) || ttl <= 0 {
		share = Share{}
	}
	s.growShare(l, share, s.remainder(l.Region, l.Kind))
	s.finishShare(l, share, ttl)
}

// finishShare completes a share's answer.
func (s *step) finishShare(l *Lease, share Share, ttl time.Duration) {
	s.extend(l, ttl)
	l.Keep, l.Short, l.RetryAfter = lease.MaxTokens, lease.Enough, 0
	if share.Keep > 0 {
		l.Keep = share.Keep
	}
	switch {
	case s.limitZero(l):
		l.Short = lease.LimitZero
	case l.ToldX < share.X || l.ToldBeta < share.Beta:
		l.Short, l.RetryAfter = lease.CeilingReached, askAgain
	}
}

func (s *step) limitZero(l *Lease) bool { return s.Budget.Deleted || s.poolOf(l).Burst == 0 }

// openLump grants a new lump, if there is a token for it. What an earlier
// incarnation still holds does not stand in its way; the pool counts both.
func (s *step) openLump(r *lease.Report, plan Target, waiting lease.Tokens) lease.State {
	p := s.current(s.now)
	if p == nil || p.Burst == 0 {
		return notPlanned(r, lease.LimitZero, askAgain)
	}
	if !plan.Lumps {
		return notPlanned(r, lease.Enough, askAgain)
	}
	if s.tooManyLumps() {
		return notPlanned(r, lease.CeilingReached, askAgain)
	}
	ttl := s.ttl(p, lease.Lump)
	n := s.lumpGrant(p, 0, r.Want, plan)
	if ttl <= 0 || n <= 0 {
		short, retry := s.shortage(p, 0, r.Want, plan, waiting)
		return notPlanned(r, short, retry)
	}
	l := s.newLease(r, p)
	s.grantLump(l, n)
	s.finishLump(l, r.Want, plan, waiting, ttl)
	return s.state(l)
}

// wornOut is a lump whose totals leave no room for another life as long as the
// last. It is granted nothing more, and once it is spent it ends, so that the
// region opens a new one.
func (l *Lease) wornOut() bool { return l.Granted > lease.MaxTokens/2 }

// renewLump extends a lump and tops it up. One whose window is over or which
// the region has fenced gets nothing more.
func (s *step) renewLump(l *Lease, r *lease.Report, plan Target, waiting lease.Tokens) {
	p := s.poolOf(l)
	ttl := s.ttl(p, lease.Lump)
	if !p.openAt(s.now.Raw) {
		plan = Target{}
	}
	if l.wornOut() && l.Hold == 0 {
		s.end(l, Closed)
		return
	}
	if n := s.lumpGrant(p, l.Hold, r.Want, plan); n > 0 && ttl > 0 && !l.Closing && !l.wornOut() {
		s.grantLump(l, n)
	}
	s.finishLump(l, r.Want, plan, waiting, ttl)
}

// lumpGrant returns by how much a lump that holds hold is to grow; <= 0 for
// not at all. What moves from the pool into a lump leaves the sum as it is, so
// no room is needed.
func (s *step) lumpGrant(p *Pool, hold, want lease.Tokens, plan Target) lease.Tokens {
	if !plan.Lumps {
		return 0
	}
	n := min(max(min(want, plan.Lump), plan.Push)-hold, p.Available, lease.MaxTokens/2)
	if plan.Piece > 0 {
		n = min(n, plan.Piece)
	}
	return n
}

// finishLump completes a lump's answer.
func (s *step) finishLump(l *Lease, want lease.Tokens, plan Target, waiting lease.Tokens, ttl time.Duration) {
	s.extend(l, ttl)
	l.Keep = plan.Keep
	l.Short, l.RetryAfter = s.shortage(s.poolOf(l), l.Hold, want, plan, waiting)
}

// shortage says why a lump holds less than is wanted, and when that may
// change; a retry time of 0 means that nobody can say.
func (s *step) shortage(p *Pool, hold, want lease.Tokens, plan Target, waiting lease.Tokens) (lease.Shortage, time.Duration) {
	switch {
	case s.Budget.Deleted || p.Burst == 0:
		return lease.LimitZero, 0
	case hold >= want:
		return lease.Enough, 0
	case p.isWindow():
		return s.windowShortage(p, hold, plan)
	case p.Available > 0:
		return lease.ShareReached, 0
	case p.room() <= 0:
		return lease.CeilingReached, 0
	}
	need := max(1, waiting-hold) - p.Available
	retry, _ := p.unleased().TimeFor(need, p.Carry)
	return lease.PoolEmpty, retry
}

// windowShortage is shortage for a quota, where what is gone stays gone until
// the next window.
func (s *step) windowShortage(p *Pool, hold lease.Tokens, plan Target) (lease.Shortage, time.Duration) {
	next := max(0, p.End.Sub(s.now.Raw))
	switch {
	case p.Available <= 0 && p.Outstanding > hold:
		// Other regions hold tokens that they may return.
		return lease.PoolEmpty, min(next, askAgain)
	case p.Available <= 0 || s.ttl(p, lease.Lump) <= 0:
		return lease.PoolEmpty, next
	case plan.Lump == 0:
		return lease.ShareReached, next
	case plan.Suffices:
		return lease.Enough, 0
	}
	return lease.ShareReached, 0
}
