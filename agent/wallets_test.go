package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

// The first wallets by name are told apart, the others summed, and what nothing is
// alive of is left out. Caught: names before the last of the first summed, and sums
// without what a cut took out.
func TestWalletsAreTheFirstByName(t *testing.T) {
	const held = 1000
	k := &Keeper{now: time.Minute, wards: map[string]*ward{}}
	for i := range held {
		w := &ward{}
		w.livesUntil[i%lease.Kinds], w.held[i%lease.Kinds] = time.Hour, 1
		k.wards[fmt.Sprintf("b%04d", i)] = w
		k.wards[fmt.Sprintf("a%04d", i)] = &ward{held: [lease.Kinds]lease.Tokens{1, 1, 1}, livesUntil: [lease.Kinds]time.Duration{time.Minute}}
	}
	for _, most := range []int{0, 1, 2, 7, 100, held - 1, held, 2 * held} {
		first, others := k.wallets(most)
		if want := min(most, held); len(first) != want {
			t.Fatalf("%d wallets, want %d", len(first), want)
		}
		sum := lease.Tokens(0)
		for i, w := range append(first, others) {
			if i < len(first) && (w.Budget != fmt.Sprintf("b%04d", i) || !w.Alive[i%lease.Kinds] || w.Live[i%lease.Kinds] != 1) {
				t.Errorf("of %d, wallet %d is %+v", most, i, w)
			}
			for kind := range w.Live {
				sum += w.Live[kind]
			}
		}
		if sum != held {
			t.Errorf("of %d, and the others %+v: %d tokens together, want %d", most, others, sum, held)
		}
	}
}
