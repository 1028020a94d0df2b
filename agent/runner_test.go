package agent

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ration-dev/ration/allocation"
	ledgermemory "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	regionmemory "github.com/ration-dev/ration/regionstore/memory"
)

// live is a ledger and runners on the machine's clock.
type live struct {
	t      *testing.T
	ledger *allocation.Allocator
	nonces atomic.Int64
}

func newLive(t *testing.T, budgets ...policy.Budget) *live {
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	l := &live{t: t, ledger: allocation.NewAllocator(ledgermemory.New(clock, ledgermemory.WithCheck()), allocation.Config{})}
	if _, err := l.ledger.Apply(context.Background(), budgets); err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *live) nonce() string { return fmt.Sprint("n", l.nonces.Add(1)) }

func (l *live) store() *regionmemory.Store {
	return regionmemory.New(func() lease.Time { return lease.Time(time.Now().UnixMicro()) }, l.nonce, regionstore.DefaultConfig())
}

// farSource adds a round trip.
type farSource struct {
	*allocation.Allocator
	rtt time.Duration
}

func (s farSource) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	time.Sleep(s.rtt / 2)
	defer time.Sleep(s.rtt / 2)
	return s.Allocator.SyncLeases(ctx, req)
}

func (l *live) runner(region string, store regionstore.Store, source lease.Source, policies policy.Source) *Runner {
	r := NewRunner(RunnerConfig{
		Options: Options{Region: region, Process: l.nonce(), Store: store},
		Leases:  source, Policies: policies,
		Keeper: KeeperConfig{Rand: rand.New(rand.NewPCG(1, 2)), Nonce: l.nonce},
	})
	go func() {
		if err := r.Run(context.Background()); err != nil {
			l.t.Error(err)
		}
	}()
	l.t.Cleanup(r.Close)
	for deadline := time.Now().Add(10 * time.Second); !r.Ready(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			l.t.Fatal("the budgets never came")
		}
	}
	return r
}

// Many goroutines decide at once in three regions with two agents each: a
// limit that nothing refills is never exceeded, and at the end all of it was
// admitted or can be accounted for.
func TestGlobalLimitHoldsAcrossRegions(t *testing.T) {
	defer goleak.VerifyNone(t)
	const limit = 3000
	b := bucket("acme/x", 1, limit, policy.Dynamic, "us", "eu", "ap")
	b.Contract.Rate = lease.Rate{Tokens: 1, Per: 24 * time.Hour}
	l := newLive(t, b)
	var runners []*Runner
	for i, region := range []string{"us", "eu", "ap"} {
		store := l.store()
		source := farSource{l.ledger, time.Duration(i+1) * 4 * time.Millisecond}
		for range 2 {
			runners = append(runners, l.runner(region, store, source, l.ledger))
		}
	}
	var admitted, refused atomic.Int64
	var wg sync.WaitGroup
	for _, r := range runners {
		for range 4 {
			wg.Go(func() { hammer(t, r, &admitted, &refused) })
		}
	}
	wg.Wait()
	for _, r := range runners {
		r.Close()
		r.Close()
		if a, err := r.Check(t.Context(), named(1, "acme/x")); err != nil || a.Outcome != Unavailable || a.Reason != "closing" {
			t.Errorf("once closed: %+v, %v", a, err)
		}
	}
	if got := admitted.Load(); got > limit || got < limit*8/10 {
		t.Errorf("admitted %d of %d, refused %d", got, limit, refused.Load())
	}
	for s, err := range l.ledger.States(context.Background()) {
		if err != nil {
			t.Fatal(err)
		}
		if s.Pools[0].Outstanding != 0 {
			t.Errorf("%d tokens are outstanding after the last processes left", s.Pools[0].Outstanding)
		}
		if left := int64(s.Pools[0].Available) + admitted.Load(); left > limit {
			t.Errorf("%d left of %d after %d were admitted", s.Pools[0].Available, limit, admitted.Load())
		}
	}
}

func hammer(t *testing.T, r *Runner, admitted, refused *atomic.Int64) {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		a, err := r.Check(context.Background(), Check{Descriptors: []Descriptor{{"budget", "acme/x"}}, Cost: 1})
		switch {
		case err != nil:
			t.Error(err)
		case a.Outcome == Allowed:
			admitted.Add(1)
		default:
			refused.Add(1)
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// panicky panics in the store, the ledger's client, and the list.
type panicky struct {
	regionstore.Store
	*allocation.Allocator
	left atomic.Int64
}

func (p *panicky) Take(ctx context.Context, req regionstore.TakeRequest) (regionstore.TakeReply, error) {
	if p.left.Add(-1) >= 0 {
		panic("take")
	}
	return p.Store.Take(ctx, req)
}

func (p *panicky) Begin(ctx context.Context, req regionstore.BeginRequest) (regionstore.BeginReply, error) {
	if p.left.Add(-1) >= 0 {
		panic("begin")
	}
	return p.Store.Begin(ctx, req)
}

func (p *panicky) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	if p.left.Add(-1) >= 0 {
		panic("sync")
	}
	return p.Allocator.SyncLeases(ctx, req)
}

// A panic anywhere costs one answer, is counted, and the agent goes on.
func TestPanicsAreCaught(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := newLive(t, bucket("acme/x", 1000, 1000, policy.Dynamic, "us"))
	p := &panicky{Store: l.store(), Allocator: l.ledger}
	r := l.runner("us", p, p, l.ledger)
	p.left.Store(6)
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		a, err := r.Check(context.Background(), Check{Budgets: []string{"acme/x"}, Cost: 1})
		if err != nil && lease.CodeOf(err) != lease.Internal {
			t.Fatal(err)
		}
		if a.Outcome == Allowed && p.left.Load() < 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the agent never came back")
		}
	}
	if n := r.Stats().Panics.Load(); n != 6 {
		t.Errorf("%d panics counted", n)
	}
	r.Close()
}

// Nobody to talk to: Close still ends, at once or nearly so.
func TestCloseWithoutLedgerOrStore(t *testing.T) {
	defer goleak.VerifyNone(t)
	l := newLive(t, bucket("acme/x", 1000, 1000, policy.Dynamic, "us"))
	store := l.store()
	r := l.runner("us", store, noSource{}, l.ledger)
	if a, err := r.Check(context.Background(), Check{Budgets: []string{"acme/x"}, Cost: 1}); err != nil || a.Outcome != Unavailable {
		t.Errorf("%+v, %v", a, err)
	}
	resume := store.Stall()
	defer resume()
	r.Close()
	if _, err := r.Check(context.Background(), Check{Budgets: []string{"acme/x"}, Cost: 1}); err != nil {
		t.Error(err)
	}
	if err := r.Run(context.Background()); err == nil {
		t.Error("Run ran twice")
	}
	never := NewRunner(RunnerConfig{Options: Options{Store: store}})
	never.Close()
}

type noSource struct{}

func (noSource) SyncLeases(context.Context, lease.SyncRequest) (lease.SyncReply, error) {
	return lease.SyncReply{}, errors.New("unreachable")
}
