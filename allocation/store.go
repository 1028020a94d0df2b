package allocation

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Now is the ledger's time at one transaction.
type Now struct {
	// Governed is the clock that mints and expires: the database's, held back
	// by its replicas so that a forward step mints nothing. It never
	// decreases.
	Governed lease.Time
	// Raw is the database's reading held monotone, for calendar windows.
	Raw lease.Time
}

// State is everything the ledger keeps about one budget. The pure steps
// change it in place; a store loads it, hands it to a step, and writes back
// what the step changed.
type State struct {
	Budget policy.Budget
	// Pools has one pool for a bucket. A quota has one per calendar window that
	// is open or still has leases or late totals to book; sorted by Start.
	Pools []Pool
	// Leases has every lease row of the budget that is not yet purged, sorted by
	// (Region, Kind, Incarnation).
	Leases []Lease
	// Regions has one row per region heard from or planned for, sorted by name.
	Regions []Region
	// Locals has the counters of local admissions, sorted by (Region, Source).
	Locals []Local
}

// Pool is the ledger's account of one budget, or of one window of a quota.
// In every committed state X <= Rate, Available <= Burst and
// Available + Outstanding <= Burst + Float, save that after a cut X and the
// sum may stand above but never grow until they fit.
type Pool struct {
	// Start and End bound a quota's window in raw time; Start is 0 and End 0 for
	// a bucket. Start names the pool in its leases; a change of contract between
	// bucket and quota, or of a quota's calendar, gives the open pool another.
	Start, End lease.Time
	// Rate, Burst and Float are the contract in force. Rate is in the fine
	// unit that all shares' x are counted in (lease.Rate.Fine). A quota's has no
	// tokens; its Per is the unit of shares left from a time as a bucket.
	Rate         lease.Rate
	Burst, Float lease.Tokens
	// Available is A; negative is debt.
	Available lease.Tokens
	// X is the sum of the shares' x in tokens per Rate.Per, Outstanding the sum
	// of all unended leases' holds.
	X, Outstanding lease.Tokens
	// MintedAt and Carry say up to when and with what remainder the pool minted.
	MintedAt lease.Time
	Carry    int64
	Totals   Totals
}

// Totals are running sums over a pool's life; none ever decreases, except
// Adjusted, which has the quota changes with their sign, and Minted and
// Clamped, which are lowered together before they outgrow their type.
// Conservation:
// Start + Minted + Adjusted = Available + ShareGiven - ShareReturned
// + LumpUsed + lump holds + LumpWrittenOff + Debt + Clamped - LateCredited.
type Totals struct {
	Start, Minted, Adjusted lease.Tokens
	Clamped                 lease.Tokens
	ShareGiven              lease.Tokens // n0
	ShareReturned           lease.Tokens
	ShareUsed               lease.Tokens // booked only
	ShareWrittenOff         lease.Tokens // holds that left with expired shares; booked only
	LumpGranted             lease.Tokens
	LumpUsed                lease.Tokens
	LumpReturned            lease.Tokens
	LumpWrittenOff          lease.Tokens
	LateUsed                lease.Tokens // totals of ended leases; booked only
	LateCredited            lease.Tokens // of a quota's own window, once
	Debt                    lease.Tokens // local admissions
	// Purged sums what lease rows that were deleted after their keeping time
	// had contributed, so that rows plus purged equal the totals above.
	PurgedGiven, PurgedShareReturned, PurgedShareUsed           lease.Tokens
	PurgedGranted, PurgedUsed, PurgedReturned, PurgedWrittenOff lease.Tokens
	// Alarms counts reports that claimed more than was possible and were
	// clamped.
	Alarms int64
}

// Ending says how a lease ended.
type Ending string

// The endings; Open is a lease that has not.
const (
	Open      Ending = ""
	Expired   Ending = "expired"
	Regranted Ending = "regranted"
	Closed    Ending = "closed"
)

