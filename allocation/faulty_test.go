package allocation_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// faulty wraps a Store whose transactions fail in every way there is: before
// they commit, and after. Safe for concurrent use.
type faulty struct {
	allocation.Store
	mu  sync.Mutex
	rng *rand.Rand
	// odds, of 100, of failing for certain, of an unknown outcome that did not
	// commit, and of one that did.
	fails, lost, unknown int
	// failure is what a certain one says; nil for an error of no type.
	failure error
}

func (f *faulty) Update(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	f.mu.Lock()
	roll := f.rng.IntN(100)
	f.mu.Unlock()
	if roll < f.fails && f.failure != nil {
		return f.failure
	}
	if roll < f.fails {
		return errors.New("connection refused")
	}
	if roll < f.fails+f.lost {
		return allocation.ErrUnknownCommit
	}
	if err := f.Store.Update(ctx, budgets, step); err != nil {
		return err
	}
	if roll < f.fails+f.lost+f.unknown {
		return allocation.ErrUnknownCommit
	}
	return nil
}

// gate wraps a Store whose transactions wait to be let through.
type gate struct {
	allocation.Store
	entered, leave chan struct{}
}

func newGate(s allocation.Store) *gate {
	return &gate{s, make(chan struct{}, 1000), make(chan struct{})}
}

func (g *gate) Update(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	g.entered <- struct{}{}
	<-g.leave
	if err := ctx.Err(); err != nil {
		return err
	}
	return g.Store.Update(ctx, budgets, step)
}

// standing is a clock that stands still, so that nothing is minted.
func standing() lease.Time { return lease.Time(1_700_000_000_000_000) }

// ledger makes a memory store that proves every write, with one budget b of
// burst tokens.
func ledger(t *testing.T, burst lease.Tokens) *memory.Store {
	t.Helper()
	store := memory.New(standing, memory.WithCheck(), memory.WithReruns(1))
	apply(t, store, policy.Budget{
		Name:     "b",
		Strategy: policy.Dynamic,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Second}, Burst: burst},
	})
	return store
}

func apply(t *testing.T, store allocation.Store, budgets ...policy.Budget) {
	t.Helper()
	if _, err := allocation.NewAllocator(store, allocation.Config{}).Apply(t.Context(), budgets); err != nil {
		t.Fatal(err)
	}
}

// pool returns the first pool of a budget, after an audit of everything.
func pool(t *testing.T, store allocation.Store, budget string) allocation.Pool {
	t.Helper()
	var found allocation.Pool
	a := allocation.NewAllocator(store, allocation.Config{})
	for v, err := range a.Audit(t.Context()) {
		t.Error(v, err)
	}
	for s, err := range a.States(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Budget.Name == budget {
			found = s.Pools[0]
		}
	}
	return found
}

// lumpRequest asks for a lump of budget b; the demand equals what is wanted.
func lumpRequest(region string, seq uint64, used, want lease.Tokens) lease.SyncRequest {
	return lease.SyncRequest{Region: region, Items: []lease.Item{{
		Budget: "b", Demand: float64(want), RTT: time.Millisecond,
		Leases: []lease.Report{{Kind: lease.Lump, Incarnation: lease.Incarnation("lump of " + region), Seq: seq, Used: used, Want: want}},
	}}}
}

func grantedIn(r lease.SyncReply) lease.Tokens { return r.Items[0].Leases[0].Granted }
