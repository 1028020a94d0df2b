package regionstore

import "github.com/ration-dev/ration/lease"

// Return takes unspent tokens out of a live lump until no more than Keep are
// held. They are spendable by nobody from this step on, and reported by the
// next begin.
func (s Step) Return(row *Row, req ReturnRequest) View {
	if !s.current(row) {
		return s.missing(req.Now)
	}
	seen := s.pass(row, req.Now)
	l := row.named(lease.Lump, req.Incarnation)
	switch {
	case l == nil:
		return s.view(row, seen, Stale)
	case !s.alive(l):
		return s.view(row, seen, Dead)
	}
	live := l.unspent(lease.Lump)
	n := min(live, live+l.counted()-max(0, req.Keep))
	l.Returned = add(l.Returned, max(0, n))
	return s.view(row, seen, OK)
}
