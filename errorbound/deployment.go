package errorbound

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Deployment declares what bounds rest on: the faults a deployment may have,
// and how large they may be. A fault that is not declared is taken not to
// happen, and its cause says so.
type Deployment struct {
	policy.Deployment

	// Regions counts the regions of budgets that name none; 0 takes 3.
	Regions int
	// AgentsPerRegion is the most agent processes a region has at any time; 0
	// takes 8, the agents' own default. It must not exceed what agents are told
	// their region may have.
	AgentsPerRegion int
	// Prefetch is the most tokens of one budget that one process holds; 0 takes
	// the agent's own rule: an eighth of what the wallet may hold, nothing for
	// contracts below 100 tokens. Decisions over several store slots, or of which
	// one budget asks the local allowance while others have their tokens, put their
	// costs aside beside that while they are under way: of shares, processes never
	// have more than lease.PrefetchLimit of the cap, of lumps what there is. Where
	// machines are suspended, declare it with the largest such costs.
	Prefetch lease.Tokens
	// Suspended is the most processes whose machines stand still, their clocks
	// with them, and go on within one window or less than
	// lease.LongestProcessDeadline before it; 0 for none.
	Suspended int

	// Unfenced says that stores forbid INFO in scripts, so that a wallet that
	// comes back old, from a lagging replica or a snapshot, can go unnoticed.
	// StoreLag is how old it may be; SpendRate the fastest that tokens leave one
	// region's wallet, spent or returned (zero for unknown); Failovers how many
	// such losses one window may touch, 0 taking one per region.
	Unfenced  bool
	StoreLag  time.Duration
	SpendRate lease.Rate
	Failovers int

	// LedgerStep is the largest forward step of the database's clock that no
	// replica sees, once in a window: at most 3 s, before the only replica
	// starts. StoreStep is the largest of one store's clock that no agent sees,
	// once in a window. Agents take 50 ms and more for a step. But one who saw
	// the clock before it was stepped back, and again after it was set right, saw
	// nothing: where stores' clocks are stepped back and forth, it is those 50 ms
	// and Clocks.BackStep.
	LedgerStep, StoreStep time.Duration
	// CalendarStep is the largest forward step of the database's clock, seen or
	// not, as at a fail-over to a server whose clock is ahead. Only quotas mind:
	// their windows follow the clock as it stands.
	CalendarStep time.Duration

	// AsyncLedger says that a fail-over of the database may lose commits that
	// were answered, once in the life of a lease.
	AsyncLedger bool

	// RTT is the farthest region's round trip to the allocator; 0 takes 100 ms.
	RTT time.Duration
	// Outage is the longest that the allocator may be away, for what it costs;
	// safety does not depend on it.
	Outage time.Duration
}

// DefaultDeployment declares the default clocks and no other fault.
func DefaultDeployment() Deployment {
	return Deployment{Deployment: policy.DefaultDeployment()}.withDefaults()
}

func (d Deployment) withDefaults() Deployment {
	if d.Clocks == (lease.Clocks{}) {
		d.Clocks = lease.DefaultClocks()
	}
	if d.Regions == 0 {
		d.Regions = 3
	}
	if d.AgentsPerRegion == 0 {
		d.AgentsPerRegion = 8
	}
	if d.RTT == 0 {
		d.RTT = 100 * time.Millisecond
	}
	return d
}

// Bounds of a Deployment.
const (
	maxAgents   = 1_000_000
	longestTime = 366 * 24 * time.Hour
)

// Validate returns the first field that is out of bounds, as a *lease.Error
// of code Invalid.
func (d Deployment) Validate() error {
	counts := []struct {
		field string
		n     int64
		most  int64
	}{
		{"clocks.drift_ppm", d.Clocks.DriftPPM, 500_000},
		{"regions", int64(d.Regions), policy.MaxRegions},
		{"agents_per_region", int64(d.AgentsPerRegion), maxAgents},
		{"prefetch", int64(d.Prefetch), int64(lease.MaxTokens)},
		{"suspended", int64(d.Suspended), maxAgents * policy.MaxRegions},
		{"failovers", int64(d.Failovers), maxAgents},
		{"spend_rate", int64(d.SpendRate.Tokens), int64(lease.MaxTokens)},
	}
	for _, c := range counts {
		if c.n < 0 || c.n > c.most {
			return lease.Errorf(lease.Invalid, c.field, "is %d, must be 0 to %d", c.n, c.most)
		}
	}
	times := []struct {
		field string
		d     time.Duration
	}{
		{"clocks.back_step", d.Clocks.BackStep},
		{"clocks.quantum", d.Clocks.Quantum},
		{"store_isolation", d.StoreIsolation},
		{"store_outage", d.StoreOutage},
		{"store_lag", d.StoreLag},
		{"ledger_step", d.LedgerStep},
		{"store_step", d.StoreStep},
		{"calendar_step", d.CalendarStep},
		{"rtt", d.RTT},
		{"outage", d.Outage},
	}
	for _, t := range times {
		if err := checkTime(t.field, t.d, 0); err != nil {
			return err
		}
	}
	if d.SpendRate.Tokens > 0 && (d.SpendRate.Per < time.Microsecond || d.SpendRate.Per > lease.MaxPeriod) {
		return lease.Errorf(lease.Invalid, "spend_rate", "has a period of %v, must be 1us to 31d", d.SpendRate.Per)
	}
	return nil
}

func checkTime(field string, d, least time.Duration) error {
	switch {
	case d < least || d > longestTime:
		return lease.Errorf(lease.Invalid, field, "is %v, must be %s to %s", d, policy.FormatDuration(least), policy.FormatDuration(longestTime))
	case d%time.Microsecond != 0:
		return lease.Errorf(lease.Invalid, field, "is %v, must be whole microseconds", d)
	}
	return nil
}
