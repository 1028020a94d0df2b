package regionstore

import "github.com/ration-dev/ration/lease"

// Open makes the row if it is missing or void and gives incarnations to the
// kinds that need one. A new lease is empty until a reply for it is installed.
func (s Step) Open(row *Row, req OpenRequest) OpenReply {
	created := !s.current(row)
	void := created && row.Replid != ""
	seen := s.seen(req.Now)
	if created {
		s.renew(row, req.LocalNonce)
	} else {
		seen = s.pass(row, req.Now)
	}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if l := row.lease(kind); s.over(l) {
			*l = Lease{Incarnation: req.Nonces[kind-1], Lost: l.Lost}
		}
	}
	return OpenReply{View: s.view(row, seen, OK), Created: created, Void: void}
}

// renew replaces a missing or void row by an empty one. Of a void row only the
// names of its shares are kept, to ask that they be granted anew; the local
// allowance starts empty, under a new name.
func (s Step) renew(row *Row, localNonce string) {
	fresh := Row{Replid: s.Replid, Local: Local{Nonce: localNonce, Mark: s.Time}}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if kind.IsShare() {
			fresh.lease(kind).Lost = row.lease(kind).lost()
		}
	}
	*row = fresh
}

// lost names the share that the ledger may still count for a void row: the
// one it held or, as nothing was heard yet, may hold; else an earlier one. If
// this guess is wrong, the ledger's answer names the right one as Holder.
func (l *Lease) lost() lease.Incarnation {
	if !l.Ended && (l.Deadline != 0 || l.Pending) {
		return l.Incarnation
	}
	return l.Lost
}

// over reports whether the lease gives way to a new incarnation. Doing so is
// always safe: the ledger counts the old one until it has expired there, and
// processes stop at its deadline. What waits here waits for its last totals to
// be reported: a closed lease until that was acknowledged, a dead one for the
// guard of a process, no longer, whether or not anybody reports.
func (s Step) over(l *Lease) bool {
	switch {
	case l.Incarnation == "", l.Ended:
		return true
	case l.Deadline != 0 && s.Time >= l.Deadline.Add(s.Config.processGuard()):
		return true
	case l.Closed:
		return l.counted() == 0 && (l.Seq == 0 || l.acknowledged())
	}
	return false
}

// acknowledged reports whether the ledger has answered the totals of a closed
// lease as they stand.
func (l *Lease) acknowledged() bool {
	return !l.Pending && l.Sent.Closed && l.Sent.Used == l.Used && l.Sent.Returned == l.Returned
}
