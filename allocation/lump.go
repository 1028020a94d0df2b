package allocation

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// bookLump takes over the totals of a newer sequence. What was used leaves the
// hold; what was returned leaves it for the pool.
func (s *step) bookLump(l *Lease, r *lease.Report) {
	p := s.poolOf(l)
	used, returned := max(l.Used, r.Used), max(l.Returned, r.Returned)
	if used > l.Granted-l.Returned {
		used = l.Granted - l.Returned
		p.Totals.Alarms++
	}
	if returned > l.Granted-used {
		returned = l.Granted - used
		p.Totals.Alarms++
	}
	p.Totals.LumpUsed += used - l.Used
	l.Used = used
	s.setHold(l, l.Granted-l.Used-l.Returned)
	s.takeBack(l, returned-l.Returned)
	if mutant.On(mutant.ReturnCreditedPerDelivery) {
		// A fault that keeps the books: the total is taken for a difference.
		p.Totals.Minted += r.Returned
		p.credit(r.Returned)
	}
	if r.Closed {
		s.closeLump(l, r)
	}
}

// takeBack credits n tokens of l's hold that have left the region.
func (s *step) takeBack(l *Lease, n lease.Tokens) {
	p := s.poolOf(l)
	l.Returned += n
	p.Totals.LumpReturned += n
	s.setHold(l, l.Hold-n)
	p.credit(n)
	s.countGrant(l, -n)
}

// closeLump ends a lump once no process holds any of it. If the ledger still
// counts tokens then, they were granted by a reply that never came: the store
// installs none for a lease it has fenced, so they are taken back as well.
func (s *step) closeLump(l *Lease, r *lease.Report) {
	l.Closing = true
	if l.Hold > 0 && r.Prefetched > 0 {
		return
	}
	s.takeBack(l, l.Hold)
	s.end(l, Closed)
}

// bookLate records what is heard of a lease that has ended. It changes
// nothing else: a bucket has minted anew what was written off, and crediting
// it too would break the bound of a window. A quota mints nothing, so tokens
// that come back to it while its window is open are credited, each once.
func (s *step) bookLate(l *Lease, r *lease.Report) {
	p := s.poolOf(l)
	used, returned := r.Used-l.Used, r.Returned-l.Returned
	if l.Kind == lease.Lump {
		used = min(used, l.WrittenOff-l.LateReturned)
	} else {
		used = min(used, l.shareLimit()-l.Used-l.Returned)
		returned = 0
	}
	if used > l.LateUsed {
		p.Totals.LateUsed += used - l.LateUsed
		l.LateUsed = used
	}
	returned = min(returned, l.WrittenOff-l.LateUsed)
	if returned <= l.LateReturned {
		return
	}
	more := returned - l.LateReturned
	l.LateReturned = returned
	if mutant.On(mutant.LateTotalsCredited) || p.isWindow() && p.openAt(s.now.Raw) {
		l.LateCredited += more
		p.Totals.LateCredited += more
		p.credit(more)
		s.countGrant(l, -more)
	}
}

// grantLump moves n tokens from the pool into a lump.
func (s *step) grantLump(l *Lease, n lease.Tokens) {
	p := s.poolOf(l)
	p.Available -= n
	p.Totals.LumpGranted += n
	l.Granted += n
	s.setHold(l, l.Hold+n)
	s.countGrant(l, n)
}

// countGrant keeps what a quota's window has granted to each region, less
// what came back.
func (s *step) countGrant(l *Lease, n lease.Tokens) {
	p := s.poolOf(l)
	if !p.isWindow() {
		return
	}
	r := s.regionRow(l.Region)
	if r.Window < p.Start {
		r.Window, r.WindowGranted = p.Start, 0
	}
	if r.Window == p.Start {
		r.WindowGranted = max(0, r.WindowGranted+n)
	}
}
