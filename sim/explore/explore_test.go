package explore_test

import (
	"reflect"
	"testing"

	"github.com/ration-dev/ration/sim/explore"
)

// Every state that each small configuration can reach keeps every invariant.
//
// Seen to catch, beside each of the mutants: a grant of a share that stayed on
// its row though its answer was superseded, and came with a later one after
// the pool had minted as much again ("paced, heard while held", 13 steps).
func TestEveryReachableState(t *testing.T) {
	states := 0
	for _, c := range explore.Small() {
		r := explore.Run(c, explore.Options{States: 2_000_000, Workers: 2})
		t.Log(r)
		states += r.States
		if r.Broken != nil {
			t.Errorf("%s: %v", c.Name, r.Broken)
		}
		if !r.Exhaustive {
			t.Errorf("%s: not all states were visited", c.Name)
		}
	}
	t.Logf("%d states in all", states)
}

// What a search finds does not depend on how many goroutines search. Seen to
// fail when finds are entered as workers come to them.
func TestWorkersMakeNoDifference(t *testing.T) {
	c := explore.Named("lump, an old copy")
	one, three := explore.Run(c, explore.Options{}), explore.Run(c, explore.Options{Workers: 3})
	one.Took, three.Took = 0, 0
	if !reflect.DeepEqual(one, three) {
		t.Errorf("one worker: %v\nthree: %v", one, three)
	}
}
