package allocation

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// holder returns the unended share of the region and kind, of which there is
// at most one; nil for none.
func (s *State) holder(region string, kind lease.Kind) *Lease {
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Region == region && l.Kind == kind && l.unended() {
			return l
		}
	}
	return nil
}

// regrant ends the share that a region says its store has lost, if the
// budget's owner chose so and r names that very share: a message that comes
// late names one that has ended, and does nothing.
//
// It is the one exception to "no early reclaim". The store's own life proves
// that the wallet's balance is gone, but processes may still hold what they
// prefetched: that much stays counted until the last of them has provably
// stopped.
func (s *step) regrant(r *lease.Report) {
	old := s.holder(s.region, r.Kind)
	if old == nil || r.Regrant == "" || old.Incarnation != r.Regrant || old.Incarnation == r.Incarnation {
		return
	}
	if s.Budget.OnStoreLoss != policy.Regrant {
		return
	}
	left := old.Hold // of a share that was closing, all of it is prefetched
	if !old.Closing {
		left = min(left, lease.PrefetchLimit(old.Beta))
	}
	lost := old.Hold - left
	s.end(old, Regranted)
	s.setHold(old, left)
	s.writeOff(old, lost)
	clocks := s.cfg.Clocks
	stopped := s.now.Governed.Add(clocks.Stretch(lease.LongestProcessDeadline) + clocks.Guard(lease.LongestProcessDeadline))
	old.Reclaim = min(old.Reclaim, stopped)
}

// inTheWay returns the share that must end before the region may get another
// one of this kind.
func (s *State) inTheWay(region string, kind lease.Kind) *Lease {
	if mutant.On(mutant.RegrantedEarly) {
		return nil
	}
	return s.holder(region, kind)
}

// regrantedNow reports whether this very step has ended the share that r says
// is lost. One that ended before, by its deadline above all, left nothing to
// wait for: an empty cap in its place would never find room under a full pool.
func (s *step) regrantedNow(r *lease.Report) bool {
	old := s.find(s.region, r.Kind, r.Regrant)
	return old != nil && old.Ending == Regranted && old.EndedAt == s.now.Governed
}

// remainder reports whether a regranted share of the region and kind is still
// counted.
func (s *State) remainder(region string, kind lease.Kind) bool {
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Region == region && l.Kind == kind && l.Ending == Regranted && l.Hold > 0 {
			return true
		}
	}
	return false
}
