package regionstore

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Settle books demand, and what became of prefetched tokens: OK, Missing, or
// Stale when incarnation or generation are not the row's. It never books more
// than the generation still counts.
func (s Step) Settle(row *Row, req *Settle) Outcome {
	if !s.current(row) {
		return Missing
	}
	s.pass(row, req.Now)
	row.DemandTotal = add(row.DemandTotal, max(0, req.Demand))
	return s.settle(row, req)
}

// settle is Settle on a current row on which time has passed.
func (s Step) settle(row *Row, req *Settle) Outcome {
	if req.Kind == 0 {
		return OK
	}
	l := row.named(req.Kind, req.Incarnation)
	var g *Generation
	if l != nil {
		g = l.generation(req.Generation)
	}
	if mutant.On(mutant.UseOnNewRow) {
		l, g = anyGeneration(row, req.Kind)
	}
	if l == nil || g == nil {
		return Stale
	}
	l.settle(req.Kind, g, req.Used, req.Back)
	if mutant.On(mutant.UseRepeated) {
		l.settle(req.Kind, g, req.Used, req.Back)
	}
	return OK
}

// settle takes tokens out of the generation: spent ones into Used, others to
// where they came from, or, when the lease is closed, into Returned, so that
// they are reported. Once the lease has ended they are worth nothing.
func (l *Lease) settle(kind lease.Kind, g *Generation, used, back lease.Tokens) {
	used = max(0, min(used, g.Tokens))
	back = max(0, min(back, g.Tokens-used))
	g.Tokens -= used + back
	l.Used = add(l.Used, used)
	switch {
	case l.Ended:
	case l.Closed:
		l.Returned = add(l.Returned, back)
	case kind.IsShare():
		l.Balance = min(l.Balance+back, l.Beta-l.counted())
	}
	l.trim(kind)
}

// anyGeneration is what UseOnNewRow does wrong.
func anyGeneration(row *Row, kind lease.Kind) (*Lease, *Generation) {
	l := row.lease(kind)
	if l == nil || l.Cur.ID == 0 {
		return nil, nil
	}
	return l, &l.Cur
}
