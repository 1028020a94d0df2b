package agent

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/lease"
)

// entry is one budget as this process knows it. It lives as long as the budget
// is listed; its policy is replaced in place. What decisions of it remember is
// kept only while it is used.
type entry struct {
	policy atomic.Pointer[terms]
	// lastUsed is this process's clock at the last decision; inUse is set while
	// the entry stands in the Decider's list of used ones.
	lastUsed atomic.Int64
	inUse    atomic.Bool
	// rests is set once a flush found nothing that is to be done soon, until a
	// flush or a decision that locks the entry looks at it again.
	rests atomic.Bool
	// hot is set while tokens in memory can be spent without the mutex.
	hot atomic.Pointer[hot]
	// surplus is what hot decisions cost above 1 each, until harvest. It is
	// counted before the tokens are taken, so that it never lacks.
	surplus atomic.Int64

	mu sync.Mutex
	// touched is the store's clock that the row was last seen by; 0 for none.
	touched clockID
	// usage is there from lock to unlock, and stays while it matters.
	*usage
}

func newEntry(t *terms) *entry {
	e := &entry{}
	e.policy.Store(t)
	return e
}

// usage is what this process remembers of one budget between decisions. The
// entry's mutex guards it.
type usage struct {
	pocket pocket
	// local is nil before the first admission of the process without a lease.
	local *localBucket
	// denial is nil where nothing was denied since tokens last arrived.
	denial *denial
	hint   Hint
	// offered is the cost not yet told to the store as demand; rate estimates
	// this process's own, in tokens per second, from arrived since rateAt.
	offered, arrived lease.Tokens
	// served counts hot decisions that no Stats have yet.
	served int32
	// waiters are decisions waiting for arrival to be closed, arrivals how often it
	// was.
	waiters, arrivals uint16

	rate   float64
	rateAt time.Duration
	// told is when demand was last told.
	told time.Duration
	// last is what the last take saw, for what an answer reports and the next one
	// takes ahead.
	last    holdings
	arrival chan struct{}
	// refillAt is before when what is held is not refilled.
	refillAt time.Duration
	// asked is when an urgent sync was last asked for.
	asked time.Duration
	// window caches a quota's; nil for none.
	window *window
}

// holdings is what a region's wallet holds: what could be taken of it, the cap and
// rate of its shares, and until when the last of its leases lasts.
type holdings struct {
	Live, Beta lease.Tokens
	X          lease.Rate
	until      time.Duration
}

// window is a quota's window, in wall time.
type window struct{ start, end lease.Time }

// lock locks the entry's mutex and makes its usage.
func (e *entry) lock() {
	e.mu.Lock()
	if e.usage == nil {
		e.usage = &usage{}
	}
}

// unlock drops the usage of an entry that is not used, if nothing in it matters
// any more.
func (e *entry) unlock() {
	if !e.inUse.Load() && e.forgettable() {
		e.usage = nil
		e.hot.Store(nil)
	}
	e.mu.Unlock()
}

// forgettable reports whether nothing would be lost with the usage of an entry
// that no decision has used for long: no tokens, no demand or admission that is
// to be told, nobody who waits, nothing that the Keeper said and still holds.
func (u *usage) forgettable() bool {
	return len(u.pocket.parts) == 0 && u.pocket.gone == 0 && u.offered == 0 && u.served == 0 &&
		u.waiters == 0 && u.hint == Hint{} && (u.local == nil || u.local.total == 0 && u.local.credit == 0)
}

// forgive forgets that the ledger refused, or does not serve the budget. The
// entry's mutex is held.
func (u *usage) forgive() {
	if u.hint.Trouble != nil {
		t := *u.hint.Trouble
		t.Refused, t.Final = lease.Enough, 0
		u.hint.Trouble = t.orNil()
	}
}

// allowance is the process's part of the local allowance. The entry's mutex is
// held.
func (u *usage) allowance() *localBucket {
	if u.local == nil {
		u.local = &localBucket{}
	}
	return u.local
}

// denies returns the denial that holds at now, nil for none. The entry's mutex
// is held.
func (u *usage) denies(now time.Duration) *denial {
	if u.denial == nil || now >= u.denial.until {
		return nil
	}
	return u.denial
}

// denial remembers that a cost, and so every larger one, was denied a moment
// ago. It is replaced, never changed.
type denial struct {
	cost   lease.Tokens
	until  time.Duration
	answer Answer
	// passes is when the cost could pass; 0 if unknown.
	passes time.Duration
}

