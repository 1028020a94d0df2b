package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Options is everything that a run depends on.
type Options struct {
	Seed uint64
	// Length is the simulated time, above 0.
	Length time.Duration
	// Warmup is how long the tallies, denials and calls are not yet counted;
	// over-admission always is.
	Warmup time.Duration
	// Epoch is the true time at the start, for calendar windows; 0 takes
	// 2027-01-15 08:00 UTC.
	Epoch    lease.Time
	Topology Topology
	// Budgets are as their owners write them; the ledger normalizes them. A
	// budget without regions gets those of the topology where its strategy
	// needs them.
	Budgets []policy.Budget
	// Changes are made to the budgets on the way.
	Changes   []Change
	Workloads []Workload
	Faults    []Fault
	Strategy  Strategy
	// WriteBack is s of the yardstick CountLocally; 0 takes 1 s.
	WriteBack time.Duration

	// Bulk makes requests arrive in steps of this length, 0 one by one.
	Bulk time.Duration
	// RandomAgents gives each request to a random agent of its region, else
	// they take turns.
	RandomAgents bool
	// SyncEvery is the Keeper's pace; 0 takes its default, 100 ms.
	SyncEvery time.Duration
	// Agent settings; 0 takes the agent's default.
	MaxAgents    int
	StoreTimeout time.Duration

	// Windows are the W in which over-admission is measured.
	Windows []time.Duration
	// Bounds by budget name; what is not there is not compared.
	Bounds map[string]Bound
	Check  Checks
	// StopAtViolation ends the run at the first violation.
	StopAtViolation bool
	// Points is the length of each time series; 0 for none.
	Points int
	// Progress is told the simulated time about a hundred times; may be nil.
	Progress func(done time.Duration)
}

// Change is a change of budgets at a time.
type Change struct {
	At     time.Duration
	Apply  []policy.Budget
	Delete []string
}

// Bound is what a budget promises. Both functions give tokens above
// burst + rate times time (above N in a quota's window).
type Bound struct {
	// Window bounds every window of length w, over which the contract does not
	// change.
	Window func(w time.Duration) lease.Tokens
	// Lifetime bounds the first t of the run; nil compares nothing. A quota has
	// none: it may exceed each of its windows.
	Lifetime func(t time.Duration) lease.Tokens
}

// Strategy is how the budgets are played.
type Strategy string

// The strategies: AsWritten leaves each budget its own; the next three give
// all budgets that strategy; the last two are yardsticks without leases.
const (
	AsWritten   Strategy = ""
	Static      Strategy = "static"
	Independent Strategy = "independent"
	Dynamic     Strategy = "dynamic"
	// Central is one bucket that every region reaches in no time.
	Central Strategy = "central"
	// CountLocally lets each region count in a bucket of its own, and exchange
	// the counts every Options.WriteBack, with the network's delay. Debt is
	// forgotten at each exchange, as such designs do.
	CountLocally Strategy = "count_locally"
)

// Strategies lists those to put side by side.
func Strategies() []Strategy {
	return []Strategy{Static, Independent, Dynamic, Central, CountLocally}
}

// Checks says how closely invariants are watched.
type Checks uint8

const (
	// CheckAll proves every ledger write and, after every event that touched a
	// budget, invariant 10.
	CheckAll Checks = iota
	// CheckSome does so at one in a hundred.
	CheckSome
	// CheckNone only measures.
	CheckNone
)
