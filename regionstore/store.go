package regionstore

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Row is a region's wallet for one budget, as the store keeps it.
type Row struct {
	// Replid is the store's replication id when the row was opened.
	Replid string
	// Leases is indexed by Kind - 1.
	Leases [lease.Kinds]Lease
	// DemandTotal is the cumulative offered cost that agents added.
	DemandTotal lease.Tokens
	// Local is the allowance of allow_local.
	Local Local
}

// Lease is one lease in the wallet.
type Lease struct {
	// Incarnation is "" until open gave one.
	Incarnation lease.Incarnation
	// Seq is the last sequence begun; Pending until its reply is installed.
	Seq     uint64
	Pending bool
	// Sent is what begin wrote for Seq: the exact report to send, by whomever.
	Sent lease.Report
	// Anchor is the store's clock when Seq was begun; retries keep it.
	Anchor lease.Time
	// Deadline is when the lease stops, on the store's clock; 0 until a reply
	// was installed. A lease past it is dead and stays dead.
	Deadline lease.Time
	// Lost is an earlier share of this kind that another life of the store held:
	// open remembers it from a void row, install from an answer's Holder.
	Lost lease.Incarnation
	// Closed is set by close: nothing can be taken any more.
	Closed bool
	// Ended is set by an installed reply that says so: open may begin anew.
	Ended bool

	// Granted, Used and Returned are cumulative over the incarnation. For a
	// share Granted is n0.
	Granted, Used, Returned lease.Tokens

	// X, Beta, Balance, Carry and Mark are a share's: its rate, cap, unspent
	// tokens, minting remainder, and the instant it has minted up to.
	X       lease.Rate
	Beta    lease.Tokens
	Balance lease.Tokens
	Carry   int64
	Mark    lease.Time

	// Prefetched tokens are counted in two generations.
	Cur, Prev Generation
}

// Generation counts the tokens that processes took into their memory within
// one span of time.
type Generation struct {
	// ID is 0 while nothing was ever taken; it rises by one per generation of
	// the incarnation.
	ID     uint64
	Tokens lease.Tokens
	// Opened is when the generation's first tokens were taken; Until is when
	// the last of its processes has provably stopped.
	Opened, Until lease.Time
}

// Local is the allowance a region may admit without any lease. It starts
// empty and no reconnection refills it.
type Local struct {
	// Nonce names this counter's life in what is reported.
	Nonce string
	// Rate and Burst are those of the last TakeLocal: what has passed since Mark
	// mints with them, so that changed ones refill nothing.
	Rate    lease.Rate
	Burst   lease.Tokens
	Balance lease.Tokens
	Carry   int64
	Mark    lease.Time
	// Total is cumulative.
	Total lease.Tokens
}

// Now is how a caller bounds the store's clock, per call and row.
//
// NotAfter is min(TIME) that this caller last saw of this primary, plus
// (1 + rho) times its own monotonic time since, from before it sent the call
// that saw it to before it sends this one; minting and the aging of
// generations use min(TIME, NotAfter), so that a step of the store's clock
// mints nothing. Zero means that the caller has not seen this row on this
// primary before: the step mints nothing and moves the row's marks to TIME.
// A NotAfter more than MaxLag behind TIME counts as zero: the clock was
// stepped. The caller starts again from it, and with every other row of this
// primary as if it had not seen it: those would mint the step.
type Now struct {
	NotAfter lease.Time
}

// Outcome says how a step went.
type Outcome uint8

const (
	// OK means applied.
	OK Outcome = iota + 1
	// Missing means that there is no row, or that it is void. Open makes one.
	Missing
	// Stale means that the incarnation, sequence or generation named is not the
	// row's: nothing was changed.
	Stale
	// Dead means that the lease is past its deadline, closed or ended.
	Dead
	// Short means that the wallet holds too little; nothing was taken.
	Short
	// Busy means that a pending sequence is too young to be superseded; it is
	// returned, to be sent again.
	Busy
)

// OpenRequest makes the row if it is missing or void, and gives a new
// incarnation to every kind that has none, or whose lease has ended, or was
// closed and has reported so, or has been past its deadline for longer than
// the guard of a process, in which begin may report its last totals.
type OpenRequest struct {
	Budget string
	// Nonces has a fresh random nonce per kind and LocalNonce one more; those
	// not needed are dropped.
	Nonces     [lease.Kinds]lease.Incarnation
	LocalNonce string
	Now        Now
}

// OpenReply returns the row after the step.
type OpenReply struct {
	View View
	// Created is set when the row was made by this call, Void when one from
	// another life of the store stood there, in which case its shares may be
	// regranted.
	Created, Void bool
}

// View is a row as a caller sees it, with its derived numbers.
type View struct {
	// Outcome is OK or Missing; a missing row is all zero. Return and Close also
	// say Stale (another incarnation) or Dead (nothing there to do it to).
	Outcome Outcome
	Row     Row
	// Time is min(TIME, NotAfter): what the caller remembers as last seen.
	// Remains is counted from the store's true TIME.
	Time lease.Time
	// Replid is the store's own.
	Replid string
	// Live has, per kind, the tokens that could be taken now, after minting;
	// Remains the time to its deadline, <= 0 when dead.
	Live    [lease.Kinds]lease.Tokens
	Remains [lease.Kinds]time.Duration
}

