package agent

import (
	"sync/atomic"
	"time"
)

const (
	outcomes = int(Unavailable) + 1
	modes    = int(FromMemory) + 1
)

// Stats counts what an agent did. All counters only rise; the zero value is
// ready, and safe for concurrent use.
type Stats struct {
	// Decisions is indexed by Outcome and Mode.
	Decisions [outcomes][modes]atomic.Int64
	// Invalid counts checks that were refused as malformed.
	Invalid atomic.Int64
	// Prefetched, GivenBack and Discarded count tokens: taken ahead, returned
	// unused, and dropped because the process was late.
	Prefetched, GivenBack, Discarded atomic.Int64
	// LateTakes counts takes whose answer came after their decision went on
	// without it, LateTokens the tokens that those used for nobody.
	LateTakes, LateTokens atomic.Int64
	// LocalStore and LocalProcess count tokens admitted without a lease.
	LocalStore, LocalProcess atomic.Int64
	// StoreErrors counts store calls of unknown outcome, BreakerOpened how often
	// the breaker opened, and BreakerRefused the calls it stopped.
	StoreErrors, BreakerOpened, BreakerRefused atomic.Int64
	// WaitersRefused counts decisions that could not wait because too many
	// others did.
	WaitersRefused atomic.Int64
	// Syncs counts items by result.
	Syncs [syncResults]atomic.Int64
	// SyncCalls counts batches sent.
	SyncCalls atomic.Int64
	// Resumed counts pending sequences of others that were sent again.
	Resumed atomic.Int64
	// Opened counts rows made, Voided those of them where one from another
	// life of the store stood, and Incarnations the leases that got a new name.
	Opened, Voided, Incarnations atomic.Int64
	// UrgentDropped counts urgent requests that found the keeper's queue full.
	UrgentDropped atomic.Int64
	// Panics counts panics that were caught.
	Panics atomic.Int64
}

// SyncResult is a metric label for one item of a Sync.
type SyncResult uint8

// The results of an item.
const (
	SyncActive     SyncResult = iota // a lease was granted, extended or told
	SyncShort                        // granted less than wanted
	SyncEnded                        // a lease had ended
	SyncNotPlanned                   // the plan holds nothing here
	SyncRefused                      // a typed error
	SyncFailed                       // outcome unknown

	syncResults = int(SyncFailed) + 1
)

func (r SyncResult) String() string {
	switch r {
	case SyncActive:
		return "active"
	case SyncShort:
		return "short"
	case SyncEnded:
		return "ended"
	case SyncNotPlanned:
		return "not_planned"
	case SyncRefused:
		return "refused"
	case SyncFailed:
		return "failed"
	}
	return "invalid"
}

// Observer sees latencies, for histograms. Its methods are called
// concurrently and must not block.
type Observer interface {
	// Decided is called once per decision.
	Decided(took time.Duration, outcome Outcome, mode Mode)
	// StoreCalled is called once per store call; step is one of a fixed set of
	// words.
	StoreCalled(took time.Duration, step string, err error)
	// Synced is called once per SyncLeases call.
	Synced(took time.Duration, items int, err error)
}

type noObserver struct{}

func (noObserver) Decided(time.Duration, Outcome, Mode)     {}
func (noObserver) StoreCalled(time.Duration, string, error) {}
func (noObserver) Synced(time.Duration, int, error)         {}
