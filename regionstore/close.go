package regionstore

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Close fences a lease, dead or alive: nothing can be taken from it any more,
// and what the wallet had of it is returned with the next report. What
// processes hold stays theirs. Closing twice changes nothing.
func (s Step) Close(row *Row, req CloseRequest) View {
	if !s.current(row) {
		return s.missing(req.Now)
	}
	seen := s.pass(row, req.Now)
	l := row.named(req.Kind, req.Incarnation)
	switch {
	case l == nil:
		return s.view(row, seen, Stale)
	case l.Ended:
		return s.view(row, seen, Dead)
	}
	l.fence(req.Kind)
	return s.view(row, seen, OK)
}

// fence closes the lease and moves its balance into Returned.
func (l *Lease) fence(kind lease.Kind) {
	if l.Closed {
		return
	}
	l.Closed = true
	l.Returned = add(l.Returned, l.unspent(kind))
	if !kind.IsShare() || mutant.On(mutant.CloseNotFenced) {
		return
	}
	l.X.Tokens, l.Balance, l.Carry = 0, 0, 0
	l.trim(kind)
}