// Intent is what begin is to write for one kind.
type Intent struct {
	Kind lease.Kind
	// Incarnation must be the row's.
	Incarnation lease.Incarnation
	Want        lease.Tokens
	// Regrant puts the lease's Lost incarnation into the report.
	Regrant bool
	// LowerX and LowerBeta cut a share at once, before anything is said: a
	// zero LowerX.Per or a negative LowerBeta leaves it alone. Balance above
	// the new beta is dropped.
	LowerX    lease.Rate
	LowerBeta lease.Tokens
	// Supersede allows replacing a pending sequence of any age, which only
	// shrinking and closing may do.
	Supersede bool
}

// BeginRequest begins a new sequence for some leases of one budget.
type BeginRequest struct {
	Budget  string
	Intents []Intent
	// MinAge is how old a pending sequence must be (two round trips) before it
	// is superseded.
	MinAge time.Duration
	Now    Now
}

// BeginReply has, per intent, what is to be sent.
type BeginReply struct {
	View    View
	Reports []BegunReport
}

// BegunReport is a report to send: a new sequence (OK) or the pending one
// (Busy). On Missing, Stale and Dead (the ledger has ended it) there is nothing
// to send. A lease past its deadline may still report its last totals: begin
// closes it first, so that what it says stays true.
type BegunReport struct {
	Outcome Outcome
	Report  lease.Report
}

// InstallRequest applies the ledger's answers for one budget.
type InstallRequest struct {
	Budget string
	States []lease.State
	Now    Now
}

// InstallReply has one outcome per state, in order: OK; Missing; Stale (not
// this incarnation or not the pending sequence); Dead (closed, or past the
// deadline that the answer would set). Pending is cleared unless Missing or
// Stale.
type InstallReply struct {
	View     View
	Outcomes []Outcome
}

// Take is one budget's part of a decision.
type Take struct {
	Budget string
	// Cost is taken whole or not at all, from the leases in their order, across
	// several of them if needed. 0 is a peek.
	Cost lease.Tokens
	// Prefetch is how many more tokens the process would like to hold; as many
	// as are live, and within the limit of each lease, are given.
	Prefetch lease.Tokens
	// HoldFor is for how long the process would like to hold what it takes into
	// memory: lease.LongestProcessDeadline at most, and lease.ProcessDeadline if
	// that is more or HoldFor is 0.
	HoldFor time.Duration
	// Demand is added to the row's total, whatever the outcome.
	Demand lease.Tokens
	// Settles are settlements of this budget that come along: each is done as
	// Store.Settle does it, before the cost is looked for and whatever the outcome,
	// save that nothing is settled where a kept answer is given, or a conflict. Their
	// Budget, Demand and Now are the take's. A take that has any is never sent
	// again, with a request id or without one.
	Settles []Settle
	Now     Now
}

// Holds is for how long the process holds what it takes, save that a lease may
// end before.
func (t *Take) Holds() time.Duration {
	return max(lease.ProcessDeadline, min(t.HoldFor, lease.LongestProcessDeadline))
}

// TakeRequest takes from all its budgets, which share a slot, or from none.
type TakeRequest struct {
	// Takes has each budget once.
	Takes []Take
	// Hold prefetches the costs instead of using them: the process decides
	// over several slots and will use or give back. Of a share only what its
	// prefetch limit leaves can be held.
	Hold bool
	// RequestID, when set, makes a repetition of a request that took return its
	// answer for KeepAnswer and take nothing. Content identifies what was asked;
	// the same id with another content is a Conflict. Demand of a repetition is
	// not counted. A refusal is not kept: it took nothing, and asking again may
	// find tokens. A KeepAnswer of 0 only looks for an answer.
	RequestID  string
	Content    string
	KeepAnswer time.Duration
	// Late, if set, is called at most once, with a reply that came after Take had
	// returned an error because its context ended: only whoever is called knows of
	// the tokens in it. A store may drop late replies instead; their tokens age
	// out. Late must not block, nor call the store.
	Late func(TakeReply) `json:"-"`
}

// TakeReply is the outcome of a TakeRequest.
type TakeReply struct {
	// Took is set when every budget had enough.
	Took bool
	// Replayed is set when this is the stored answer of an earlier request;
	// Conflict when the request id was used with another content.
	Replayed, Conflict bool
	// Results has one entry per take, in order.
	Results []TakeResult
}

