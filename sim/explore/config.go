package explore

import (
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// tick is the unit of time of all models.
const tick = time.Second

// region is the name of the modelled region.
const region = "a"

// Config is one small deployment and what may happen in it. The zero value of
// every field but Budgets, Kinds, Plans, Begins, Seqs and Lives leaves
// something out.
type Config struct {
	Name string
	// Budgets are the contracts that may be in force; the first is at the start.
	// All have one TTL unit: whole ticks.
	Budgets []policy.Budget
	// Kinds are the leases that the region may hold.
	Kinds []lease.Kind
	// Plans are what the planner may come to at any delivery, right or wrong.
	Plans []allocation.Target
	// Begins are the intents, for one or more kinds at once, that an agent may
	// have. Incarnations are filled in.
	Begins [][]regionstore.Intent
	// Drift is how many ticks one clock may fall behind another.
	Drift int
	// Seqs bounds the sequences per incarnation, Lives the incarnations per kind.
	Seqs, Lives int
	// Processes hold prefetched tokens, up to Prefetch per take. With Late the
	// reply of a take may come any time after it.
	Processes int
	Prefetch  lease.Tokens
	Late      bool
	// Hold makes takes hold their cost in place of a prefetch beside it.
	Hold bool
	// Faults of the store, as many as Crashes.
	Crashes int
	Faults  []Fault
	// Steps is how often the store's clock may be stepped: forward, by two
	// ticks, or back, by one. Each process then keeps its own bound on the clock.
	Steps int
	// Changes is how often another budget may be put in force.
	Changes int
	// Locals is how many tokens the region may admit without a lease.
	Locals int
	// Listen lets requests be heard without being processed, Close and Return
	// let leases be closed and tokens be returned.
	Listen, Close, Return bool
	// World lets the rest of the world spend from the pool.
	World bool
	// Fast lets the region's clocks tick while the ledger's stands.
	Fast bool
	// Lazy leaves minting, aging and sweeping to the steps that need them, in
	// place of doing them at each tick.
	Lazy bool
	// Ticks bounds time; 0 does not.
	Ticks int
	// Rounding is how many tokens of a window are due to rounding: 1 where the
	// rate is divided, else 0.
	Rounding lease.Tokens
}

// Fault is what may happen to a store.
type Fault uint8

// The faults.
const (
	// Restart loses everything; another life begins.
	Restart Fault = iota
	// LoseRow loses the row, as an eviction does.
	LoseRow
	// Restore puts an old copy of the row in place; another life begins.
	Restore
	// FailOver does the same on another server, while the old one goes on.
	FailOver
)

var faultNames = [...]string{"restarts empty", "loses the row", "restores an old copy", "fails over to an old copy"}

// clocks declares exactly the drift of the model.
func (c *Config) clocks() lease.Clocks {
	return lease.Clocks{BackStep: time.Duration(c.Drift)*tick - time.Microsecond}
}

func (c *Config) stores() regionstore.Config {
	return regionstore.Config{Clocks: c.clocks(), KeepMargin: time.Hour}
}

// longest is the longest ttl of any budget, in ticks.
func (c *Config) longest() int64 {
	n := time.Duration(0)
	for _, b := range c.Budgets {
		n = max(n, b.TTL, b.ShareTTL)
	}
	return int64(n / tick)
}

// rate is the highest rate of any budget, in thousandths per tick.
func (c *Config) rate() (n int64) {
	for _, b := range c.Budgets {
		if r := b.Contract.Rate; !r.Zero() {
			n = max(n, int64(r.Tokens)*thousandths*int64(tick/time.Microsecond)/int64(r.Per/time.Microsecond))
		}
	}
	return n
}

// most is the largest burst of any budget, and float the largest float.
func (c *Config) most() (burst, float int64) {
	for _, b := range c.Budgets {
		burst = max(burst, int64(b.Contract.Burst))
		float = max(float, int64(b.Float))
	}
	return burst * thousandths, float * thousandths
}

// tracked reports whether processes keep their own bound on the store's clock.
func (c *Config) tracked() bool { return c.Steps > 0 }

func (c *Config) can(f Fault) bool {
	for _, g := range c.Faults {
		if f == g {
			return true
		}
	}
	return false
}
