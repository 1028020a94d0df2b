package storetest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ration-dev/ration/regionstore/storetest"
)

// A transcript must reach what it is for: a generator that names nothing real
// would make every comparison pass.
func TestTranscriptsReachEveryOutcome(t *testing.T) {
	seen := make(map[string]int)
	for seed := range uint64(20) {
		s := storetest.Memory(storetest.Config())
		for _, op := range storetest.Generate(rand.New(rand.NewPCG(seed, 1)), 300) {
			count(seen, op, op.Apply(s))
		}
	}
	for _, want := range reached {
		if seen[want] < 5 {
			t.Errorf("%s: reached %d times in 6000 ops", want, seen[want])
		}
	}
	t.Log(seen)
}

// The same seed gives the same transcript, and a transcript the same answers.
func TestTranscriptsRepeat(t *testing.T) {
	one := storetest.Generate(rand.New(rand.NewPCG(7, 7)), 400)
	two := storetest.Generate(rand.New(rand.NewPCG(7, 7)), 400)
	for i := range one {
		if one[i].String() != two[i].String() {
			t.Fatalf("op %d: %v, then %v", i, one[i], two[i])
		}
	}
	a, b := storetest.Memory(storetest.Config()), storetest.Memory(storetest.Config())
	if diff := storetest.Compare(one, a, b); diff != "" {
		t.Fatal(diff)
	}
}