// Lease is a lease's row in the ledger, keyed by (budget, region, kind,
// incarnation). The last sequence and its outcome live on it, which is what
// makes lease request ids idempotent without a table of old ids.
type Lease struct {
	Region      string
	Kind        lease.Kind
	Incarnation lease.Incarnation
	// Window is the Start of the pool that the lease was cut from.
	Window lease.Time

	Seq uint64
	// Granted, Used and Returned are cumulative; for a share Granted is n0.
	Granted, Used, Returned lease.Tokens
	// X and Beta are what is counted against the pool, which is never less
	// than what the region may hold; ToldX and ToldBeta what it was told last.
	X, ToldX       lease.Tokens // per pool Rate.Per
	Beta, ToldBeta lease.Tokens
	// Minted is what the share's x can have minted in the region so far, by
	// clocks as wrong as any may be; Used and Returned together stay within
	// Granted + Minted + 1. MintCarry is the remainder of that, less than a token.
	Minted    lease.Tokens
	MintCarry int64
	MintedAt  lease.Time
	// Hold is what the lease may still spend without the ledger knowing:
	// Granted - Used - Returned of a lump, Beta of a share; 0 once ended, save
	// for a Regranted share's remainder, which leaves at Reclaim.
	Hold lease.Tokens

	// TTL was told last; Reclaim is when the hold is written off unless the
	// lease is extended or closed; it never moves earlier.
	TTL     time.Duration
	Reclaim lease.Time
	// Keep, Short and RetryAfter complete the last answer, for replays.
	Keep       lease.Tokens
	Short      lease.Shortage
	RetryAfter time.Duration

	// Closing is set when the region has fenced the lease but processes still
	// hold prefetched tokens of it.
	Closing    bool
	Ending     Ending
	EndedAt    lease.Time
	WrittenOff lease.Tokens
	// LateUsed, LateReturned and LateCredited book the totals of an ended lease.
	LateUsed, LateReturned, LateCredited lease.Tokens
}

// Region is what the planner remembers of a region for one budget.
type Region struct {
	Name string
	// Demand is the last estimate, in tokens per second, finite and >= 0.
	Demand      float64
	DemandTotal lease.Tokens
	Waiting     lease.Tokens
	Want        lease.Tokens
	RTT         time.Duration
	// SeenAt is when the region was last heard from (governed).
	SeenAt lease.Time
	// Paced is the planner's hysteresis.
	Paced bool
	// Window and WindowGranted count what a static or independent quota has
	// granted to the region in its current window, less what came back.
	Window        lease.Time
	WindowGranted lease.Tokens
}

// Local is a cumulative counter of admissions without a lease.
type Local struct {
	Region, Source string
	Total          lease.Tokens
	SeenAt         lease.Time
}

// Store keeps States. Methods are safe for concurrent use.
type Store interface {
	// Update is one transaction over the named budgets, each named once: it
	// locks them in a fixed order, loads their states (nil for a budget that
	// does not exist), runs step, writes back what step changed, and commits.
	// It returns only when the commit is durable, even if ctx ends meanwhile.
	//
	// step is pure and may run several times, each on freshly loaded states,
	// when the transaction is retried. If step returns an error nothing is
	// written and Update returns that error. ErrUnknownCommit means that the
	// commit may or may not have happened; any other error means it did not.
	Update(ctx context.Context, budgets []string, step func(now Now, states []*State) error) error

	// Apply stores changed or new budgets, all or none, under new versions: it
	// is an Update that may create. step gets nil for a budget that does not
	// exist and returns the states to write in the order of budgets, nil for one
	// that is to stay as it is; the Version of each written Budget is set by the
	// store. A step error writes nothing, and is returned.
	Apply(ctx context.Context, budgets []string, step func(now Now, states []*State) ([]*State, error)) error

	// Budgets lists budgets whose version is above since, by version, at most
	// limit, with the version to ask for next: the last one listed, or, where
	// none is left, the newest there is (below since only if the ledger never
	// reached it).
	Budgets(ctx context.Context, since uint64, limit int) ([]policy.Budget, uint64, error)

	// Due names up to limit budgets, not locked by another transaction, whose
	// State.NextDue, as of their last write, is not after the governed time. The
	// store keeps that time beside each budget. It may keep an earlier one, and
	// so name a budget in vain, but not again once it was updated.
	Due(ctx context.Context, limit int) ([]string, error)

	// View loads states without locks from one consistent snapshot, for audits
	// and displays: up to limit of them in order of name, after the given name.
	View(ctx context.Context, after string, limit int) ([]State, Now, error)

	// Now returns the ledger's time, and keeps the governed clock written when
	// called about once a second.
	Now(ctx context.Context) (Now, error)
}
