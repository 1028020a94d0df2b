package proof_test

import (
	"context"
	"flag"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/sim"
)

var (
	oneSeed  = flag.Int64("seed", -1, "play one random run")
	runs     = flag.Int("runs", 2000, "random runs that the suite plays")
	soakFor  = flag.Duration("soak", 0, "play random runs for so long")
	soakFrom = flag.Uint64("from", 1_000_000, "the first seed of a soak")
)

// workers is how many runs are played at once: two cores are what the suite
// is measured on.
const workers = 2

// TestRandomRuns plays random deployments: over-admission within every window,
// and over the run's whole life, stays within the bound of what the schedule
// declares; the protocol's invariants hold after every step; every token above
// a contract has one cause, and one that is declared; and the rare paths of
// the code were all reached.
//
// Seen to catch: each rule named in internal/mutant broken (mutants_test.go), drift left
// out of the bound, suspensions not declared.
func TestRandomRuns(t *testing.T) {
	if *oneSeed >= 0 {
		r, wrong := play(uint64(*oneSeed))
		explain(t, uint64(*oneSeed), r)
		if len(wrong) > 0 {
			t.Errorf("seed %d:\n%s", *oneSeed, strings.Join(wrong, "\n"))
		}
		return
	}
	var reached coverage
	var played, beyond, events atomic.Int64
	start := time.Now()
	inParallel(func(seed uint64) bool { return seed < uint64(*runs) }, func(seed uint64) {
		r, wrong := play(seed)
		if len(wrong) > 0 {
			t.Errorf("seed %d fails; go test ./sim/proof -run TestRandomRuns -seed %d -v\n%s", seed, seed, strings.Join(wrong, "\n"))
		}
		reached.add(r)
		played.Add(1)
		events.Add(r.Events)
		for i := range r.Budgets {
			if r.Budgets[i].NonConforming > 0 {
				beyond.Add(1)
			}
		}
	})
	t.Logf("%d random runs, %d budgets above their contract for a declared cause, %d events, %v",
		played.Load(), beyond.Load(), events.Load(), time.Since(start).Round(time.Second))
	if *runs >= 2000 {
		for _, line := range reached.missing() {
			t.Error(line)
		}
	}
	t.Log(reached.String())
}

// TestSoak plays random runs for as long as asked, and prints the seeds that
// fail.
func TestSoak(t *testing.T) {
	if *soakFor == 0 {
		t.Log("plays for as long as -soak says: make soak TIME=10m")
		return
	}
	end := time.Now().Add(*soakFor)
	var played, failed atomic.Int64
	inParallel(func(uint64) bool { return time.Now().Before(end) }, func(n uint64) {
		seed := *soakFrom + n
		if _, wrong := play(seed); len(wrong) > 0 {
			failed.Add(1)
			t.Errorf("seed %d fails; go test ./sim/proof -run TestRandomRuns -seed %d -v\n%s", seed, seed, strings.Join(wrong, "\n"))
		}
		if k := played.Add(1); k%1000 == 0 {
			fmt.Printf("%d runs, %d failed, seed %d\n", k, failed.Load(), seed)
		}
	})
	t.Logf("%d random runs from seed %d, %d failed", played.Load(), *soakFrom, failed.Load())
}

// inParallel works through the numbers from 0 while more of them are wanted.
func inParallel(wanted func(uint64) bool, do func(uint64)) {
	var next atomic.Uint64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for {
				n := next.Add(1) - 1
				if !wanted(n) {
					return
				}
				do(n)
			}
		})
	}
	all.Wait()
}

// play plays the run of a seed and says what is wrong with it.
func play(seed uint64) (*sim.Result, []string) { return judge(random(seed)) }

// judge plays a run and says what is wrong with it.
func judge(o sim.Options) (*sim.Result, []string) {
	r, err := sim.Run(context.Background(), o)
	if err != nil {
		return &sim.Result{}, []string{err.Error()}
	}
	var wrong []string
	for _, v := range r.Found {
		wrong = append(wrong, fmt.Sprintf("at %v: %s %s: %s", v.At, v.Invariant, v.Budget, v.Detail))
	}
	for i := range r.Budgets {
		wrong = append(wrong, unattributed(&o, &r.Budgets[i])...)
	}
	return r, wrong
}

// unattributed says which tokens above a contract have no cause, more than
// one, or one that the run does not declare.
func unattributed(o *sim.Options, b *sim.BudgetResult) (wrong []string) {
	var sum lease.Tokens
	for _, c := range b.Causes {
		sum += c.Tokens
		if c.Tokens > 0 && !declaredCause(o, b.Name, c.Name) {
			wrong = append(wrong, fmt.Sprintf("%s: %d tokens for %s, which is not declared", b.Name, c.Tokens, c.Name))
		}
	}
	if sum != b.NonConforming {
		wrong = append(wrong, fmt.Sprintf("%s: causes sum to %d, %d tokens were above the contract", b.Name, sum, b.NonConforming))
	}
	return wrong
}

func explain(t *testing.T, seed uint64, r *sim.Result) {
	o := random(seed)
	t.Logf("%v, declared %+v\ntopology %+v", o.Length, declared(&o), o.Topology)
	for _, b := range o.Budgets {
		t.Logf("budget %+v", b)
	}
	for _, c := range o.Changes {
		t.Logf("change %+v", c)
	}
	for _, w := range o.Workloads {
		t.Logf("load %s %v all %v cost %+v: %T%+v", w.Region, w.Budgets, w.All, w.Cost, w.Pattern, w.Pattern)
	}
	for _, f := range o.Faults {
		t.Logf("fault %+v", f)
	}
	for _, b := range r.Budgets {
		t.Logf("%s: admitted %d of %d, over %+v any %+v lifetime %d/%d causes %v", b.Name, b.Admitted, b.Offered, b.Over, b.Any, b.Lifetime, b.LifetimeBound, b.Causes)
	}
}
