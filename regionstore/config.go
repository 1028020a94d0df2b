package regionstore

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Config is what every step of a store knows about its deployment. All
// agents and stores of a region use the same. The zero value is not useful;
// start from DefaultConfig.
type Config struct {
	// Clocks bounds how wrong clocks may be; the aging of prefetched tokens
	// rests on it.
	Clocks lease.Clocks
	// KeepMargin is how long a row is kept after the last instant that anything
	// in it can matter.
	KeepMargin time.Duration
}

// DefaultConfig returns the default clocks and a margin of one hour.
func DefaultConfig() Config {
	return Config{Clocks: lease.DefaultClocks(), KeepMargin: time.Hour}
}

// MaxLag is how far a caller's NotAfter may lie behind the store's clock, which
// a slow call does, before the step takes it for a stepped clock and starts
// again from TIME as on a first call. What a step holds back for other callers
// (see mint) is at most what a share mints in this time.
const MaxLag = 50 * time.Millisecond

// never is the wait for what time alone will not bring.
const never = -time.Microsecond

// maxWait bounds every wait in a reply: 2^52 microseconds.
const maxWait = 1 << 52 * time.Microsecond

// processGuard is how long after a process's deadline the store waits before
// it believes that the process has stopped: for every hold that of the longest.
func (c Config) processGuard() time.Duration { return c.Clocks.Guard(lease.LongestProcessDeadline) }

// processSpan is how long after a take, on the store's clock, tokens may still be
// spent that were taken to be held for so long.
func (c Config) processSpan(hold time.Duration) time.Duration { return hold + c.processGuard() }
