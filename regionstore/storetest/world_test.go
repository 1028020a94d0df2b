package storetest_test

import (
	"math/rand/v2"
	"testing"

	"github.com/ration-dev/ration/regionstore/storetest"
)

func TestWorldOnMemory(t *testing.T) {
	for seed := range uint64(300) {
		w := storetest.NewWorld(storetest.Memory(storetest.Config()), rand.New(rand.NewPCG(seed, 2)).IntN)
		if err := w.Run(400); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}
