package sim

import "time"

// Fault is one thing that goes wrong at a time. Fields that its Kind does not
// name are ignored.
type Fault struct {
	Kind Kind
	// At is when it happens, from the start of the run; For is how long it
	// lasts, where that means something; 0 for ever.
	At, For time.Duration
	// Region names a region; "" means every region.
	Region string
	// Agent is an index among the region's agents, Allocator one among the
	// allocators; -1 means all of them.
	Agent, Allocator int
	// Budget names a row of LoseRow; "" means all of them.
	Budget string
	// Lag is how old what comes back is: everything since is lost.
	Lag time.Duration
	// Isolated is how long the old primary of StoreFailover goes on serving the
	// agents with the odd indexes; 0 for not at all.
	Isolated time.Duration
	// Step and PPM change a clock.
	Step time.Duration
	PPM  int64
	// Probability is per message or call, 0 to 1; 0 means 1.
	Probability float64
	// Link replaces the links of DegradeLinks, in both directions.
	Link Link
}

// Kind is what goes wrong.
type Kind string

// The kinds. Between regions and allocators:
const (
	// CutRequests loses what agents of Region send, CutReplies what comes back,
	// Partition both.
	CutRequests Kind = "cut_requests"
	CutReplies  Kind = "cut_replies"
	Partition   Kind = "partition"
	// DegradeLinks gives the region's links the values of Link.
	DegradeLinks Kind = "degrade_links"
	// LoseReplies loses answers after their commit with Probability.
	LoseReplies Kind = "lose_replies"

	// KillAgent ends Agent without a word; a new process takes its place after
	// For. StopAgent is a clean shutdown, with the same restart.
	KillAgent Kind = "kill_agent"
	StopAgent Kind = "stop_agent"
	// PauseAgent freezes the process while its clock goes on, SuspendAgent with
	// its clock, as a suspended machine.
	PauseAgent   Kind = "pause_agent"
	SuspendAgent Kind = "suspend_agent"
	// FreezeInTake freezes the process for For in its next take, after the store
	// has taken and before the process has read its clock. What that take
	// admitted is decided when the process goes on.
	FreezeInTake Kind = "freeze_in_take"
	// FreezeInDecision freezes the process for For in its next decision that
	// tokens in its memory could answer, after its first look at the clock: it
	// takes them and finds, once it goes on, whether it is late. Calls to the
	// store that the same decision makes after that fail, their time is over.
	FreezeInDecision Kind = "freeze_in_decision"

	// KillAllocator ends Allocator, with what it holds back; PauseAllocator
	// freezes it and answers later.
	KillAllocator  Kind = "kill_allocator"
	PauseAllocator Kind = "pause_allocator"
	// DatabaseDown makes transactions fail.
	DatabaseDown Kind = "database_down"
	// UnknownCommits makes commits report an unknown outcome with Probability;
	// half of them did commit.
	UnknownCommits Kind = "unknown_commits"
	// DatabaseFailover goes on with the ledger as it was Lag ago: with 0 no
	// commit is lost. Step is how far the new primary's clock is ahead.
	DatabaseFailover Kind = "database_failover"

	// StoreRestart restarts the region's store empty. StoreRestore brings back
	// what it held Lag ago. StoreFailover promotes a replica that is Lag behind,
	// while the old primary goes on serving some for Isolated.
	StoreRestart  Kind = "store_restart"
	StoreRestore  Kind = "store_restore"
	StoreFailover Kind = "store_failover"
	// LoseRow removes Budget's row. StoreStall makes all calls fail after their
	// deadlines. StoreUnknown applies steps but loses their answers, with
	// Probability; those to takes come late half of the time.
	LoseRow      Kind = "lose_row"
	StoreStall   Kind = "store_stall"
	StoreUnknown Kind = "store_unknown"

	// The clocks of hosts: StepClock moves a wall clock by Step, DriftClock sets
	// its error to PPM (monotonic clocks drift too), for good or for For.
	StepStoreClock     Kind = "step_store_clock"
	DriftStoreClock    Kind = "drift_store_clock"
	DriftAgentClock    Kind = "drift_agent_clock"
	StepDatabaseClock  Kind = "step_database_clock"
	DriftDatabaseClock Kind = "drift_database_clock"
	DriftAllocator     Kind = "drift_allocator_clock"
)

// Kinds lists every kind, in the order of their description.
func Kinds() []Kind {
	return []Kind{
		CutRequests, CutReplies, Partition, DegradeLinks, LoseReplies,
		KillAgent, StopAgent, PauseAgent, SuspendAgent, FreezeInTake, FreezeInDecision,
		KillAllocator, PauseAllocator, DatabaseDown, UnknownCommits, DatabaseFailover,
		StoreRestart, StoreRestore, StoreFailover, LoseRow, StoreStall, StoreUnknown,
		StepStoreClock, DriftStoreClock, DriftAgentClock, StepDatabaseClock, DriftDatabaseClock, DriftAllocator,
	}
}

// SteppedBack is how far earlier ones of all have stepped back what f steps, in
// a region of f's: when it catches up, agents do not see a step that saw the
// clock before that.
func (f *Fault) SteppedBack(all []Fault) (back time.Duration) {
	for i := range all {
		e := &all[i]
		if e.Kind == f.Kind && e.At < f.At && e.Step < 0 && (e.Region == f.Region || e.Region == "" || f.Region == "") {
			back -= e.Step
		}
	}
	return back
}

// Agents is how many agents of t the fault is about.
func (f *Fault) Agents(t *Topology) (n int) {
	for i := range t.Regions {
		switch r := &t.Regions[i]; {
		case f.Region != "" && f.Region != r.Name:
		case f.Agent >= 0:
			n++
		default:
			n += max(1, r.Agents)
		}
	}
	return n
}