// denialMemory is the longest a denial is answered from memory: where no token
// is near. Elsewhere shortMemory holds, because tokens may come to the wallet
// by another process's doing, and because demand reaches the wallet with the
// next take: told in few large heaps it looks like noise.
const (
	denialMemory = 100 * time.Millisecond
	shortMemory  = 25 * time.Millisecond
	nearTokens   = time.Second
)

// Hint is what the Keeper tells the deciding side about one budget.
type Hint struct {
	// Low is the live wallet below which a Sync is asked for; 0 for never.
	Low lease.Tokens
	// Trouble is nil for none.
	Trouble *Trouble
}

// Trouble is what keeps tokens from coming to one budget. Once told it is never
// changed.
type Trouble struct {
	// Refused is the ledger's reason for granting less than was wanted, and
	// holds until Until on this process's clock. Retry says when more may be
	// there; 0 if unknown.
	Until time.Duration
	Retry time.Duration
	// AskAfter is before when asking the ledger again is useless.
	AskAfter time.Duration
	Refused  lease.Shortage
	// Final is set when the ledger does not serve the budget here: nobody
	// waits for it.
	Final lease.Code
	// Unreachable is set while Syncs fail: waiting for one would help nobody.
	Unreachable bool
}

// refused reports whether the ledger's refusal is fresh.
func (t Trouble) refused(now time.Duration) bool { return t.Refused != lease.Enough && now < t.Until }

// orNil is nil for none.
func (t Trouble) orNil() *Trouble {
	if t == (Trouble{}) {
		return nil
	}
	return &t
}

// orNone is t, or none where that is nil.
func (t *Trouble) orNone() Trouble {
	if t == nil {
		return Trouble{}
	}
	return *t
}

// remember keeps a denial for its cost and all larger ones. A longer memory
// of a smaller or equal cost is kept.
func (e *entry) remember(cost lease.Tokens, now time.Duration, a Answer) {
	keep := shortMemory
	switch {
	case a.RetryAfter >= nearTokens:
		keep = denialMemory
	case a.RetryAfter > 0:
		keep = min(keep, a.RetryAfter)
	}
	e.lock()
	defer e.unlock()
	e.hot.Store(nil)
	if d := e.denies(now); d != nil && d.cost <= cost {
		return
	}
	e.denial = &denial{cost: cost, until: now + keep, answer: a}
	if a.RetryAfter > 0 {
		e.denial.passes = now + a.RetryAfter
	}
}

// tells reports whether this process has tokens to settle or demand to tell.
func (e *entry) tells() bool {
	e.lock()
	defer e.unlock()
	return len(e.pocket.parts) > 0 || e.offered > 0
}

// harvest takes in the demand of hot decisions. The entry's mutex is held. A
// surplus may be there without demand: of a decision that found no token after
// all, and whose part was taken in before.
func (e *entry) harvest() {
	n := e.pocket.demand()
	if n == 0 && e.surplus.Load() == 0 {
		return
	}
	served := int64(n) - e.surplus.Swap(0)
	if served < 0 { // some are between counting their surplus and taking their tokens
		e.surplus.Add(-served)
		served = 0
	}
	e.served += int32(served)
	e.offered += n
	e.arrived += n
	e.pocket.touched = max(e.pocket.touched, time.Duration(e.lastUsed.Load()))
}

// recall answers from memory if cost was denied a moment ago. The entry's
// mutex is held.
func (e *entry) recall(cost lease.Tokens, now time.Duration) (Answer, bool) {
	d := e.denies(now)
	if d == nil || cost < d.cost {
		return Answer{}, false
	}
	a := d.answer
	a.Mode = FromMemory
	if d.passes > 0 {
		a.RetryAfter = ceilMillis(d.passes - now)
	}
	return a, true
}

// wake lets everybody who waits for tokens of this budget try again, and
// forgets the denial, if any. The entry's mutex is held.
func (e *entry) wake() {
	e.denial = nil
	e.arrivals++
	if e.arrival != nil {
		close(e.arrival)
		e.arrival = nil
	}
}

// waitChan returns a channel that the next wake closes. The entry's mutex is
// held.
func (e *entry) waitChan() <-chan struct{} {
	if e.arrival == nil {
		e.arrival = make(chan struct{})
	}
	return e.arrival
}

// ceilMillis rounds up to a whole millisecond.
func ceilMillis(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	if d > 1<<63-1-time.Millisecond {
		return d.Truncate(time.Millisecond)
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
