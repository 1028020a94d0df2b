package allocation

import (
	"sync/atomic"

	"github.com/ration-dev/ration/lease"
)

// Codes is one more than the largest lease.Code; Stats.Items is indexed by it.
const Codes = int(lease.Internal) + 1

// Stats counts what passed through one process. All counters only rise. Safe
// for concurrent use; the zero value is ready.
type Stats struct {
	// Items counts answered items by the code of their error; index 0 has those
	// without one.
	Items [Codes]atomic.Uint64
	// Commits counts transactions that committed, Batched the items in them,
	// and Largest is the largest batch so far.
	Commits, Batched, Largest atomic.Uint64
	// UnknownCommits counts transactions whose outcome is unknown, Failed those
	// that certainly did not commit.
	UnknownCommits, Failed atomic.Uint64
	// Reruns counts steps that a store ran again, for a retried transaction or
	// one from which a panicking item was taken out.
	Reruns atomic.Uint64
	// Panics counts recovered panics.
	Panics atomic.Uint64
	// Holds counts items held by the long poll, Evaluations how often they were
	// tried, and Woken those that ended with enough.
	Holds, Evaluations, Woken atomic.Uint64
	// Expired counts leases that ended by their deadline, WrittenOff the tokens
	// that were lost with them.
	Expired, WrittenOff atomic.Uint64
	// Swept counts budgets swept.
	Swept atomic.Uint64
}

func (s *Stats) countItem(err *lease.Error) {
	code := 0
	if err != nil && int(err.Code) < Codes {
		code = int(err.Code)
	}
	s.Items[code].Add(1)
}

func (s *Stats) countBatch(n int) {
	s.Commits.Add(1)
	s.Batched.Add(uint64(n))
	for {
		largest := s.Largest.Load()
		if uint64(n) <= largest || s.Largest.CompareAndSwap(largest, uint64(n)) {
			return
		}
	}
}