// TakeResult is one budget's part of a TakeReply.
type TakeResult struct {
	// Outcome is OK (had enough, whether or not the others did), Short or
	// Missing.
	Outcome Outcome
	// Parts lists the tokens now in the process's memory: the prefetch, and
	// with Hold the cost, by lease. A replayed answer has none: the tokens are in
	// the memory of whoever got the first.
	Parts []Part
	// Live is what could be taken after this step, over all kinds, and Shares
	// what of it is in shares.
	Live, Shares lease.Tokens
	// Beta and X sum the live shares' caps and the first live share's rate is
	// X's unit; zero without one.
	Beta lease.Tokens
	X    lease.Rate
	// MintIn is the time until the shares' own minting has made the cost
	// possible; 0 if it is, negative if it never will be. With two live shares
	// it errs upwards.
	MintIn time.Duration
	// Lease is the time until the last live lease's deadline; <= 0 when none is
	// live.
	Lease time.Duration
	// Pending is set while any sequence of the row waits for its reply.
	Pending bool
	// Time is min(TIME, NotAfter).
	Time lease.Time
}

// Part is a number of prefetched tokens from one lease.
type Part struct {
	Kind        lease.Kind
	Incarnation lease.Incarnation
	Generation  uint64
	Tokens      lease.Tokens
	// Remains is the least of the time to the lease's deadline and the take's
	// Holds. The process counts it from before it sent the take.
	Remains time.Duration
}

// Settle says what became of prefetched tokens. It names incarnation and
// generation, does nothing under another, and is never sent again after an
// unknown outcome. One that names no kind only tells of demand.
type Settle struct {
	Budget string
	// Demand is added to the row's total, whatever lease it holds.
	Demand      lease.Tokens
	Kind        lease.Kind
	Incarnation lease.Incarnation
	Generation  uint64
	// Used tokens were spent, Back tokens are given back.
	Used, Back lease.Tokens
	Now        Now
}

// ReturnRequest takes unspent lump tokens out of the wallet, to be reported
// as returned by the next begin.
type ReturnRequest struct {
	Budget      string
	Incarnation lease.Incarnation
	// Keep is the hold (live plus prefetched) down to which tokens are taken
	// out.
	Keep lease.Tokens
	Now  Now
}

// CloseRequest fences a lease and takes its balance out.
type CloseRequest struct {
	Budget      string
	Kind        lease.Kind
	Incarnation lease.Incarnation
	Now         Now
}

// LocalRequest asks for tokens of the local allowance. The row must exist.
type LocalRequest struct {
	Budget string
	Cost   lease.Tokens
	Rate   lease.Rate
	Burst  lease.Tokens
	// Demand is added to the row's total.
	Demand lease.Tokens
	Now    Now
}

// LocalReply is the outcome of a LocalRequest: OK, Short or Missing.
type LocalReply struct {
	Outcome Outcome
	Balance lease.Tokens
	// RetryIn is when the cost could pass; negative for never.
	RetryIn time.Duration
	Time    lease.Time
}

// Store keeps one region's wallets. Methods are safe for concurrent use and
// each is one atomic step; an error means that the outcome is unknown.
// Batches (Read, Settle, Refill) are one step per entry.
type Store interface {
	Open(ctx context.Context, req OpenRequest) (OpenReply, error)
	Begin(ctx context.Context, req BeginRequest) (BeginReply, error)
	Install(ctx context.Context, req InstallRequest) (InstallReply, error)
	Take(ctx context.Context, req TakeRequest) (TakeReply, error)
	Settle(ctx context.Context, settles []Settle) ([]Outcome, error)
	// Refill takes for each of these as Take does for one alone. With an error the
	// results that are known are returned; the Outcome of the others is 0.
	Refill(ctx context.Context, takes []Take) ([]TakeResult, error)
	Return(ctx context.Context, req ReturnRequest) (View, error)
	Close(ctx context.Context, req CloseRequest) (View, error)
	TakeLocal(ctx context.Context, req LocalRequest) (LocalReply, error)

	// Read views rows without changing them, beyond what any step does as time
	// passes (minting, aging).
	Read(ctx context.Context, budgets []string, now []Now) ([]View, error)

	// Touch says that budgets are in use by this caller for the next ttl;
	// InUse lists all that any caller said so of, Disused those of which that ended
	// within the last so long, an hour at most: a leader that died may have left
	// leases of theirs open.
	Touch(ctx context.Context, budgets []string, ttl time.Duration) error
	InUse(ctx context.Context) ([]string, error)
	Disused(ctx context.Context, within time.Duration) ([]string, error)

	// Lead takes or renews the region's lock for ttl and reports whether holder
	// has it. No safety rests on it. Unlead gives it up.
	Lead(ctx context.Context, holder string, ttl time.Duration) (bool, error)
	Unlead(ctx context.Context, holder string) error

	// Join says that a process lives for ttl and returns how many do; Leave
	// takes it out and returns how many are left. The last one closes leases.
	Join(ctx context.Context, process string, ttl time.Duration) (int, error)
	Leave(ctx context.Context, process string) (int, error)

	// Slot groups budgets: those with equal slots can be taken in one step.
	Slot(budget string) uint32
	// Primary identifies the primary that holds the budget's row, and changes
	// whenever its clock may be another's; last-seen times belong to it.
	Primary(budget string) string
}
