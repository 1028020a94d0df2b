//go:build mutants

package storetest_test

import (
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/regionstore/storetest"
)

// The rules named in internal/mutant that stand in the wallet's step, each with the
// invariants that may be the first to see it broken.
var walletMutants = []struct {
	name   string
	mutant mutant.Mutant
	seenBy []int
}{
	{"anchor at the reply", mutant.AnchorAtReply, []int{10}},
	{"anchor moved on retry", mutant.AnchorMovedOnRetry, []int{10}},
	{"deadline extended at send", mutant.ExtendedAtSend, []int{10}},
	{"a reply of another sequence extends", mutant.OtherSequenceExtends, []int{10}},
	{"install adds", mutant.InstallAdds, []int{10}},
	{"install without the incarnation", mutant.InstallAnyIncarnation, []int{10}},
	{"install creates a missing row", mutant.InstallCreatesRow, []int{7, 10}},
	{"returned reported before it is out of the wallet", mutant.ReturnReportedFirst, []int{10}},
	{"used counts what was only taken", mutant.UsedCountsTaken, []int{5, 10}},
	{"close not fenced", mutant.CloseNotFenced, []int{10}},
	{"no replication id check", mutant.NoReplicationID, []int{7, 10}},
	{"use or give back repeated", mutant.UseRepeated, []int{10}},
	{"use or give back on a new row", mutant.UseOnNewRow, []int{10}},
	{"minting from the anchor", mutant.MintFromAnchor, []int{6}},
	{"not_after from the stepped clock", mutant.NotAfterStepped, []int{6, 9}},
	{"n0 added by a repeated install", mutant.InitialAddedAgain, []int{6}},
}

func TestMutantsDie(t *testing.T) {
	for _, m := range walletMutants {
		t.Run(m.name, func(t *testing.T) {
			defer mutant.Enable(m.mutant)()
			by := make(map[int]int)
			for seed := range uint64(3000) {
				w := storetest.NewWorld(storetest.Memory(storetest.Config()), rand.New(rand.NewPCG(seed, 3)).IntN)
				err := w.Run(300)
				if err == nil {
					continue
				}
				var v *storetest.Violation
				if !errors.As(err, &v) {
					t.Fatal(err)
				}
				if by[v.Invariant]++; by[m.seenBy[0]] > 0 {
					t.Logf("seed %d: %v", seed, err)
					return
				}
			}
			t.Errorf("survived, or seen only by %v", by)
		})
	}
}
