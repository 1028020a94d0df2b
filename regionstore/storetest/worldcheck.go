package storetest

import (
	"fmt"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Violation is a broken invariant, by its number in ARCHITECTURE.md.
type Violation struct {
	Invariant int
	What      string
}

func (v *Violation) Error() string { return fmt.Sprintf("invariant %d: %s", v.Invariant, v.What) }

func violated(n int, format string, args ...any) error {
	return &Violation{Invariant: n, What: fmt.Sprintf(format, args...)}
}

// Check looks at the wallet as an observer with a memory of the clock does,
// and compares it with the ledger and with time.
func (w *World) Check() error {
	v := w.read(&w.agents[2])
	w.row = v.Row
	if v.Outcome == regionstore.Missing {
		w.row = regionstore.Row{}
	}
	if w.opened != (v.Outcome == regionstore.OK) {
		return violated(7, "opened %v in this life, but the row's outcome is %d", w.opened, v.Outcome)
	}
	inMemory := w.inMemory()
	for i, l := range w.row.Leases {
		if err := w.checkLease(lease.Kind(i+1), &l, v.Live[i], inMemory[l.Incarnation]); err != nil {
			return err
		}
	}
	for inc, n := range inMemory {
		if hold := w.held(inc); n > hold {
			return violated(10, "processes hold %d of %s, the ledger counts %d", n, inc, hold)
		}
	}
	return w.checkLocal(&v)
}

// inMemory sums what processes can still spend, by incarnation.
func (w *World) inMemory() map[lease.Incarnation]lease.Tokens {
	sum := make(map[lease.Incarnation]lease.Tokens)
	for _, p := range w.processes {
		if w.now < p.until {
			sum[p.part.Incarnation] += p.part.Tokens
		}
	}
	return sum
}

func (w *World) held(inc lease.Incarnation) lease.Tokens {
	if h := w.ledger.holds[inc]; h != nil {
		return h.spendable()
	}
	return 0
}

func (w *World) checkLease(kind lease.Kind, l *regionstore.Lease, live, inMemory lease.Tokens) error {
	h := w.ledger.holds[l.Incarnation]
	if live < 0 {
		return violated(5, "%v: %d live", kind, live)
	}
	if counted := l.Cur.Tokens + l.Prev.Tokens; inMemory > counted && live > 0 {
		return violated(10, "%v: processes hold %d, the row counts %d", kind, inMemory, counted)
	}
	if hold := w.held(l.Incarnation); live+inMemory > hold {
		return violated(10, "%v: %d live and %d in memory, the ledger counts %d", kind, live, inMemory, hold)
	}
	switch {
	case h == nil:
		return nil
	case kind.IsShare():
		return w.checkShare(kind, l, h, live, inMemory)
	}
	if used := w.used[l.Incarnation]; used+live+inMemory > h.granted {
		return violated(5, "%d spent, %d live and %d in memory of %d granted", used, live, inMemory, h.granted)
	}
	return nil
}

func (w *World) checkShare(kind lease.Kind, l *regionstore.Lease, h *hold, live, inMemory lease.Tokens) error {
	if live > 0 && (l.X.Tokens > h.x || l.Beta > h.beta) {
		return violated(10, "%v: holds x %d and beta %d, the ledger counts %d and %d", kind, l.X.Tokens, l.Beta, h.x, h.beta)
	}
	v := w.levels[l.Incarnation]
	if v == nil {
		return nil
	}
	v.rise(w.now, h.mostX, h.mostBeta)
	if v.tokens < -1 {
		return violated(5, "%v: %.2f more spent than was given and minted", kind, -v.tokens)
	}
	if float64(live+inMemory) > v.tokens+1 {
		return violated(6, "%v: %d live and %d in memory, time has made %.2f", kind, live, inMemory, v.tokens)
	}
	if limit := lease.PrefetchLimit(l.Beta); !l.Closed && l.Cur.Tokens+l.Prev.Tokens > limit {
		return violated(10, "%v: %d counted above the prefetch limit %d", kind, l.Cur.Tokens+l.Prev.Tokens, limit)
	}
	return nil
}

func (w *World) checkLocal(v *regionstore.View) error {
	w.localLevel.rise(w.now, localRate.Tokens, localBurst)
	if w.localLevel.tokens < -1 {
		return violated(9, "%.2f more admitted locally than time has made", -w.localLevel.tokens)
	}
	if v.Outcome == regionstore.OK && v.Row.Local.Total != w.localTotal {
		return violated(9, "%d admitted locally, %d counted", w.localTotal, v.Row.Local.Total)
	}
	return nil
}
