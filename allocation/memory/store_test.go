package memory

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation/storetest"
	"github.com/ration-dev/ration/lease"
)

// open makes a store on a clock that only the test moves.
func open(opts ...Option) storetest.Harness {
	now := lease.Time(1_800_000_000_000_000)
	h := storetest.Harness{Advance: func(d time.Duration) { now = now.Add(d) }}
	h.Store = New(func() lease.Time { return now }, opts...)
	return h
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return open() })
}

// Running every step twice shows a step that is not pure, and a store that
// hands the second run what the first one left.
func TestConformanceWithReruns(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness {
		h := open(WithReruns(1))
		h.FailNext = func() {}
		return h
	})
}

// Seen to fail when sync.go's isNew takes an equal sequence for a newer one,
// when lump.go's takeBack leaves the hold, and when expire.go's settle expires
// at the deadline.
func TestInvariants(t *testing.T) {
	storetest.Invariants(t, storetest.Size{Runs: 300}, open(WithCheck(), WithReruns(1)))
}
