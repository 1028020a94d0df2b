package storetest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Run is the conformance suite.
func Run(t *testing.T, newSubject Make) {
	for _, c := range []struct {
		name string
		test func(*wallet)
	}{
		{"a missing or void row answers Missing to everything", testMissing},
		{"a new life opens an empty wallet and names what was lost", testVoid},
		{"open keeps what lives and replaces what is over", testOpen},
		{"begin writes exactly what is to be sent", testBegin},
		{"begin cuts a share at once", testLower},
		{"begin closes what is past its deadline", testBeginDead},
		{"install applies only the answer to the pending sequence", testInstall},
		{"install replaces, and adds only what is new", testInstallReplaces},
		{"install of an ending", testInstallEnds},
		{"a lease stops at its deadline", testDeadline},
		{"take spends the leases in order", testOrder},
		{"take is all or none", testAllOrNone},
		{"take says when to come back", testHints},
		{"prefetch is counted, limited and settled", testPrefetch},
		{"a take says for how long it is held", testHolds},
		{"generations rotate and age", testGenerations},
		{"settle names its generation", testSettle},
		{"settlements come along with a take", testSettleAlong},
		{"a refill is a take for each", testRefill},
		{"return and close take tokens out", testReturnClose},
		{"a share mints by time alone", testMinting},
		{"the local allowance starts empty", testLocal},
		{"a request id has one answer", testRequestID},
		{"names expire", testNames},
		{"worked examples: token bucket", testVectors},
		{"worked examples: prefetch", testPrefetchVectors},
		{"worked examples: twenty callers race for five", testRace},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(newWallet(t, newSubject)) })
	}
	t.Run("invariants 5, 6, 7, 9 and 10", func(t *testing.T) { testInvariants(t, newSubject) })
	t.Run("invariant 8: denials cost nothing", func(t *testing.T) { testDenials(t, newSubject) })
	t.Run("answers as the memory store does", func(t *testing.T) { testTranscripts(t, newSubject) })
}

// reset makes a used subject as good as new.
func reset(s *Subject) {
	s.SetTime(Start)
	s.Restart(FirstLife)
	s.Save()
}

// Faults that this was seen to catch, each one changed line of a step. By
// invariant 5: age does not book what ages out of a lump; 6: applyShare adds
// st.Granted; 7: current does not compare the replication id;
// 9: Local.change fills the bucket; 10: alive does not ask for the deadline, and
// answers not for the sequence.
func testInvariants(t *testing.T, newSubject Make) {
	s := newSubject(t, Config())
	rapid.Check(t, func(rt *rapid.T) {
		reset(s)
		w := NewWorld(s, func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "pick") })
		if err := w.Run(80); err != nil {
			rt.Fatal(err)
		}
	})
	for seed := range uint64(20) {
		reset(s)
		if err := NewWorld(s, rand.New(rand.NewPCG(seed, 4)).IntN).Run(200); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// testDenials lets takes over several budgets, some of them without a wallet,
// be refused and looks at all rows before and after. Seen to catch: draw called
// for each budget that had enough, whatever the others had.
func testDenials(t *testing.T, newSubject Make) {
	s := newSubject(t, Config())
	rapid.Check(t, func(rt *rapid.T) {
		reset(s)
		w := &wallet{TB: t, s: s, at: Start}
		names := []string{"t/a", "t/b", "t/c"}
		for _, b := range names {
			if rapid.IntRange(0, 5).Draw(rt, "kind") > 0 {
				w.budget = b
				w.open()
				w.lump(lease.Tokens(rapid.IntRange(0, 6).Draw(rt, "lump")))
				w.share(lease.Paced, 0, 8, lease.Tokens(rapid.IntRange(0, 8).Draw(rt, "share")))
			}
		}
		for range 6 {
			req := regionstore.TakeRequest{Hold: rapid.Bool().Draw(rt, "hold")}
			for _, b := range names {
				req.Takes = append(req.Takes, regionstore.Take{
					Budget: b, Now: w.now(),
					Cost:     lease.Tokens(rapid.IntRange(0, 5).Draw(rt, "cost")),
					Prefetch: lease.Tokens(rapid.IntRange(0, 3).Draw(rt, "prefetch")),
				})
			}
			before := w.rows(names)
			r := must(s.Store.Take(context.Background(), req))
			after := w.rows(names)
			for i := range names {
				if !r.Took && before[i] != after[i] {
					rt.Fatalf("refused, but %s went from %+v to %+v", names[i], before[i], after[i])
				}
				if r.Took && r.Results[i].Outcome != regionstore.OK {
					rt.Fatalf("took, though %s had not enough", names[i])
				}
			}
		}
	})
}

func testTranscripts(t *testing.T, newSubject Make) {
	for seed := range uint64(10) {
		ops := Generate(rand.New(rand.NewPCG(seed, 5)), 300)
		s := newSubject(t, Config())
		if diff := Compare(ops, Memory(Config()), s); diff != "" {
			t.Fatalf("seed %d: %s", seed, diff)
		}
	}
}

func testRace(w *wallet) {
	w.open()
	w.share(lease.Paced, 0, 5, 5)
	var took atomic.Int64
	var wg sync.WaitGroup
	req := regionstore.TakeRequest{Takes: []regionstore.Take{{Budget: w.budget, Cost: 1, Now: w.now()}}}
	for range 20 {
		wg.Go(func() {
			if r, err := w.s.Store.Take(context.Background(), req); err == nil && r.Took {
				took.Add(1)
			}
		})
	}
	wg.Wait()
	if took.Load() != 5 {
		w.Errorf("%d of twenty callers got one of five tokens", took.Load())
	}
}
