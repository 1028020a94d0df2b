package agent

import (
	"container/heap"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// phase is where a ward stands in its round: at most one effect of a ward is
// under way at a time.
type phase uint8

const (
	resting    phase = iota
	reading          // a ReadRows
	opening          // an OpenRow
	changing         // a ReturnTokens or CloseLease
	gathering        // it has something to say and waits for others to share the call
	beginning        // a BeginSync
	sending          // its item is in a batch
	installing       // an InstallStates
)

// ward is what the Keeper knows about one budget's wallet. It decides nothing
// about safety: everything here may be lost, stale or wrong. Its fields stand so
// that they leave no gaps: an agent may have very many.
type ward struct {
	budget *terms
	// at is the place in the heap, -1 outside; failures is of rounds, in a row.
	at, failures int32
	phase        phase
	// queue is the heap that the ward waits in, or came from.
	queue Rank
	// urgent is set while somebody waits or the wallet is low.
	urgent bool
	// missing is set while the row was last seen to be missing.
	missing bool
	// final is set when the ledger does not serve this budget here.
	final bool
	// gone is set when the budget is listed no more.
	gone bool
	// arrived is set when the deciding side is to hear that tokens came.
	arrived bool
	// hinted is set while the deciding side remembers a hint.
	hinted bool
	// ended is set once, on shutdown, the ward has nothing more to close.
	ended bool
	// fullReserve is set while the reserve share is all that is planned.
	fullReserve bool
	// refusals is how often in a row a kind was not planned, notPlannedDoublings
	// at most.
	refusals [lease.Kinds]uint8
	// keepPaced is what the ledger said last that the paced share may keep, in
	// 255ths of its cap; 0 if this process has heard nothing yet.
	keepPaced uint8

	// due is when to look at the row again, never (0 in the heap sense) while a
	// round is under way.
	due time.Duration
	// round is nil at rest, where viewAt, missing, livesUntil (per kind, 0 for a
	// lease that was dead) and held are left of its view.
	*round
	viewAt     time.Duration
	livesUntil [lease.Kinds]time.Duration
	held       [lease.Kinds]lease.Tokens
	demand     demand

	// usedUntil is until when the region is known to use the budget, ownUntil
	// until when this process does.
	usedUntil, ownUntil time.Duration
	// waiting is the largest cost waited for.
	waiting lease.Tokens

	told [lease.Kinds]told
	// scarce is until when tokens are thought to be short.
	scarce time.Duration
	// keep is what the ledger said last that the lump may keep, and hold what was
	// granted of it and not yet used or returned, as of the answer.
	keep, hold lease.Tokens
	// trouble is nil for none, and never changed.
	trouble *Trouble
	// sentAt, sentDemand and sentVersion are of the last item that was answered.
	sentAt      time.Duration
	sentDemand  float64
	sentVersion uint64
	// locals is nil where nothing was admitted without a lease.
	locals *locals
}

// round is what a ward needs while it does not rest.
type round struct {
	// view is the row as last seen, and item what is being sent.
	view *regionstore.View
	item *lease.Item
	// batch is the id of the batch it is part of.
	batch uint64
	// gatherUntil is when a gathering ward goes, with or without others.
	gatherUntil time.Duration
}

// locals are a budget's admissions without a lease: total is this process's own,
// and sent what the ledger was told of it, storeSent of those in the store's
// bucket of that nonce.
type locals struct {
	total, sent lease.Tokens
	nonce       string
	storeSent   lease.Tokens
}

// told is what the ledger said last about one kind.
type told struct {
	ttl time.Duration
	// notBefore is when asking for a kind that was not planned makes sense.
	notBefore time.Duration
}

// troubled sets what keeps tokens from coming.
func (w *ward) troubled(t Trouble) {
	if t != w.trouble.orNone() {
		w.trouble = t.orNil()
	}
}

// askAfter is before when asking the ledger again is useless.
func (w *ward) askAfter() time.Duration { return w.trouble.orNone().AskAfter }

// askNow forgets that asking was useless: it was for leases that are no more.
func (w *ward) askNow() {
	t := w.trouble.orNone()
	t.AskAfter = 0
	w.troubled(t)
}

// extendEarly is how much of a lease's ttl must be left, at least, when it is
// extended; jitter is added so that many leases do not ask in one instant.
const extendEarly = 0.4

// unborn reports whether nothing was ever granted to a lease that is open.
func unborn(l *regionstore.Lease) bool {
	return l.Incarnation != "" && !l.Ended && !l.Closed && l.Deadline == 0
}

// reported reports whether the ledger has answered a lease's totals as they
// stand.
func reported(l *regionstore.Lease) bool {
	return !l.Pending && l.Sent.Used == l.Used && l.Sent.Returned == l.Returned && l.Sent.Closed == l.Closed
}

func counted(l *regionstore.Lease) lease.Tokens { return l.Cur.Tokens + l.Prev.Tokens }

func (w *ward) lease(k lease.Kind) *regionstore.Lease { return &w.view.Row.Leases[k-1] }

func (w *ward) remains(k lease.Kind) time.Duration { return w.view.Remains[k-1] }

func (w *ward) alive(k lease.Kind) bool { return w.livesUntil[k-1] > 0 }

// dead reports whether a lease lived and is past its deadline.
func (w *ward) dead(k lease.Kind) bool {
	l := w.lease(k)
	return l.Deadline != 0 && w.remains(k) <= 0 && !l.Ended && !l.Closed
}

// ttl is how long a lease of this kind lives without being extended.
func (w *ward) ttl(k lease.Kind) time.Duration {
	if t := w.told[k-1].ttl; t > 0 {
		return t
	}
	if k == lease.Reserve {
		return w.budget.ShareTTL
	}
	return w.budget.TTL
}

// live is what could be taken from the row, over all kinds.
func (w *ward) live() lease.Tokens {
	return w.held[0] + w.held[1] + w.held[2]
}

// tinyBelow is how many tokens there are per region where the plan divides them
// one by one.
const tinyBelow = 7

func (w *ward) tiny() bool {
	return w.budget.Contract.Limit() < lease.Tokens(tinyBelow*max(w.budget.regions, 3))
}

// usedFor is for how long a budget that was just used counts as in use. Of few
// tokens one has to lie where the next request comes, so there it is until that
// is due by the demand so far, or half a minute: then tokens go back to where
// requests are less rare. Who may wait for tokens needs none nearby.
func (w *ward) usedFor() time.Duration {
	if !w.tiny() || w.budget.Wait > 0 {
		return usedFor
	}
	return w.demand.timeFor(1, usedFor, rarelyUsedFor)
}

// rank is that of the ward's next step.
func (w *ward) rank() Rank {
	switch {
	case !w.urgent:
		return Routine
	case w.anyAlive():
		return MoreTokens
	}
	return FirstTokens
}

// elastic reports whether the ledger may give more here than the region's
// fixed share.
func (w *ward) elastic(now time.Duration) bool {
	for _, k := range [...]lease.Kind{lease.Paced, lease.Lump} {
		if w.alive(k) || (unborn(w.lease(k)) && now >= w.told[k-1].notBefore) {
			return true
		}
	}
	return false
}

// seen takes in a view of the row, and keeps it.
func (w *ward) seen(v *regionstore.View, now time.Duration) {
	if w.round == nil {
		w.round = &round{}
	}
	w.view, w.viewAt = v, now
	w.missing, w.held = v.Outcome == regionstore.Missing, v.Live
	for i, left := range v.Remains {
		w.livesUntil[i] = 0
		if left > 0 {
			w.livesUntil[i] = now + left
		}
	}
	if w.missing {
		return
	}
	w.demand.observe(v.Row.DemandTotal, now)
}

// ownLocals is the ward's locals, made if there are none.
func (w *ward) ownLocals() *locals {
	if w.locals == nil {
		w.locals = &locals{}
	}
	return w.locals
}

// local is what this process admitted without a lease, and localUnsaid whether
// the ledger was not told of all of it.
func (w *ward) local() lease.Tokens {
	if w.locals == nil {
		return 0
	}
	return w.locals.total
}

func (w *ward) localUnsaid() bool { return w.locals != nil && w.locals.total > w.locals.sent }

// storeUnsaid reports whether the store's bucket as seen admitted more than the
// ledger was told of.
func (w *ward) storeUnsaid() bool {
	seen, sent := &w.view.Row.Local, lease.Tokens(0)
	if w.locals != nil && w.locals.nonce == seen.Nonce {
		sent = w.locals.storeSent
	}
	return seen.Total > sent
}

// wards is a heap by due time, names breaking ties so that runs repeat.
type wards []*ward

func (h wards) Len() int { return len(h) }

func (h wards) Less(i, j int) bool {
	if h[i].due != h[j].due {
		return h[i].due < h[j].due
	}
	return h[i].budget.Name < h[j].budget.Name
}

func (h wards) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].at, h[j].at = int32(i), int32(j)
}

func (h *wards) Push(x any) {
	w := x.(*ward)
	w.at = int32(len(*h))
	*h = append(*h, w)
}

func (h *wards) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	w.at = -1
	return w
}

// schedule sets when w is looked at next, if it rests; 0 takes it out.
func (k *Keeper) schedule(w *ward, due time.Duration) {
	if w.at >= 0 && (due == 0 || w.queue != w.rank()) {
		heap.Remove(&k.order[w.queue], int(w.at))
	}
	w.due = due
	switch {
	case due == 0:
	case w.at >= 0:
		heap.Fix(&k.order[w.queue], int(w.at))
	default:
		w.queue = w.rank()
		heap.Push(&k.order[w.queue], w)
	}
}
