package regionstore

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Install applies the ledger's answers to the leases whose pending sequence
// they answer, and to no others.
func (s Step) Install(row *Row, req InstallRequest) InstallReply {
	reply := InstallReply{Outcomes: make([]Outcome, len(req.States))}
	if mutant.On(mutant.InstallCreatesRow) && !s.current(row) {
		s.createFrom(row, req.States)
	}
	if !s.current(row) {
		for i := range reply.Outcomes {
			reply.Outcomes[i] = Missing
		}
		reply.View = s.missing(req.Now)
		return reply
	}
	seen := s.pass(row, req.Now)
	for i := range req.States {
		reply.Outcomes[i] = s.installOne(row, &req.States[i])
	}
	reply.View = s.view(row, seen, OK)
	return reply
}

func (s Step) installOne(row *Row, st *lease.State) Outcome {
	l := row.lease(st.Kind)
	if l == nil || !answers(l, st) {
		return Stale
	}
	l.Pending = false
	switch st.Status {
	case lease.Ended:
		l.Ended = true
		l.Balance, l.Carry, l.X.Tokens = 0, 0, 0
		return OK
	case lease.NotPlanned:
		l.remember(st.Holder)
		return OK
	}
	return s.apply(l, st)
}

// answers reports whether the state is the answer that the lease waits for.
func answers(l *Lease, st *lease.State) bool {
	if l.Incarnation != st.Incarnation && !mutant.On(mutant.InstallAnyIncarnation) {
		return false
	}
	if mutant.On(mutant.OtherSequenceExtends) || mutant.On(mutant.InstallAnyIncarnation) {
		return true
	}
	return l.Pending && l.Seq == st.Seq
}

// remember takes note that the ledger holds no row for this lease, and of what
// stands in its way: where it was told of a lost share and names none, that one
// has ended. The next sequence goes on under the same incarnation; a closed one
// has nothing left to say.
func (l *Lease) remember(holder lease.Incarnation) {
	switch {
	case holder != "" && holder != l.Incarnation:
		l.Lost = holder
	case holder == "" && l.Sent.Regrant == l.Lost:
		l.Lost = ""
	}
	l.Ended = l.Closed
}

// apply installs an active state. The deadline is exactly what the answer says
// from the anchor, even where that is earlier than before: the ledger's reclaim
// never moves forward, so both are safe. A state that comes too late changes
// nothing.
func (s Step) apply(l *Lease, st *lease.State) Outcome {
	deadline := l.Anchor.Add(st.TTL)
	if mutant.On(mutant.AnchorAtReply) {
		deadline = s.Time.Add(st.TTL)
	}
	if l.Closed || s.dead(l) || s.Time >= deadline {
		return Dead
	}
	if st.Kind.IsShare() {
		s.applyShare(l, st)
	} else {
		l.applyLump(st)
	}
	l.Deadline = deadline
	l.Lost = ""
	return OK
}

func (l *Lease) applyLump(st *lease.State) {
	granted := st.Granted
	if mutant.On(mutant.InstallAdds) {
		granted += l.Granted
	}
	l.Granted = max(granted, l.Used+l.Returned+l.counted())
}

// applyShare replaces rate and cap and adds what was given since the last
// answer. The share has minted up to now at its old rate; a new one mints from
// the raw clock, never from the anchor.
func (s Step) applyShare(l *Lease, st *lease.State) {
	if l.Deadline == 0 {
		l.Mark = s.Time
		if mutant.On(mutant.MintFromAnchor) {
			l.Mark = l.Anchor
		}
	}
	if l.X.Per != st.X.Per {
		l.Carry = 0
	}
	given := max(0, st.Granted-l.Granted)
	if mutant.On(mutant.InitialAddedAgain) {
		given = st.Granted
	}
	l.Granted += max(0, st.Granted-l.Granted)
	beta := st.Beta
	if mutant.On(mutant.InstallAdds) {
		beta += l.Beta
		given = st.Granted
	}
	l.X = st.X
	l.Beta = max(beta, l.leastBeta())
	l.Balance, l.Carry = fill(l.Balance, l.Beta-l.counted(), given, l.Carry)
}

// createFrom is what InstallCreatesRow does wrong.
func (s Step) createFrom(row *Row, states []lease.State) {
	*row = Row{Replid: s.Replid}
	for _, st := range states {
		if l := row.lease(st.Kind); l != nil {
			*l = Lease{Incarnation: st.Incarnation, Seq: st.Seq, Pending: true, Anchor: s.Time}
		}
	}
}
