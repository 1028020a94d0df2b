package regionstore

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Take decides over all rows at once: every budget has its cost, or nothing is
// taken from any. rows and req.Takes correspond. Replays by request id are the
// store's affair, before and after this step; see Keeps.
func (s Step) Take(rows []*Row, req *TakeRequest) TakeReply {
	reply := TakeReply{Took: true, Results: make([]TakeResult, len(req.Takes))}
	for i := range req.Takes {
		r := &reply.Results[i]
		s.ask(rows[i], &req.Takes[i], req.Hold, r)
		reply.Took = reply.Took && r.Outcome == OK
	}
	for i := range req.Takes {
		if reply.Results[i].Outcome == Missing {
			continue
		}
		if reply.Took {
			s.draw(rows[i], &req.Takes[i], req.Hold, &reply.Results[i])
		}
		s.describe(rows[i], &req.Takes[i], &reply.Results[i])
	}
	return reply
}

// ask lets time pass, settles, counts demand, and says whether the cost could be taken.
func (s Step) ask(row *Row, t *Take, hold bool, r *TakeResult) {
	if !s.current(row) {
		r.Outcome, r.Time = Missing, s.seen(t.Now)
		return
	}
	r.Time = s.pass(row, t.Now)
	for i := range t.Settles {
		s.settle(row, &t.Settles[i])
	}
	row.DemandTotal = add(row.DemandTotal, max(0, t.Demand))
	r.Outcome = Short
	if s.available(row, hold) >= t.Cost {
		r.Outcome = OK
	}
}

// available sums over the kinds what can be used, or held.
func (s Step) available(row *Row, hold bool) lease.Tokens {
	var sum lease.Tokens
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if hold {
			sum = add(sum, s.prefetchable(row.lease(kind), kind))
		} else {
			sum = add(sum, s.live(row.lease(kind), kind))
		}
	}
	return sum
}

// draw takes the cost from the leases in their order, then the prefetch.
func (s Step) draw(row *Row, t *Take, hold bool, r *TakeResult) {
	var held [lease.Kinds]lease.Tokens
	cost := max(0, t.Cost)
	for kind := lease.Reserve; kind <= lease.Lump && cost > 0; kind++ {
		l := row.lease(kind)
		if hold {
			n := min(cost, s.prefetchable(l, kind))
			held[kind-1] = n
			cost -= n
			continue
		}
		n := min(cost, s.live(l, kind))
		l.use(kind, n)
		cost -= n
	}
	more := max(0, t.Prefetch)
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := row.lease(kind)
		n := held[kind-1]
		extra := min(more, s.prefetchable(l, kind)-n)
		more -= extra
		if n+extra > 0 {
			r.Parts = append(r.Parts, s.part(l, kind, n+extra, t.Holds()))
		}
	}
}

// use spends n live tokens.
func (l *Lease) use(kind lease.Kind, n lease.Tokens) {
	if kind.IsShare() {
		l.Balance -= n
	}
	l.Used = add(l.Used, n)
}

// part moves n live tokens into a process's memory.
func (s Step) part(l *Lease, kind lease.Kind, n lease.Tokens, span time.Duration) Part {
	if kind.IsShare() {
		l.Balance -= n
	}
	return Part{
		Kind:        kind,
		Incarnation: l.Incarnation,
		Generation:  s.hold(l, n, span),
		Tokens:      n,
		Remains:     min(l.Deadline.Sub(s.Time), span),
	}
}

// describe fills in what the row holds after the step.
func (s Step) describe(row *Row, t *Take, r *TakeResult) {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := row.lease(kind)
		r.Pending = r.Pending || l.Pending
		if !s.alive(l) {
			continue
		}
		live := l.unspent(kind)
		r.Live = add(r.Live, live)
		r.Lease = max(r.Lease, l.Deadline.Sub(s.Time))
		if kind.IsShare() {
			r.Shares = add(r.Shares, live)
			r.addShare(l)
		}
	}
	if r.Outcome == Short {
		r.MintIn = never
		if r.Live < t.Cost {
			r.MintIn = s.mintIn(row, t.Cost-r.Live, r.Time)
		}
	}
}

// addShare sums caps and rates, the second rate in the unit of the first.
func (r *TakeResult) addShare(l *Lease) {
	r.Beta = add(r.Beta, l.Beta)
	if r.X.Per == 0 {
		r.X = l.X
		return
	}
	r.X.Tokens = add(r.X.Tokens, l.X.In(r.X.Per, false).Tokens)
}

// Keeps reports whether the reply is an answer that a store keeps under the
// request's id.
func (req *TakeRequest) Keeps(reply *TakeReply) bool {
	return req.RequestID != "" && req.KeepAnswer > 0 && reply.Took
}

// Replay returns a kept answer as a repetition gets it: without parts, because
// the tokens are in the memory of whoever got the first.
func (r TakeReply) Replay() TakeReply {
	results := make([]TakeResult, len(r.Results))
	copy(results, r.Results)
	for i := range results {
		results[i].Parts = nil
	}
	return TakeReply{Took: r.Took, Replayed: true, Results: results}
}
