package explore

import (
	"fmt"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// action is one thing that may happen, named so that it can be repeated: an
// operation with up to three numbers.
type action struct {
	op      op
	a, b, c uint8
}

type op uint8

const (
	opTick    op = iota + 1 // a: which clocks tick
	opSweep                 //
	opOpen                  // a: store
	opBegin                 // a: store, b: intents, c: 1 to keep what is pending
	opSync                  // a: request, b: plan
	opListen                // a: request
	opInstall               // a: reply, b: store
	opTake                  // a: store, b: process, c: how
	opArrive                // a: process: a take's reply
	opUse                   // a: process, b: part
	opSettle                // a: process, b: part, c: 1 gives back too
	opSettled               // a: process, b: store
	opReturn                // a: store, b: keep
	opClose                 // a: store, b: kind
	opWorld                 //
	opFault                 // a: fault
	opCopy                  //
	opChange                // a: budget
	opLocal                 // a: store
	opStep                  // a: 0 back, 1 forward
)

// The ways to take.
const (
	takeOne uint8 = iota
	takeAhead
	takeHeld
)

// The clocks that a tick moves.
const (
	ledgerTicks = 1 << iota
	storeTicks
	processTicks
)

// actions lists what may happen in w, in a fixed order. It may list what turns
// out to change nothing.
func (m *model) actions(w *world, to []action) []action {
	m.list = to[:0]
	m.timeActions(w)
	m.ledgerActions(w)
	for at := range w.stores {
		if w.stores[at].on {
			m.storeActions(w, uint8(at))
		}
	}
	m.processActions(w)
	m.faultActions(w)
	return m.list
}

func (m *model) may(o op, numbers ...uint8) {
	a := action{op: o}
	for i, n := range numbers {
		switch i {
		case 0:
			a.a = n
		case 1:
			a.b = n
		case 2:
			a.c = n
		}
	}
	m.list = append(m.list, a)
}

func (m *model) timeActions(w *world) {
	cfg := m.cfg
	if cfg.Ticks == 0 || w.left.ticks > 0 {
		const all = ledgerTicks | storeTicks | processTicks
		m.may(opTick, all)
		if cfg.Drift > 0 {
			m.may(opTick, ledgerTicks)
		}
		if m.callers > 0 && cfg.Drift > 0 {
			m.may(opTick, ledgerTicks|storeTicks)
			m.may(opTick, ledgerTicks|processTicks)
		}
		if cfg.Fast {
			m.may(opTick, storeTicks|processTicks)
		}
	}
	if w.left.steps > 0 {
		m.may(opStep, 0)
		m.may(opStep, 1)
	}
}

func (m *model) ledgerActions(w *world) {
	cfg := m.cfg
	if cfg.Lazy {
		m.may(opSweep)
	}
	for i := range w.requests {
		for plan := range cfg.Plans {
			m.may(opSync, uint8(i), uint8(plan))
		}
		if cfg.Listen {
			m.may(opListen, uint8(i))
		}
	}
	if cfg.World {
		m.may(opWorld)
	}
	if w.left.changes > 0 {
		for i := range cfg.Budgets {
			if i != w.variant {
				m.may(opChange, uint8(i))
			}
		}
	}
}

func (m *model) storeActions(w *world, at uint8) {
	cfg, s := m.cfg, &w.stores[at]
	m.may(opOpen, at)
	if s.row.Replid == "" {
		m.installs(w, at) // of which none may do anything
		return
	}
	for i := range cfg.Begins {
		m.may(opBegin, at, uint8(i), 0)
		m.may(opBegin, at, uint8(i), 1)
	}
	m.installs(w, at)
	for p := range max(1, m.callers) {
		m.takes(w, at, uint8(p))
	}
	for _, k := range cfg.Kinds {
		if l := &s.row.Leases[k-1]; cfg.Close && l.Incarnation != "" && !l.Closed {
			m.may(opClose, at, uint8(k))
		}
	}
	if l := &s.row.Leases[lease.Lump-1]; cfg.Return && l.Granted > 0 {
		m.may(opReturn, at, 0)
	}
	if w.left.locals > 0 {
		m.may(opLocal, at)
	}
}

func (m *model) installs(w *world, at uint8) {
	for i := range w.replies {
		m.may(opInstall, uint8(i), at)
	}
}

func (m *model) takes(w *world, at, p uint8) {
	if p == 0 || m.cfg.tracked() {
		m.may(opTake, at, p, takeOne)
	}
	if int(p) >= m.cfg.Processes || len(w.processes[p].coming) > 0 || len(w.processes[p].parts) > 1 {
		return
	}
	if m.cfg.Hold {
		m.may(opTake, at, p, takeHeld)
	} else {
		m.may(opTake, at, p, takeAhead)
	}
}

func (m *model) processActions(w *world) {
	for i := range m.cfg.Processes {
		p, at := &w.processes[i], uint8(i)
		if len(p.coming) > 0 {
			m.may(opArrive, at)
		}
		for j := range p.parts {
			q := &p.parts[j]
			if q.free > 0 && w.processNow < q.deadline {
				m.may(opUse, at, uint8(j))
			}
			if q.used > 0 {
				m.may(opSettle, at, uint8(j), 0)
			}
			if q.free > 0 {
				m.may(opSettle, at, uint8(j), 1)
			}
		}
		if p.settling.Kind != 0 {
			m.may(opSettled, at, 0)
			if w.stores[1].on {
				m.may(opSettled, at, 1)
			}
		}
	}
}

func (m *model) faultActions(w *world) {
	if w.left.crashes == 0 {
		return
	}
	for _, f := range m.cfg.Faults {
		if f == FailOver && w.stores[1].on {
			continue
		}
		m.may(opFault, uint8(f))
	}
	if m.cfg.can(Restore) || m.cfg.can(FailOver) {
		m.may(opCopy)
	}
}

// describe says what a is, in w.
func (m *model) describe(w *world, a action) string {
	where := [2]string{"the store", "the isolated old primary"}
	switch a.op {
	case opTick:
		return "time passes" + stands(a.a)
	case opSweep:
		return "the ledger sweeps"
	case opOpen:
		return where[a.a] + " opens"
	case opBegin:
		return fmt.Sprintf("%s begins %s%s", where[a.a], intentText(m.cfg.Begins[a.b]), [2]string{"", ", or repeats what is pending"}[a.c])
	case opSync:
		return fmt.Sprintf("the ledger processes %s, planning %s", w.requests[a.a], planText(m.cfg.Plans[a.b]))
	case opListen:
		return fmt.Sprintf("the ledger listens to %s", w.requests[a.a])
	case opInstall:
		return fmt.Sprintf("%s installs %s", where[a.b], w.replies[a.a])
	case opTake:
		return fmt.Sprintf("process %d takes %s from %s", a.b, [3]string{"one", "ahead", "one to hold"}[a.c], where[a.a])
	case opArrive:
		return fmt.Sprintf("process %d gets the reply to its take", a.a)
	case opUse:
		return fmt.Sprintf("process %d uses one of %s", a.a, w.processes[a.a].parts[a.b])
	case opSettle:
		return fmt.Sprintf("process %d sends what became of %s%s", a.a, w.processes[a.a].parts[a.b], [2]string{"", ", and gives it back"}[a.c])
	case opSettled:
		return fmt.Sprintf("%s books what process %d sent", where[a.b], a.a)
	case opReturn:
		return where[a.a] + " returns what is unspent"
	case opClose:
		return fmt.Sprintf("%s closes the %s", where[a.a], lease.Kind(a.b))
	case opWorld:
		return "the rest of the world spends one"
	case opFault:
		return "the store " + faultNames[a.a]
	case opCopy:
		return "the replica catches up"
	case opChange:
		b := m.cfg.Budgets[a.a]
		return fmt.Sprintf("the budget becomes %s, burst %d, ttl %v", b.Contract.Rate, b.Contract.Burst, b.TTL)
	case opLocal:
		return where[a.a] + " admits one without a lease"
	case opStep:
		return "the store's clock is stepped " + [2]string{"back", "forward"}[a.a]
	}
	return "?"
}

func stands(ticks uint8) string {
	s := ""
	for i, name := range [...]string{"ledger", "store", "process"} {
		if ticks&(1<<i) == 0 {
			s += ", the " + name + "'s clock stands"
		}
	}
	return s
}

func intentText(ins []regionstore.Intent) string {
	s := ""
	for i, in := range ins {
		if i > 0 {
			s += " and "
		}
		s += in.Kind.String()
		if in.Want > 0 {
			s += fmt.Sprintf(" wanting %d", in.Want)
		}
		if in.LowerX.Per > 0 {
			s += fmt.Sprintf(" lowering x to %s", in.LowerX)
		}
		if in.LowerBeta >= 0 && in.Kind.IsShare() {
			s += fmt.Sprintf(" lowering its cap to %d", in.LowerBeta)
		}
	}
	return s
}
