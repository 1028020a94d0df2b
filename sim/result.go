package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Result is what a run found. Marshalled, it is the same bytes for the same
// Options, on any machine.
type Result struct {
	Strategy Strategy      `json:"strategy"`
	Seed     uint64        `json:"seed"`
	Length   time.Duration `json:"length"`
	// Bulk is the arrival step, 0 for request by request.
	Bulk time.Duration `json:"bulk,omitempty"`
	// Done is how far the run came: Length, unless it was interrupted or a
	// violation ended it.
	Done    time.Duration  `json:"done"`
	Budgets []BudgetResult `json:"budgets"`
	// Total sums over all budgets.
	Total Tally `json:"total"`
	// LeaseRPCs are SyncLeases calls sent, SyncItems the items in them.
	LeaseRPCs int64 `json:"lease_rpcs"`
	SyncItems int64 `json:"sync_items"`
	// RPCsPer1000 is lease RPCs per 1000 decisions.
	RPCsPer1000 float64 `json:"rpcs_per_1000"`
	// Events is the number of steps that the simulation made, Decisions that of
	// production decisions (a bulk step is one or a few).
	Events    int64       `json:"events"`
	Decisions int64       `json:"decisions"`
	Coverage  Coverage    `json:"coverage"`
	Marks     []Mark      `json:"marks,omitempty"`
	Found     []Violation `json:"violations,omitempty"`
}

// Tally counts requests and their cost in tokens.
type Tally struct {
	Offered  int64 `json:"offered"`
	Admitted int64 `json:"admitted"`
	Denied   int64 `json:"denied"`
	// Unavailable requests got no decision.
	Unavailable int64 `json:"unavailable"`
	// FalselyDenied are those of the last two for which an ideal bucket that
	// was fed with what was admitted held enough.
	FalselyDenied  int64        `json:"falsely_denied"`
	OfferedTokens  lease.Tokens `json:"offered_tokens"`
	AdmittedTokens lease.Tokens `json:"admitted_tokens"`
	// LocalTokens of them were admitted without a lease.
	LocalTokens lease.Tokens `json:"local_tokens"`
	// IdealTokens is what one central bucket without latency would have
	// admitted of the same requests.
	IdealTokens lease.Tokens `json:"ideal_tokens"`
}

// Utilisation is what was admitted of what the ideal bucket would have; 1
// where that is nothing.
func (t Tally) Utilisation() float64 { return ratio(int64(t.AdmittedTokens), int64(t.IdealTokens), 1) }

// FalseDenialRate is the part of all requests that were falsely denied.
func (t Tally) FalseDenialRate() float64 { return ratio(t.FalselyDenied, t.Offered, 0) }

func ratio(a, b int64, otherwise float64) float64 {
	if b == 0 {
		return otherwise
	}
	return float64(a) / float64(b)
}

// BudgetResult is what happened to one budget.
type BudgetResult struct {
	Name     string `json:"name"`
	Contract string `json:"contract"` // at the start
	Strategy string `json:"strategy"`
	Tally
	Regions []RegionResult `json:"regions"`

	// Over has the largest over-admission per asked window, in its order, and
	// Any that of all windows, of whatever length.
	Over []WindowOver `json:"over,omitempty"`
	Any  WindowOver   `json:"any"`
	// Lifetime is the largest excess over burst + rate·t since the start.
	Lifetime      lease.Tokens `json:"lifetime"`
	LifetimeBound lease.Tokens `json:"lifetime_bound"`
	// NonConforming is the number of admitted tokens that a policer of the
	// contract would have refused; each has one of the Causes.
	NonConforming lease.Tokens `json:"non_conforming"`
	Causes        []Cause      `json:"causes,omitempty"`

	// Held is what all regions could spend, at the times of the samples;
	// Stranded what regions other than one that was falsely denying could.
	HeldMean     float64      `json:"held_mean"`
	HeldMost     lease.Tokens `json:"held_most"`
	StrandedMean float64      `json:"stranded_mean"`
	StrandedMost lease.Tokens `json:"stranded_most"`
	// DeniedMost is the most that an ideal bucket, fed with what was admitted,
	// held when it would have admitted a request that was refused.
	DeniedMost lease.Tokens `json:"denied_most"`
	// LongestDenied is the longest time that a region was falsely denied
	// without an admission in between.
	LongestDenied time.Duration `json:"longest_denied"`
	// RebalanceMean and RebalanceWorst are times from a move of demand until the
	// region that gained admits 90 % of what the ideal bucket admits there;
	// Moves how many of them were seen, Unbalanced those that took until the
	// next.
	RebalanceMean  time.Duration `json:"rebalance_mean"`
	RebalanceWorst time.Duration `json:"rebalance_worst"`
	Moves          int           `json:"moves"`
	Unbalanced     int           `json:"unbalanced"`
	// Jain is Jain's index of the regions' admitted/offered; 1 is fair.
	Jain float64 `json:"jain"`

	SyncItems int64 `json:"sync_items"`
	// Alarms are reports that claimed more than the ledger gave; clocks that are
	// apart by more than a token's time make some too.
	Alarms int64   `json:"alarms"`
	Series *Series `json:"series,omitempty"`
}

