package allocation

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Planner says what each region should hold of the pool p of s. It is pure
// and may be wrong in any way: the ledger grants of it what fits.
type Planner func(s *State, p *Pool, now lease.Time) []Target

// Config is what the pure steps need to know about the deployment.
type Config struct {
	// Clocks bounds the deployment's clock errors; the zero value takes
	// lease.DefaultClocks.
	Clocks lease.Clocks
	// KeepEnded is how long the row of an ended lease stays, so that late
	// repetitions of its requests still find their answer; 0 takes 24 h, which
	// is also what State.NextDue assumes. The row of a quota's lease stays for
	// its window at least. Of each region and kind, only the latest few are kept.
	KeepEnded time.Duration
	// Silence is how long a region, or a counter of local admissions, is
	// remembered after it was last heard of; 0 takes 24 h.
	Silence time.Duration
	// Planner overrides Plan, for tests.
	Planner Planner
}

func (c Config) withDefaults() Config {
	if c.Clocks == (lease.Clocks{}) {
		c.Clocks = lease.DefaultClocks()
	}
	if c.KeepEnded == 0 {
		c.KeepEnded = 24 * time.Hour
	}
	if c.Silence == 0 {
		c.Silence = 24 * time.Hour
	}
	return c
}
