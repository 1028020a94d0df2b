//go:build mutants

package allocation_test

import (
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/allocation/storetest"
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Each rule of the ledger, broken on purpose, must break an invariant.
func TestMutantsDie(t *testing.T) {
	const (
		conservation = "invariant 1 "
		ceiling      = "invariant 2 "
		singleGrant  = "invariant 3 "
		noEarly      = "invariant 4 "
		onlyTime     = "invariant 6 "
		wallet       = "invariant 10 "
	)
	for _, c := range []struct {
		name   string
		broken mutant.Mutant
		// dies lists the invariants of which one must fail.
		dies []string
	}{
		{"no guard", mutant.NoGuard, []string{wallet}},
		{"a replayed sequence is granted again", mutant.ReplayGrantsAgain, []string{singleGrant, wallet, onlyTime}},
		{"an older sequence is processed", mutant.OlderSequenceProcessed, []string{singleGrant, wallet}},
		{"returned is credited per delivery", mutant.ReturnCreditedPerDelivery, []string{onlyTime}},
		{"an ended lease is revived", mutant.EndedRevived, []string{noEarly, conservation, singleGrant}},
		{"expiry credits the rest", mutant.ExpiryCredits, []string{onlyTime}},
		{"late totals are credited", mutant.LateTotalsCredited, []string{onlyTime}},
		{"the ceiling ignores outstanding", mutant.CeilingIgnoresOutstanding, []string{ceiling}},
		{"a shorter ttl brings reclaim forward", mutant.ShorterTTLReclaimsEarlier, []string{noEarly, wallet}},
		{"a share's expiry refunds", mutant.ShareExpiryRefunds, []string{onlyTime}},
		{"a share is regranted before the old one expired", mutant.RegrantedEarly, []string{singleGrant}},
		{"x above r", mutant.XAboveR, []string{ceiling}},
		{"a recall counts when sent", mutant.RecallCountedAtSend, []string{wallet}},
		{"shrinking returns tokens", mutant.ShrinkReturns, []string{onlyTime}},
	} {
		t.Run(c.name, func(t *testing.T) {
			defer mutant.Enable(c.broken)()
			said := storetest.Falsify(t, storetest.Size{Runs: 3000}, harness())
			for _, invariant := range c.dies {
				if strings.Contains(said, invariant) {
					t.Log(strings.SplitN(said, "\n", 2)[0])
					return
				}
			}
			t.Errorf("lives, or dies of something else: %.300s", said)
		})
	}
}

// harness is a memory store on a clock that only the test moves. It does not
// check by itself: the state machine is to see the fault.
func harness() storetest.Harness {
	now := lease.Time(1_800_000_000_000_000)
	h := storetest.Harness{Advance: func(d time.Duration) { now = now.Add(d) }}
	h.Store = memory.New(func() lease.Time { return now })
	return h
}
