package regionstore

import (
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Step is one atomic step of a store: its clock, raw, and its replication id
// at that instant. The methods are the wallet's pure step. They read nothing
// else, change only the rows they are given, and answer. A store loads the
// rows that a request names (a zero Row for one that is missing), runs the
// method, and saves them if their Replid is not empty.
//
// A second implementation in doubles can follow every method bit for bit: all
// times and remainders are whole microseconds below 2^53, all amounts at most
// lease.MaxTokens, sums saturate there (see add), and the two wide products
// are described in mint.go.
type Step struct {
	Config Config
	// Time is the store's clock as it stands, whatever callers have seen.
	Time lease.Time
	// Replid is the store's replication id; never empty.
	Replid string
}

// current reports whether the row exists and belongs to this life of the
// store. Every step asks it first.
func (s Step) current(row *Row) bool {
	if mutant.On(mutant.NoReplicationID) {
		return row.Replid != ""
	}
	return row.Replid != "" && row.Replid == s.Replid
}

// first reports whether the caller has no usable bound on the clock.
func (s Step) first(now Now) bool {
	if now.NotAfter <= 0 {
		return true
	}
	return s.Time > now.NotAfter.Add(MaxLag) && !mutant.On(mutant.NotAfterStepped)
}

// seen is the instant up to which this caller lets time pass, and what it
// remembers.
func (s Step) seen(now Now) lease.Time {
	if s.first(now) || mutant.On(mutant.NotAfterStepped) {
		return s.Time
	}
	return min(s.Time, now.NotAfter)
}

// pass lets time pass on a current row, ages generations, mints, and returns
// the instant the caller remembers. A first call only moves marks: forward,
// never back.
func (s Step) pass(row *Row, now Now) lease.Time {
	seen := s.seen(now)
	if s.first(now) {
		s.moveMarks(row)
		return seen
	}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := row.lease(kind)
		if l.counted() > 0 {
			l.age(kind, seen)
		}
		if kind.IsShare() {
			l.mint(seen, s.Time)
		}
	}
	return seen
}

// moveMarks makes TIME the instant that everything counts from: nothing is
// minted for what came before, and no generation is older than just taken,
// because how much of the time since is real is not known.
func (s Step) moveMarks(row *Row) {
	until := s.Time.Add(s.Config.processSpan(lease.LongestProcessDeadline))
	for i := range row.Leases {
		l := &row.Leases[i]
		l.Mark = max(l.Mark, s.Time)
		l.Cur.postpone(until)
		l.Prev.postpone(until)
	}
	row.Local.Mark = max(row.Local.Mark, s.Time)
}

// lease returns the slot of a kind, nil for an invalid kind.
func (r *Row) lease(kind lease.Kind) *Lease {
	if kind < 1 || kind > lease.Kinds {
		return nil
	}
	return &r.Leases[kind-1]
}

// named returns the lease of that kind and incarnation, nil if the row holds
// another.
func (r *Row) named(kind lease.Kind, inc lease.Incarnation) *Lease {
	l := r.lease(kind)
	if l == nil || inc == "" || l.Incarnation != inc {
		return nil
	}
	return l
}

// dead reports whether the lease is past its deadline, by the raw clock. A
// backward step may make it live again; the ledger's guard covers that.
func (s Step) dead(l *Lease) bool { return l.Deadline != 0 && s.Time >= l.Deadline }

// alive reports whether tokens can be taken from the lease.
func (s Step) alive(l *Lease) bool {
	if l.Closed && !mutant.On(mutant.CloseNotFenced) {
		return false
	}
	return l.Deadline != 0 && s.Time < l.Deadline && !l.Ended
}

// unspent is what the wallet itself holds of the lease, dead or alive.
func (l *Lease) unspent(kind lease.Kind) lease.Tokens {
	if kind.IsShare() {
		return l.Balance
	}
	return l.Granted - l.Used - l.Returned - l.counted()
}

// live is what could be taken from the lease now.
func (s Step) live(l *Lease, kind lease.Kind) lease.Tokens {
	if !s.alive(l) {
		return 0
	}
	return l.unspent(kind)
}

// add is a sum of two amounts in [0, MaxTokens], saturated at MaxTokens.
func add(a, b lease.Tokens) lease.Tokens {
	if a > lease.MaxTokens-b {
		return lease.MaxTokens
	}
	return a + b
}
