package lease

import "time"

// Clocks declares how wrong the deployment's clocks may be. The safety of
// every deadline rests on these bounds and on nothing else about time.
type Clocks struct {
	// DriftPPM bounds how much faster or slower than true time any clock runs,
	// in parts per million; at most 500000.
	DriftPPM int64
	// BackStep is the largest backward step of a store's clock.
	BackStep time.Duration
	// Quantum is the coarsest timer in the path.
	Quantum time.Duration
}

// DefaultClocks returns a drift of 1e-3, a backward step of 250 ms, and a
// quantum of 5 ms.
func DefaultClocks() Clocks {
	return Clocks{DriftPPM: 1000, BackStep: 250 * time.Millisecond, Quantum: 5 * time.Millisecond}
}

// Guard returns how long after a lease's deadline, as the region counts it
// from before it asked, the ledger must wait before it takes the lease back:
// (ttl + BackStep)·((1+rho)/(1-rho) - 1) + BackStep + Quantum, rounded up. The
// time lived through twice after a backward step drifts too. Network delay needs no term: it only
// shortens the usable time.
func (c Clocks) Guard(ttl time.Duration) time.Duration {
	us := int64((ttl + c.BackStep) / time.Microsecond)
	den := 1_000_000 - c.DriftPPM
	drift := (us*2*c.DriftPPM + den - 1) / den
	return time.Duration(drift+1)*time.Microsecond + c.BackStep + c.Quantum
}

// Stretch returns the most that a clock of this deployment can show while d
// passes on another: d·(1+rho), rounded up.
func (c Clocks) Stretch(d time.Duration) time.Duration {
	us := int64(d / time.Microsecond)
	return time.Duration(us+(us/1_000_000+1)*c.DriftPPM) * time.Microsecond
}

// ProcessDeadline is how long a process holds prefetched tokens, on its own
// monotonic clock from before it asked for them, unless it asks for longer;
// LongestProcessDeadline is the longest that it is given. Whoever waits for the
// tokens of processes that were killed or lost waits for the longest.
const (
	ProcessDeadline        = 2 * time.Second
	LongestProcessDeadline = 16 * time.Second
)

// Tick is the unit that clocks are read in, rounded down.
const Tick = time.Microsecond

// PrefetchLimit is the most of a share's cap beta that processes may hold in
// their memory at any one time. The store enforces it and the ledger relies
// on it when it grants a share anew after a store was lost: only that much of
// the old one can still be spent.
func PrefetchLimit(beta Tokens) Tokens { return beta / 4 }
