package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// The ledger takes what a reserve mints off what a region asks for. A region that
// asked for a fifth less of all its demand would lose more than a fifth of its
// paced share, and all of it where its demand is little above its reserve.
func TestOnlyWhatIsBesideTheReserveIsAskedForLess(t *testing.T) {
	for _, c := range []struct {
		reserve    lease.Tokens
		held, keep lease.Tokens
		want       float64
	}{
		{held: 70, keep: 60, want: 120},
		{held: 60, keep: 60, want: 150},
		{held: 70, keep: lease.MaxTokens, want: 150},
		{held: 70, want: 150}, // nothing heard yet
		{reserve: 100, held: 70, keep: 60, want: 140},
		{reserve: 150, held: 70, keep: 60, want: 150},
		{reserve: 500, held: 70, keep: 60, want: 150},
	} {
		w := ward{keepPaced: partOf(c.keep, 100), demand: demand{rate: 150}, round: &round{view: &regionstore.View{}}}
		w.held[lease.Paced-1] = c.held
		w.lease(lease.Paced).Beta = 100
		w.livesUntil[lease.Paced-1] = time.Second
		if c.reserve > 0 {
			w.livesUntil[lease.Reserve-1] = time.Second
			w.lease(lease.Reserve).X = lease.Rate{Tokens: c.reserve, Per: time.Second}
		}
		if got := w.asked(); got != c.want {
			t.Errorf("reserve %d, %d held of %d: asks for %g of 150, want %g", c.reserve, c.held, c.keep, got, c.want)
		}
	}
}
