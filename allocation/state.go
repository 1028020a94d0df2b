package allocation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
)

// current returns the pool that grants at now: the bucket's, or that of the
// quota's window; nil for the remains of a deleted budget.
func (s *State) current(now Now) *Pool {
	for i := range s.Pools {
		if p := &s.Pools[i]; p.openAt(now.Raw) {
			return p
		}
	}
	return nil
}

// isWindow reports whether the pool is a quota's window.
func (p *Pool) isWindow() bool { return p.End != 0 }

func (p *Pool) openAt(raw lease.Time) bool { return !p.isWindow() || raw < p.End }

// poolOf returns the pool that l was cut from. It always exists: a pool stays
// as long as a lease row names it.
func (s *State) poolOf(l *Lease) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Start == l.Window {
			return &s.Pools[i]
		}
	}
	return nil
}

// find returns the row of a lease, or nil. The pointer holds until a row is
// added or removed.
func (s *State) find(region string, kind lease.Kind, inc lease.Incarnation) *Lease {
	i, ok := s.search(region, kind, inc)
	if !ok {
		return nil
	}
	return &s.Leases[i]
}

func (s *State) search(region string, kind lease.Kind, inc lease.Incarnation) (int, bool) {
	key := Lease{Region: region, Kind: kind, Incarnation: inc}
	return slices.BinarySearchFunc(s.Leases, key, compareLeases)
}

func compareLeases(a, b Lease) int {
	return cmp.Or(
		strings.Compare(a.Region, b.Region),
		cmp.Compare(a.Kind, b.Kind),
		strings.Compare(string(a.Incarnation), string(b.Incarnation)),
	)
}

// addLease inserts a row in its place and returns it.
func (s *State) addLease(l Lease) *Lease {
	i, _ := s.search(l.Region, l.Kind, l.Incarnation)
	s.Leases = slices.Insert(s.Leases, i, l)
	return &s.Leases[i]
}

// regionRow returns the row of a region, made if need be. The pointer holds
// until another region is added.
func (s *State) regionRow(name string) *Region {
	i, ok := s.searchRegion(name)
	if !ok {
		s.Regions = slices.Insert(s.Regions, i, Region{Name: name})
	}
	return &s.Regions[i]
}

func (s *State) searchRegion(name string) (int, bool) {
	return slices.BinarySearchFunc(s.Regions, name, func(r Region, name string) int {
		return strings.Compare(r.Name, name)
	})
}

// local returns a counter of local admissions, made if need be.
func (s *State) local(region, source string) *Local {
	key := Local{Region: region, Source: source}
	i, ok := slices.BinarySearchFunc(s.Locals, key, compareLocals)
	if !ok {
		s.forgetLocal(region)
		i, _ = slices.BinarySearchFunc(s.Locals, key, compareLocals)
		s.Locals = slices.Insert(s.Locals, i, key)
	}
	return &s.Locals[i]
}

func compareLocals(a, b Local) int {
	return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.Source, b.Source))
}

// unended reports whether the lease may still be extended.
func (l *Lease) unended() bool { return l.Ending == Open }

// counted reports whether Outstanding has a hold of l: an unended lease, or
// what is left of a regranted one.
func (l *Lease) counted() bool { return l.unended() || l.Ending == Regranted && l.Hold > 0 }

// Due times. Sweep acts on each of these, so that a store which asks for the
// states that are due finds work and never the same state twice in vain.

// NextDue returns the earliest governed time at which Sweep has something to
// do with s; 0 for never.
//
// The end of a quota's window is raw time, which the governed clock lags
// behind after a forward step of the database's clock and leads after a
// backward one: a sweep that comes before the end looks again a while later.
// Nothing waits for that sweep, since a Sync rolls the window by itself.
func (s *State) NextDue() lease.Time {
	return s.nextDue(Config{}.withDefaults())
}

func (s *State) nextDue(cfg Config) lease.Time {
	due := lease.Time(0)
	sooner := func(t lease.Time) {
		if due == 0 || t < due {
			due = t
		}
	}
	for i := range s.Leases {
		l := &s.Leases[i]
		if l.counted() {
			sooner(l.Reclaim)
		} else {
			sooner(max(l.EndedAt.Add(cfg.KeepEnded), s.poolOf(l).sweepAt()))
		}
	}
	for i := range s.Regions {
		if r := &s.Regions[i]; !s.remembers(r) {
			sooner(r.SeenAt.Add(cfg.Silence))
		}
	}
	for i := range s.Locals {
		sooner(s.Locals[i].SeenAt.Add(cfg.Silence))
	}
	if n := len(s.Pools); n > 0 && s.Budget.Contract.IsQuota() && !s.Budget.Deleted {
		sooner(s.Pools[n-1].sweepAt())
	}
	if t, ok := s.tidyAt(); ok {
		sooner(t)
	}
	return due
}

// sweepAgain is how long a sweep that came too early for raw time waits.
const sweepAgain = time.Second

// sweepAt is the governed time to look whether a window is over: its end, and
// after that a while after the last look. 0 for a bucket.
func (p *Pool) sweepAt() lease.Time {
	if !p.isWindow() || p.MintedAt < p.End {
		return p.End
	}
	return p.MintedAt.Add(sweepAgain)
}

// remembers reports whether a region's row must stay however long the region
// is silent, for the sake of what hangs on it.
func (s *State) remembers(r *Region) bool {
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Region == r.Name && l.counted() {
			return true
		}
	}
	if r.WindowGranted == 0 {
		return false
	}
	for i := range s.Pools {
		if p := &s.Pools[i]; p.isWindow() && p.Start == r.Window {
			return true
		}
	}
	return false
}

// tidyAt returns when a deleted budget may be forgotten, so that its name
// starts afresh: once no row of a lease is left, and a bucket would have
// filled, its debt paid, or the quota's window is over. A bucket that never refills is
// never forgotten, since its burst is given once.
//
// A deleted pool mints nothing, and its MintedAt stands at the deletion or at
// the end of its last lease, whichever was later.
func (s *State) tidyAt() (lease.Time, bool) {
	if !s.Budget.Deleted || len(s.Leases) > 0 || len(s.Pools) == 0 {
		return 0, false
	}
	at := lease.Time(0)
	for i := range s.Pools {
		p := &s.Pools[i]
		if p.isWindow() {
			at = max(at, p.End)
			continue
		}
		whole := s.Budget.Contract.Burst + s.Budget.Float - min(0, p.Available)
		fill, ok := s.Budget.Contract.Rate.TimeFor(whole, 0)
		if !ok {
			return 0, false
		}
		at = max(at, p.MintedAt.Add(fill+time.Microsecond))
	}
	return at, true
}
