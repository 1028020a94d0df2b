package storetest

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// ledger is the global side as far as the wallet's safety rests on it: for
// each lease what it counts as held, and the rules by which it frees some of
// that. What it grants is arbitrary: pools are not in this model. Its clock is
// the ledger's, in microseconds.
type ledger struct {
	clocks lease.Clocks
	pick   func(n int) int
	holds  map[lease.Incarnation]*hold
}

// hold is one lease's row.
type hold struct {
	kind                    lease.Kind
	seq                     uint64
	granted, used, returned lease.Tokens
	// x and beta are what is counted; the last answer may say less.
	x, beta  lease.Tokens
	closing  bool
	ended    bool
	answered lease.State
	reclaim  lease.Time
	// left is what a regranted share's processes may still hold, until reclaim.
	left lease.Tokens
	// mostX and mostBeta are the largest ever told.
	mostX, mostBeta lease.Tokens
}

// spendable is what the lease may still spend without the ledger knowing.
func (h *hold) spendable() lease.Tokens {
	switch {
	case h.ended:
		return h.left
	case h.kind.IsShare():
		return h.beta
	}
	return h.granted - h.used - h.returned
}

// sweep ends what is past its reclaim.
func (g *ledger) sweep(now lease.Time) {
	for _, h := range g.holds {
		if now >= h.reclaim {
			h.ended, h.left = true, 0
		}
	}
}

// sync answers one report. Any report may come any number of times.
func (g *ledger) sync(now lease.Time, r lease.Report) lease.State {
	h := g.holds[r.Incarnation]
	switch {
	case h == nil:
		return g.first(now, r)
	case h.ended:
		return over(r)
	case r.Seq <= h.seq:
		return h.answered
	}
	h.seq = r.Seq
	h.book(r)
	if r.Closed && h.spendable() == 0 {
		h.ended = true
		return over(r)
	}
	return g.extend(now, h, r)
}

func over(r lease.Report) lease.State {
	return lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.Ended}
}

// first grants a new lease, or says that none is planned.
func (g *ledger) first(now lease.Time, r lease.Report) lease.State {
	none := lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.NotPlanned}
	if r.Closed {
		return over(r)
	}
	if r.Kind.IsShare() {
		if none.Holder = g.holder(r.Kind); none.Holder != "" {
			if r.Regrant != none.Holder {
				return none
			}
			g.regrant(now, g.holds[none.Holder])
		}
	}
	if g.pick(8) == 0 {
		return none
	}
	h := &hold{kind: r.Kind, seq: r.Seq}
	g.holds[r.Incarnation] = h
	if r.Kind.IsShare() {
		h.x, h.beta = lease.Tokens(g.pick(30)), lease.Tokens(g.pick(60))
		h.granted = lease.Tokens(g.pick(int(h.beta) + 1))
	}
	return g.extend(now, h, r)
}

// holder is the unended share of the kind, if there is one.
func (g *ledger) holder(kind lease.Kind) lease.Incarnation {
	for inc, h := range g.holds {
		if h.kind == kind && !h.ended {
			return inc
		}
	}
	return ""
}

// regrant ends a share whose store lost it: its processes may still spend
// what they hold. A closing share's whole cap is in their memory.
func (g *ledger) regrant(now lease.Time, h *hold) {
	h.ended = true
	h.left = lease.PrefetchLimit(h.beta)
	if h.closing {
		h.left = h.beta
	}
	span := g.clocks.Stretch(lease.LongestProcessDeadline) + g.clocks.Guard(lease.LongestProcessDeadline)
	h.reclaim = now.Add(span)
}

// book takes the report's totals, and frees what the region says it no longer
// holds.
func (h *hold) book(r lease.Report) {
	h.used, h.returned = max(h.used, r.Used), max(h.returned, r.Returned)
	h.closing = h.closing || r.Closed
	if !h.kind.IsShare() {
		return
	}
	h.x, h.beta = min(h.x, r.X.Tokens), min(h.beta, r.Beta)
	if r.Closed {
		h.x, h.beta = 0, min(h.beta, r.Prefetched)
	}
}

// extend grants more or asks for less, and moves reclaim before it answers.
func (g *ledger) extend(now lease.Time, h *hold, r lease.Report) lease.State {
	ttl := time.Duration(1+g.pick(4)) * time.Second
	st := lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.Active, TTL: ttl}
	switch {
	case h.kind.IsShare():
		g.resize(h, &st)
	case !h.closing:
		h.granted += max(0, min(r.Want-h.spendable(), lease.Tokens(g.pick(20))))
	}
	st.Granted = h.granted
	h.reclaim = max(h.reclaim, now.Add(ttl+g.clocks.Guard(ttl)))
	h.answered = st
	return st
}

// resize tells a share's new size; a larger one is counted at once, a smaller
// one when the region says so.
func (g *ledger) resize(h *hold, st *lease.State) {
	x, beta := h.x, h.beta
	if g.pick(3) == 0 && !h.closing {
		x, beta = lease.Tokens(g.pick(30)), lease.Tokens(g.pick(60))
	}
	h.x, h.beta = max(h.x, x), max(h.beta, beta)
	h.mostX, h.mostBeta = max(h.mostX, h.x), max(h.mostBeta, h.beta)
	st.X, st.Beta = lease.Rate{Tokens: x, Per: time.Second}, beta
}
