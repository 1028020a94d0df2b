package explore

import (
	"errors"
	"fmt"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Broken says which invariant does not hold, and how.
type Broken struct {
	// Invariant is its number in the design, or the bound that it serves:
	// "window" or "lifetime".
	Invariant string
	Detail    string
}

func (b *Broken) Error() string { return b.Invariant + ": " + b.Detail }

func broken(invariant, format string, args ...any) *Broken {
	return &Broken{Invariant: invariant, Detail: fmt.Sprintf(format, args...)}
}

// touchesLedger reports whether the action runs a step of the ledger.
func (a action) touchesLedger() bool {
	switch a.op {
	case opTick, opSweep, opSync, opListen, opWorld, opChange:
		return true
	}
	return false
}

// checkStep checks what an action made of the ledger.
func (m *model) checkStep(before, after *world, a action) *Broken {
	if !a.touchesLedger() {
		return nil
	}
	err := allocation.CheckStep(&before.ledger, &after.ledger)
	var v allocation.Violation
	if errors.As(err, &v) {
		return broken(fmt.Sprintf("I%d %s", v.Invariant, v.Name), "%s: %s", v.Row, v.Detail)
	}
	return nil
}

// checkState checks a state by itself.
func (m *model) checkState(w *world) *Broken {
	if b := m.checkHolds(w); b != nil {
		return b
	}
	round := int64(m.cfg.Rounding) * thousandths
	if most := m.burst + m.over + round; w.level > most {
		return broken("window", "%s admitted above the rate within a window, at most %s may be", tokens(w.level), tokens(most))
	}
	if most := m.burst + round; w.life > most {
		return broken("lifetime", "%s admitted above the rate since the start, at most %s may be", tokens(w.life), tokens(most))
	}
	if most := m.burst + m.over; w.declared > most {
		return broken("I4 declared", "%s of a regranted share were spent, at most %s are declared", tokens(w.declared), tokens(most))
	}
	if f := m.cfg.Budgets[0].OnFailure; w.local > int64(f.Burst)*thousandths {
		return broken("I9 bounded degradation", "%s admitted locally", tokens(w.local))
	}
	return nil
}

func tokens(n int64) string { return fmt.Sprintf("%g", float64(n)/thousandths) }

// spendable is what each lease could spend now: in stores, and in processes.
type spendable [lease.Kinds][8]lease.Tokens

// checkHolds proves that no lease can spend more than is counted for it.
func (m *model) checkHolds(w *world) *Broken {
	var can spendable
	for at := range w.stores {
		if !w.stores[at].on {
			continue
		}
		if b := m.inStore(w, at, &can); b != nil {
			return b
		}
	}
	for i := range m.cfg.Processes {
		p := &w.processes[i]
		for _, list := range [...][]part{p.parts, p.coming} {
			for j := range list {
				if q := &list[j]; w.processNow < q.deadline {
					can[q.kind-1][number(q.incarnation)] += q.free
				}
			}
		}
	}
	for i := range w.ledger.Leases {
		l := &w.ledger.Leases[i]
		n := &can[l.Kind-1][number(l.Incarnation)]
		if *n > l.Hold {
			return broken("I10 wallet within hold", "the %s %s can spend %d, the ledger counts %d", l.Kind, l.Incarnation, *n, l.Hold)
		}
		*n = 0
	}
	for _, k := range m.cfg.Kinds {
		for i, n := range can[k-1] {
			if n > 0 {
				return broken("I10 wallet within hold", "the %s %s can spend %d, the ledger knows no such lease", k, incarnations[k-1][i], n)
			}
		}
	}
	return nil
}

// inStore adds what a row could give now if it minted up to the present.
func (m *model) inStore(w *world, at int, can *spendable) *Broken {
	s := &w.stores[at]
	row := s.row
	v := m.step(w, at).Read(&row, m.mostMinted(w))
	for _, k := range m.cfg.Kinds {
		l, live := &row.Leases[k-1], v.Live[k-1]
		if live < 0 {
			return broken("I5 never more than granted", "the %s %s has %d left", k, l.Incarnation, live)
		}
		if live > 0 && s.row.Replid != lifeNames[s.life] {
			return broken("I7 a missing wallet is empty", "a row of another life of the store can spend %d", live)
		}
		if w.stores[1].on && m.replaced(w, k, l.Incarnation) {
			continue
		}
		can[k-1][number(l.Incarnation)] += live
	}
	return nil
}

// mostMinted is the latest bound that any process has on the store's clock.
func (m *model) mostMinted(w *world) regionstore.Now {
	if !m.cfg.tracked() {
		return regionstore.Now{NotAfter: w.storeNow}
	}
	n := regionstore.Now{}
	for i := range w.processes {
		if p := &w.processes[i]; p.known {
			n.NotAfter = max(n.NotAfter, p.bound)
		}
	}
	return n
}
