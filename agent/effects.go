package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Effect is something that the Keeper wants done. Each kind is answered by
// one Event, save for those that say otherwise. An Executor does them.
type Effect interface{ effect() }

// Rank says which of the effects that wait to be done go first.
type Rank uint8

const (
	// Routine is what nobody waits for: looks at rows, reports, extensions.
	Routine Rank = iota
	// FirstTokens are waited for by decisions of a budget that has none yet. Very
	// many of them may come at once.
	FirstTokens
	// MoreTokens are for a budget whose decisions are being served, and which
	// would otherwise stop.
	MoreTokens
	ranks
)

// rankOf is the rank of an effect. What keeps the process in its region is rare
// and goes first.
func rankOf(f Effect) Rank {
	switch f := f.(type) {
	case ReadRows:
		return f.Rank
	case OpenRow:
		return f.Rank
	case BeginSync:
		return f.Rank
	case SendSync:
		return f.Rank
	case InstallStates:
		return f.Rank
	case ReturnTokens, CloseLease, TouchBudgets, AskUsed:
		return Routine
	}
	return MoreTokens
}

// Event is something that happened.
type Event interface{ event() }

// The effects on the store, the ledger and the deciding side.
type (
	// ListBudgets asks what changed; answered by Listed.
	ListBudgets struct{ Since uint64 }
	// ReadRows views rows; answered by RowsRead.
	ReadRows struct {
		Budgets []string
		Rank    Rank
	}
	// OpenRow makes a row or new incarnations; answered by RowOpened.
	OpenRow struct {
		Request regionstore.OpenRequest
		Rank    Rank
	}
	// BeginSync writes what is to be sent; answered by SyncBegun.
	BeginSync struct {
		Request regionstore.BeginRequest
		Rank    Rank
	}
	// SendSync sends a batch; answered by SyncDone with the same ID.
	SendSync struct {
		ID      uint64
		Items   []lease.Item
		Timeout time.Duration
		Rank    Rank
	}
	// InstallStates applies answers; answered by StatesInstalled.
	InstallStates struct {
		Budget string
		States []lease.State
		Rank   Rank
	}
	// ReturnTokens takes tokens out of a lump; answered by RowChanged.
	ReturnTokens struct{ Request regionstore.ReturnRequest }
	// CloseLease fences a lease; answered by RowChanged.
	CloseLease struct{ Request regionstore.CloseRequest }
	// TouchBudgets says which budgets are in use; not answered.
	TouchBudgets struct {
		Budgets []string
		TTL     time.Duration
	}
	// ListInUse asks which budgets the region uses; answered by InUse.
	ListInUse struct{}
	// ListDisused asks which it used until at most so long ago; answered by
	// Disused.
	ListDisused struct{ Within time.Duration }
	// Lead asks for the region's lock; answered by Led.
	Lead struct{ TTL time.Duration }
	// Unlead gives it up; not answered.
	Unlead struct{}
	// Join says that the process lives; not answered.
	Join struct{ TTL time.Duration }
	// Leave says that it ends; answered by Left.
	Leave struct{}
	// AskUsed asks the deciding side which budgets it uses; answered by Used.
	AskUsed struct{}
	// SetBudgets gives the deciding side its budgets; not answered.
	SetBudgets struct{ Budgets []*terms }
	// Tell gives the deciding side a hint; not answered.
	Tell struct {
		Budget  string
		Hint    Hint
		Arrived bool
	}
	// Stopped says that nothing more is to come; not answered.
	Stopped struct{}
)

// The events. What they point to is the Keeper's from then on.
type (
	// Tick says that the wake time has come.
	Tick struct{}
	// Listed answers ListBudgets.
	Listed struct {
		List policy.List
		Err  error
	}
	// RowsRead answers ReadRows, in its order.
	RowsRead struct {
		Budgets []string
		Views   []regionstore.View
		Err     error
	}
	// RowOpened answers OpenRow.
	RowOpened struct {
		Budget string
		Reply  *regionstore.OpenReply
		Err    error
	}
	// SyncBegun answers BeginSync.
	SyncBegun struct {
		Budget string
		Reply  *regionstore.BeginReply
		Err    error
	}
	// SyncDone answers SendSync. Took is the round trip.
	SyncDone struct {
		ID    uint64
		Reply lease.SyncReply
		Took  time.Duration
		Err   error
	}
	// StatesInstalled answers InstallStates.
	StatesInstalled struct {
		Budget string
		Reply  *regionstore.InstallReply
		Err    error
	}
	// RowChanged answers ReturnTokens and CloseLease.
	RowChanged struct {
		Budget string
		View   *regionstore.View
		Err    error
	}
	// InUse answers ListInUse.
	InUse struct {
		Budgets []string
		Err     error
	}
	// Disused answers ListDisused.
	Disused struct {
		Budgets []string
		Err     error
	}
	// Led answers Lead.
	Led struct {
		OK  bool
		Err error
	}
	// Left answers Leave with how many processes are left.
	Left struct {
		Processes int
		Err       error
	}
	// Used answers AskUsed: the budgets that decisions of this process touched,
	// and its cumulative admissions without a lease.
	Used struct {
		Budgets []string
		Locals  map[string]lease.Tokens
	}
	// Stopping says that this process ends.
	Stopping struct{}
)

func (ListBudgets) effect()   {}
func (ReadRows) effect()      {}
func (OpenRow) effect()       {}
func (BeginSync) effect()     {}
func (SendSync) effect()      {}
func (InstallStates) effect() {}
func (ReturnTokens) effect()  {}
func (CloseLease) effect()    {}
func (TouchBudgets) effect()  {}
func (ListInUse) effect()     {}
func (ListDisused) effect()   {}
func (Lead) effect()          {}
func (Unlead) effect()        {}
func (Join) effect()          {}
func (Leave) effect()         {}
func (AskUsed) effect()       {}
func (SetBudgets) effect()    {}
func (Tell) effect()          {}
func (Stopped) effect()       {}

func (Tick) event()            {}
func (Listed) event()          {}
func (RowsRead) event()        {}
func (RowOpened) event()       {}
func (SyncBegun) event()       {}
func (SyncDone) event()        {}
func (StatesInstalled) event() {}
func (RowChanged) event()      {}
func (InUse) event()           {}
func (Disused) event()         {}
func (Led) event()             {}
func (Left) event()            {}
func (Used) event()            {}
func (Urgent) event()          {}
func (Stopping) event()        {}
