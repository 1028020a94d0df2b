package lease

import (
	"context"
	"time"
)

// Kind is a slot in a region's wallet. A region holds at most one lease of
// each kind per budget and spends them in this order.
type Kind uint8

const (
	// Reserve is a long-lived share of the rate, planned from weights or a
	// declared reserve: a region cut off from the allocator lives on it.
	Reserve Kind = iota + 1
	// Paced is a short-lived share that follows demand.
	Paced
	// Lump is a number of tokens already minted, counted down.
	Lump

	// Kinds is the number of kinds; valid kinds are 1..Kinds.
	Kinds = 3
)

func (k Kind) String() string {
	switch k {
	case Reserve:
		return "reserve"
	case Paced:
		return "paced"
	case Lump:
		return "lump"
	}
	return "invalid"
}

// IsShare reports whether a lease of this kind mints in the region.
func (k Kind) IsShare() bool { return k == Reserve || k == Paced }

// Incarnation names one lease's life: a random nonce made when the region's
// store opened it. 1 to 64 bytes on the wire; "" means none. A lease request
// id is (region, incarnation, budget, sequence).
type Incarnation string

// SyncRequest is what one region says about many budgets. Everything in it is
// cumulative or absolute; it may be lost, repeated, or reordered.
type SyncRequest struct {
	// Region is who the caller takes itself for; a server puts in who the
	// credential says it is, and refuses a caller that says otherwise.
	Region string
	// Items has at most MaxItems entries, each of another budget.
	Items []Item
}

const (
	// MaxItems bounds the batch of one SyncRequest.
	MaxItems = 1000
	// MaxLocal bounds the local counters of one Item: the store's own and those
	// of processes that decided while the store was away.
	MaxLocal = 64
)

// Item is one budget's part of a SyncRequest.
type Item struct {
	Budget string
	// Leases has at most one report per kind.
	Leases []Report
	// Demand is the region's estimate of offered cost, admitted or not, in
	// tokens per second, less what it means to spend of a share's balance; finite
	// and >= 0. It steers the plan, never safety.
	Demand float64
	// DemandTotal is the cumulative offered cost of distinct checks.
	DemandTotal Tokens
	// Local has what was admitted without a lease, per counter; at most MaxLocal.
	Local []LocalUse
	// Waiting is the largest single cost that a caller waits for; 0 for none.
	Waiting Tokens
	// RTT is the region's measured round trip to a committed answer; 0 if not
	// yet known.
	RTT time.Duration
}

// Report is the region's side of one lease, as the store's begin step wrote
// it into the wallet before anything was sent.
type Report struct {
	Kind        Kind
	Incarnation Incarnation
	// Seq is the request's sequence number within the incarnation, from 1. The
	// ledger processes a newer one, answers the last one again, and gives an
	// older one the current state.
	Seq uint64
	// Used and Returned are cumulative over the incarnation.
	Used, Returned Tokens
	// X and Beta are the rate and cap that the region holds (a share). The
	// ledger frees what it counts above them.
	X    Rate
	Beta Tokens
	// Granted is what of a share's cumulative grants has arrived. What the ledger
	// gave beyond it went out with answers that no store will install any more.
	Granted Tokens
	// Prefetched is what processes hold in memory. When Closed, it is what the
	// lease may still spend.
	Prefetched Tokens
	// Closed says that the store has fenced the lease: nothing can be taken
	// from it any more and its balance is in Returned.
	Closed bool
	// Want is the total hold wanted of a lump, absolute, so that asking again
	// asks for no more.
	Want Tokens
	// Regrant names the region's earlier share of this kind that its store has
	// lost, when the budget's owner chose on_store_loss: regrant; "" for none.
	// It is named, so that a late message never ends a later lease.
	Regrant Incarnation
}

// LocalUse is a cumulative count of tokens admitted without a lease. Source is
// the store's nonce or the process's boot id; 1 to 64 bytes.
type LocalUse struct {
	Source string
	Total  Tokens
}

// SyncReply answers a SyncRequest item by item, in its order. An item's
// failure is its own.
type SyncReply struct {
	Items []ItemReply
}

// ItemReply is the ledger's answer for one budget. When Err is set, Leases is
// empty and nothing of the item was applied, unless its code is Unavailable:
// then the outcome is unknown, and the same item is sent again.
type ItemReply struct {
	Budget string
	// Version is the budget's policy version in force; a region that holds an
	// older one asks for the list again.
	Version uint64
	Leases  []State
	Err     *Error
}

// Status says what an answer means for its lease.
type Status uint8

const (
	// Active means that the state is to be installed.
	Active Status = iota + 1
	// Ended means that the lease is over for good, whatever is sent for it: the
	// store opens a new incarnation.
	Ended
	// NotPlanned means that the plan holds no lease of this kind here. The
	// ledger has no row for it. RetryAfter says when asking again makes sense.
	NotPlanned
)

// State is one lease's absolute state in the ledger after a request.
type State struct {
	Kind        Kind
	Incarnation Incarnation
	Seq         uint64
	Status      Status
	// Granted is cumulative: a lump's tokens, or those a share was given to
	// begin with (n0).
	Granted Tokens
	// X and Beta replace what the region holds of a share. Smaller numbers are
	// counted by the ledger until a newer sequence states them.
	X    Rate
	Beta Tokens
	// TTL runs from the anchor that begin read, on the store's clock.
	TTL time.Duration
	// Keep is the hold above which the region is asked to return lump tokens, or
	// to spend a share's balance down by asking for less of the rate than its
	// demand; MaxTokens asks for nothing.
	Keep Tokens
	// Short says why less than wanted is held; zero when nothing is missing.
	Short Shortage
	// RetryAfter, with Short, is when more may be there; 0 if unknown.
	RetryAfter time.Duration
	// Holder, with NotPlanned for a share, is the unended lease of the same
	// region and kind that stands in its way; a region whose store has lost it
	// names it in Regrant next time.
	Holder Incarnation
}

// Shortage is the ledger's reason for granting less than was wanted. A quota
// denial (429) needs one of these, or an empty share, as evidence.
type Shortage uint8

const (
	// Enough means that nothing is missing.
	Enough Shortage = iota
	// PoolEmpty means that the global budget has no token left for this region
	// now.
	PoolEmpty
	// CeilingReached means that tokens leased elsewhere fill the ceiling.
	CeilingReached
	// ShareReached means that the region has its planned part.
	ShareReached
	// LimitZero means that the budget's limit is 0 or the budget was deleted.
	LimitZero
)

func (s Shortage) String() string {
	switch s {
	case Enough:
		return "enough"
	case PoolEmpty:
		return "pool_empty"
	case CeilingReached:
		return "ceiling_reached"
	case ShareReached:
		return "share_reached"
	case LimitZero:
		return "limit_zero"
	}
	return "invalid"
}

// Source is the global side as a region sees it. *allocation.Allocator and
// the rpc client both satisfy it. An error means that the outcome of every
// item is unknown: the same request is sent again.
type Source interface {
	SyncLeases(ctx context.Context, req SyncRequest) (SyncReply, error)
}
