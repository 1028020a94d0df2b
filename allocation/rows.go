package allocation

import (
	"slices"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Bounds on the rows of one budget, since each of its transactions loads all
// of them, and a region can ask for new ones as fast as it can speak.
const (
	// maxEnded is how many ended leases of one region and kind are remembered;
	// one more makes the ledger forget the one that ended first. A budget that is
	// used every few seconds closes thousands of lumps a day.
	//
	// Forgetting early is safe: the store of an ended lease has fenced it, lost
	// it, or seen its deadline pass, and installs nothing for it. What comes late
	// of a forgotten lease is answered as if its keeping time had passed: a report
	// as ended, a first request perhaps with tokens, which lie idle until they
	// expire. For that it would have to be on its way while that many leases were
	// opened and ended after it.
	maxEnded = 16
	// maxLumps is how many unended lumps one region may have: the one in use, and
	// those that its store has lost since.
	maxLumps = 64
	// maxLocals is how many counters of local admissions of one region are
	// remembered; one more makes the ledger forget the one that was silent for
	// longest. Should that one speak again, its total is owed again, not less.
	maxLocals = 256
	// maxRegions is how many regions a budget serves that names none.
	maxRegions = 256
)

// forgetEnded purges the ended lease of a region and kind that ended first, if
// there are so many that one more would be too many.
func (s *step) forgetEnded(region string, kind lease.Kind) {
	n, first := 0, -1
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.Region != region || l.Kind != kind || l.counted() {
			continue
		}
		n++
		if first < 0 || l.EndedAt < s.Leases[first].EndedAt {
			first = i
		}
	}
	if n < maxEnded {
		return
	}
	l := s.Leases[first]
	s.poolOf(&l).Totals.purge(&l)
	s.Leases = slices.Delete(s.Leases, first, first+1)
}

// tooManyLumps reports whether a region's store has lost so many lumps that
// it has to wait for some to expire.
func (s *step) tooManyLumps() bool {
	n := 0
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Region == s.region && l.Kind == lease.Lump && l.unended() {
			n++
		}
	}
	return n >= maxLumps
}

// forgetLocal drops the counter of a region that was silent for longest, if
// there are so many that one more would be too many.
func (s *State) forgetLocal(region string) {
	n, oldest := 0, -1
	for i := range s.Locals {
		if s.Locals[i].Region != region {
			continue
		}
		n++
		if oldest < 0 || s.Locals[i].SeenAt < s.Locals[oldest].SeenAt {
			oldest = i
		}
	}
	if n >= maxLocals {
		s.Locals = slices.Delete(s.Locals, oldest, oldest+1)
	}
}

// serves reports whether the budget has a part for the region. One that names
// no regions serves those that come, up to maxRegions. A region that a change
// has left out is served until its last lease has ended, so that it can give
// back what it holds.
func (s *State) serves(region string) bool {
	if len(s.Budget.Regions) > 0 {
		named := slices.ContainsFunc(s.Budget.Regions, func(r policy.Region) bool { return r.Name == region })
		return named || slices.ContainsFunc(s.Leases, func(l Lease) bool { return l.Region == region && l.unended() })
	}
	return len(s.Regions) < maxRegions ||
		slices.ContainsFunc(s.Regions, func(r Region) bool { return r.Name == region })
}
