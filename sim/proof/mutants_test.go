//go:build mutants

package proof_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/ration-dev/ration/internal/mutant"
)

var (
	oneMutant = flag.Int("mutant", 0, "hunt one mutant alone, by its number")
	trials    = flag.Int("trials", 3, "independent hunts for each mutant")
	mostSeeds = flag.Int("seeds", 300, "runs of a hunt at most")
)

// Each rule of the protocol, broken on purpose, must be noticed by random runs
// within a bounded number of seeds. Every kill is printed: the mutant, the
// median number of runs it lived through, and what saw it.
func TestMutantsDieInTheSimulator(t *testing.T) {
	if mutant.Count != mutant.Mutant(len(fates)+1) {
		t.Fatalf("%d mutants, fates of %d", mutant.Count-1, len(fates))
	}
	t.Logf("%-34s %-12s %s", "mutant", "median seeds", "seen by")
	for m := mutant.None + 1; m < mutant.Count; m++ {
		f := fates[m-1]
		if f.mutant != m {
			t.Fatalf("fate %d is of mutant %d", m, f.mutant)
		}
		if *oneMutant != 0 && *oneMutant != int(m) {
			continue
		}
		hunt(t, f)
	}
}

// hunt looks for a mutant in several trials.
func hunt(t *testing.T, f fate) {
	var lived []int
	saw := map[string]int{}
	for trial := range *trials {
		n, by := firstKill(f, uint64(trial)*100_000)
		if by == "" {
			t.Errorf("%s lives through %d runs", f.name, *mostSeeds)
			return
		}
		lived = append(lived, n)
		saw[by]++
	}
	slices.Sort(lived)
	t.Logf("%-34s %-12d %s", f.name, lived[len(lived)/2], fmt.Sprint(saw))
}

// firstKill plays seeds from the first on, until one fails that does not fail
// without the mutant.
func firstKill(f fate, first uint64) (seeds int, by string) {
	for i := range *mostSeeds {
		seed := first + uint64(i)
		if by = kill(f, f.mutant, seed); by == "" {
			continue
		}
		if kill(f, mutant.None, seed) == "" {
			return i + 1, by
		}
	}
	return *mostSeeds, ""
}

// kill names what is wrong with a run under a mutant.
func kill(f fate, m mutant.Mutant, seed uint64) string {
	defer mutant.Enable(m)()
	ground := f.ground
	if ground == nil {
		ground = random
	}
	o := ground(seed)
	bounds, err := promise(&o)
	if err != nil {
		panic(err)
	}
	o.Bounds, o.StopAtViolation = bounds, true
	r, wrong := judge(o)
	switch {
	case len(r.Found) > 0:
		return r.Found[0].Invariant
	case len(wrong) > 0:
		return strings.SplitN(wrong[0], ":", 2)[0]
	case f.alarms && r.Budgets[0].Alarms > 0:
		return "alarm of the ledger"
	}
	return ""
}
