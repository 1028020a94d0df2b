package regionstore

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Read lets time pass on a row and views it. The row is saved like after any
// step: the caller's memory of the clock rests on the marks that it moved.
func (s Step) Read(row *Row, now Now) View {
	if !s.current(row) {
		return s.missing(now)
	}
	return s.view(row, s.pass(row, now), OK)
}

func (s Step) missing(now Now) View {
	return View{Outcome: Missing, Time: s.seen(now), Replid: s.Replid}
}

func (s Step) view(row *Row, seen lease.Time, outcome Outcome) View {
	v := View{Outcome: outcome, Row: *row, Time: seen, Replid: s.Replid}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := row.lease(kind)
		v.Live[kind-1] = s.live(l, kind)
		if s.alive(l) {
			v.Remains[kind-1] = l.Deadline.Sub(s.Time)
		}
	}
	return v
}

// KeepLocal is how long after its last admission a row with local admissions
// stays at least, so that an allocator which was out of reach for a day still
// hears of them.
const KeepLocal = 24 * time.Hour

// Expiry returns when a store may forget the row: KeepMargin after the last
// instant that anything in it can matter, KeepLocal after the last admission
// without a lease. A forgotten row is an empty wallet.
func (s Step) Expiry(row *Row) lease.Time {
	last := row.Local.Mark
	for i := range row.Leases {
		l := &row.Leases[i]
		last = max(last, l.Anchor, l.Deadline, l.Cur.Until, l.Prev.Until)
	}
	keep := last.Add(s.Config.KeepMargin)
	if row.Local.Total > 0 {
		keep = max(keep, row.Local.Mark.Add(KeepLocal))
	}
	return keep
}
