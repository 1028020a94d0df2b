package regionstore

import (
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Begin writes a new sequence, and all that will be said under it, into each
// lease that an intent names, before anything is sent.
func (s Step) Begin(row *Row, req BeginRequest) BeginReply {
	reply := BeginReply{Reports: make([]BegunReport, len(req.Intents))}
	if !s.current(row) {
		for i := range reply.Reports {
			reply.Reports[i].Outcome = Missing
		}
		reply.View = s.missing(req.Now)
		return reply
	}
	seen := s.pass(row, req.Now)
	for i := range req.Intents {
		reply.Reports[i] = s.beginOne(row, &req.Intents[i], req.MinAge)
	}
	reply.View = s.view(row, seen, OK)
	return reply
}

func (s Step) beginOne(row *Row, in *Intent, minAge time.Duration) BegunReport {
	l := row.named(in.Kind, in.Incarnation)
	switch {
	case l == nil:
		return BegunReport{Outcome: Stale}
	case l.Ended:
		return BegunReport{Outcome: Dead}
	case l.Pending && !in.Supersede && s.Time < l.Anchor.Add(minAge):
		if mutant.On(mutant.AnchorMovedOnRetry) {
			l.Anchor = s.Time
		}
		return BegunReport{Outcome: Busy, Report: l.Sent}
	}
	if s.dead(l) {
		l.fence(in.Kind)
	}
	if in.Kind.IsShare() && !l.Closed {
		l.lower(in.LowerX, in.LowerBeta)
	}
	s.write(l, in)
	return BegunReport{Outcome: OK, Report: l.Sent}
}

// lower cuts a share at once. The cap stays where the prefetch limit still
// covers what processes hold, which the ledger relies on. The balance was
// minted up to now at the old rate.
func (l *Lease) lower(x lease.Rate, beta lease.Tokens) {
	if x.Per > 0 && l.X.Per > 0 {
		l.X.Tokens = min(l.X.Tokens, x.In(l.X.Per, false).Tokens)
	}
	if beta < 0 || beta >= l.Beta {
		return
	}
	l.Balance = max(0, min(l.Balance, beta-l.counted()))
	l.Beta = max(beta, l.leastBeta())
}

// leastBeta is the smallest cap whose prefetch limit covers what is counted.
func (l *Lease) leastBeta() lease.Tokens { return 4 * l.counted() }

// write makes the lease's next sequence pending, anchored at the raw clock.
func (s Step) write(l *Lease, in *Intent) {
	if mutant.On(mutant.ExtendedAtSend) && l.Deadline != 0 {
		l.Deadline += s.Time - l.Anchor
	}
	l.Seq++
	l.Pending = true
	l.Anchor = s.Time
	l.Sent = lease.Report{
		Kind:        in.Kind,
		Incarnation: l.Incarnation,
		Seq:         l.Seq,
		Used:        l.Used,
		Returned:    l.Returned,
		Prefetched:  l.counted(),
		Closed:      l.Closed,
	}
	if in.Kind.IsShare() {
		l.writeShare(in)
		return
	}
	if !l.Closed {
		l.Sent.Want = in.Want
	}
	if mutant.On(mutant.ReturnReportedFirst) {
		l.Sent.Returned += l.unspent(in.Kind)
	}
}

func (l *Lease) writeShare(in *Intent) {
	l.Sent.X, l.Sent.Beta, l.Sent.Granted = l.X, l.Beta, l.Granted
	if in.Regrant && !l.Closed {
		l.Sent.Regrant = l.Lost
	}
	if l.Closed && mutant.On(mutant.CloseNotFenced) {
		l.Sent.X.Tokens, l.Sent.Beta = 0, l.counted()
	}
}
