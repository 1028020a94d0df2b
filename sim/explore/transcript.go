package explore

import (
	"fmt"
	"strings"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

func reportText(r *lease.Report) string {
	s := fmt.Sprintf("%s/%d used %d", r.Incarnation, r.Seq, r.Used)
	if r.Returned > 0 {
		s += fmt.Sprintf(" returned %d", r.Returned)
	}
	if r.Prefetched > 0 {
		s += fmt.Sprintf(" prefetched %d", r.Prefetched)
	}
	if r.Kind.IsShare() {
		s += fmt.Sprintf(" x %d beta %d granted %d", r.X.Tokens, r.Beta, r.Granted)
	} else {
		s += fmt.Sprintf(" wanting %d", r.Want)
	}
	if r.Regrant != "" {
		s += fmt.Sprintf(" in place of %s", r.Regrant)
	}
	if r.Closed {
		s += " closed"
	}
	return s
}

func (r request) String() string {
	var parts []string
	for i := range r.n {
		parts = append(parts, reportText(&r.reports[i]))
	}
	if r.local.Source != "" {
		parts = append(parts, fmt.Sprintf("local %d", r.local.Total))
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

func (r reply) String() string {
	var parts []string
	for i := range r.n {
		s := &r.states[i]
		text := fmt.Sprintf("%s/%d ", s.Incarnation, s.Seq)
		switch s.Status {
		case lease.Ended:
			text += "ended"
		case lease.NotPlanned:
			text += "not planned"
		default:
			text += fmt.Sprintf("granted %d ttl %v", s.Granted, s.TTL)
			if s.Kind.IsShare() {
				text += fmt.Sprintf(" x %d beta %d", s.X.Tokens, s.Beta)
			}
		}
		parts = append(parts, text)
	}
	return "[" + strings.Join(parts, "; ") + "]"
}

func (q part) String() string {
	return fmt.Sprintf("%s, generation %d, free %d, used %d", q.incarnation, q.generation, q.free, q.used)
}

func planText(t allocation.Target) string {
	var parts []string
	if t.Reserve.Beta > 0 {
		parts = append(parts, fmt.Sprintf("reserve %d/%d", t.Reserve.X, t.Reserve.Beta))
	}
	if t.Paced.Beta > 0 {
		parts = append(parts, fmt.Sprintf("paced %d/%d", t.Paced.X, t.Paced.Beta))
	}
	if t.Lumps {
		parts = append(parts, fmt.Sprintf("lump %d", t.Lump))
	}
	if len(parts) == 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// summary is a state in one line: the ledger, the wallets, what was admitted.
func (m *model) summary(w *world) string {
	p := w.pool()
	s := fmt.Sprintf("A %d O %d X %d", p.Available, p.Outstanding, p.X)
	for i := range w.ledger.Leases {
		l := &w.ledger.Leases[i]
		s += fmt.Sprintf(" | %s/%d hold %d", l.Incarnation, l.Seq, l.Hold)
		if l.Ending != allocation.Open {
			s += " " + string(l.Ending)
		} else {
			s += fmt.Sprintf(" until %+d", l.Reclaim.Sub(w.ledgerNow)/time.Second)
		}
	}
	for at := range w.stores {
		if !w.stores[at].on {
			continue
		}
		s += " || store"
		row := w.stores[at].row
		v := m.step(w, at).Read(&row, m.mostMinted(w))
		for _, k := range m.cfg.Kinds {
			if l := &v.Row.Leases[k-1]; l.Incarnation != "" {
				s += fmt.Sprintf(" %s/%d live %d left %+d", l.Incarnation, l.Seq, v.Live[k-1], v.Remains[k-1]/time.Second)
			}
		}
	}
	for i := range m.cfg.Processes {
		for _, q := range w.processes[i].parts {
			s += fmt.Sprintf(" | process %d: %d of %s until %+d", i, q.free, q.incarnation, q.deadline.Sub(w.processNow)/time.Second)
		}
	}
	return s + fmt.Sprintf(" || level %s", tokens(w.level))
}