// RegionResult is one region's part.
type RegionResult struct {
	Name string `json:"name"`
	Tally
	LongestDenied time.Duration `json:"longest_denied"`
}

// WindowOver is over-admission in windows of one length.
type WindowOver struct {
	// W is 0 for "any window".
	W    time.Duration `json:"w"`
	Over lease.Tokens  `json:"over"`
	// At is the end of the worst window.
	At time.Duration `json:"at"`
	// Bound is what was promised, -1 if nothing was.
	Bound lease.Tokens `json:"bound"`
}

// Cause is why tokens were admitted that the contract alone would not allow.
type Cause struct {
	Name   CauseName    `json:"name"`
	Tokens lease.Tokens `json:"tokens"`
}

// CauseName names a term of the bound.
type CauseName string

// The causes; Unexplained must always be 0.
const (
	CauseFloat       CauseName = "float"
	CauseDrift       CauseName = "drift"
	CauseRounding    CauseName = "rounding"
	CauseLocal       CauseName = "local_allowance"
	CauseRegrant     CauseName = "regrant"
	CauseSuspended   CauseName = "suspended_prefetch"
	CauseIndependent CauseName = "independent"
	CauseCut         CauseName = "after_a_cut"
	CauseFailover    CauseName = "ledger_failover"
	CauseWriteBack   CauseName = "write_back"
	CauseStep        CauseName = "clock_step"
	CauseClock       CauseName = "clock_beyond_declared"
	Unexplained      CauseName = "unexplained"
)

// Violation is an invariant that did not hold.
type Violation struct {
	At        time.Duration `json:"at"`
	Invariant string        `json:"invariant"`
	Budget    string        `json:"budget,omitempty"`
	Detail    string        `json:"detail"`
}

// Mark is a fault or change on the time line.
type Mark struct {
	At    time.Duration `json:"at"`
	Until time.Duration `json:"until"`
	Text  string        `json:"text"`
}

// Series is a budget's course, in Points of equal length.
type Series struct {
	Every time.Duration `json:"every"`
	// Ideal, Admitted and Offered are tokens per point; Allowed what the
	// contract mints in one, and Burst (N of a quota) what it allows beside
	// that; Bound the promised excess within one, 0 if none.
	Offered  []lease.Tokens `json:"offered"`
	Admitted []lease.Tokens `json:"admitted"`
	Ideal    []lease.Tokens `json:"ideal"`
	Allowed  []lease.Tokens `json:"allowed"`
	Burst    []lease.Tokens `json:"burst"`
	Bound    lease.Tokens   `json:"bound"`
	Regions  []RegionSeries `json:"regions"`
}

// RegionSeries is one region's part. Held is what the region could spend at
// the end of each point, per kind of lease.
type RegionSeries struct {
	Name     string         `json:"name"`
	Offered  []lease.Tokens `json:"offered"`
	Admitted []lease.Tokens `json:"admitted"`
	Denied   []lease.Tokens `json:"denied"`
	// Ideal is what the ideal bucket admitted of this region's requests.
	Ideal []lease.Tokens              `json:"ideal"`
	Held  [lease.Kinds][]lease.Tokens `json:"held"`
	// Alive has, per kind, whether a lease could be spent at the end of each
	// point: the bands of the report.
	Alive [lease.Kinds][]bool `json:"alive"`
}

// Coverage counts how often rare paths were reached.
type Coverage struct {
	// Messages between regions and allocators.
	Lost, Duplicated, Reordered, LateReply, ReplyLostAfterCommit int64
	// Lease requests as the ledger saw them.
	ReplayedSequence, OlderSequence, EndedAnswer, NotPlanned, RefusedItem int64
	UnknownCommit, FailedCommit                                           int64
	LateTotals, Expired, Regranted, ClosedLease                           int64
	Held, Woken, Superseded                                               int64
	// The regions' stores.
	ResumedSequence, SupersededSequence, StaleInstall, DeadInstall int64
	StaleSettle, VoidRow, StoreUnknown, LateTake, LostRefill       int64
	// Decisions.
	LocalStore, LocalProcess, Discarded, Waited, BreakerOpened int64
	Prefetched, GivenBack                                      int64
	// DeniedFromMemory are denials that a process remembered.
	DeniedFromMemory int64
	// Faults that happened.
	AgentKilled, AgentStopped, AgentPaused, AgentSuspended, FrozenInTake int64
	FrozenInDecision                                                     int64
	AllocatorKilled, AllocatorPaused, LedgerFailover, LedgerLostCommits  int64
	StoreRestarted, StoreRestored, StoreFailedOver, RowLost, Stalled     int64
	ClockMoved, ClockStepped, PolicyChanged                              int64
}
