package lease_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
)

// The guard: with every clock as wrong as declared, the region
// stops before the ledger reclaims. Seen to catch: rho counted once instead
// of on both clocks.
func TestGuardCoversTheWorstClocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := lease.Clocks{
			DriftPPM: rapid.Int64Range(0, 100_000).Draw(t, "ppm"),
			BackStep: time.Duration(rapid.Int64Range(0, 1_000_000).Draw(t, "back")) * time.Microsecond,
			Quantum:  time.Duration(rapid.Int64Range(0, 5_000).Draw(t, "quantum")) * time.Microsecond,
		}
		ttl := time.Duration(rapid.Int64Range(1, 3_600_000_000).Draw(t, "ttl")) * time.Microsecond
		// In true time, times a million to stay whole: the region's clock runs
		// slow and steps back once; the ledger's runs fast.
		regionStops := float64(ttl+c.BackStep) / (1 - float64(c.DriftPPM)/1e6)
		ledgerFrees := float64(ttl+c.Guard(ttl)) / (1 + float64(c.DriftPPM)/1e6)
		if ledgerFrees < regionStops {
			t.Fatalf("ttl %v: ledger frees at %v, region may stop as late as %v", ttl, ledgerFrees, regionStops)
		}
	})
}

func TestGuardFigures(t *testing.T) {
	c := lease.Clocks{DriftPPM: 1000}
	// By hand: rho 1e-3 and a ttl of 10 s need 20 ms of drift allowance.
	if g := c.Guard(10 * time.Second); g < 20*time.Millisecond || g > 21*time.Millisecond {
		t.Errorf("Guard = %v, want just above 20ms", g)
	}
	if got := lease.DefaultClocks().Stretch(time.Second); got < 1001*time.Millisecond || got > 1002*time.Millisecond {
		t.Errorf("Stretch(1s) = %v", got)
	}
}
