package allocation_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// racingRegion is a region's wallet that several agents share: each begins a
// sequence under the lock and sends it without.
type racingRegion struct {
	mu      sync.Mutex
	name    string
	seq     uint64
	pending bool
	granted lease.Tokens
	// answers has what the ledger said it granted, by the sequence it named.
	answers map[uint64]lease.Tokens
}

// begin returns the pending request, or a new one: everything granted so far
// has been used, and as much again is wanted.
func (r *racingRegion) begin() lease.SyncRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.pending {
		r.seq++
		r.pending = true
	}
	return lumpRequest(r.name, r.seq, r.granted, 7)
}

func (r *racingRegion) install(t *testing.T, seq uint64, st lease.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.answers == nil {
		r.answers = make(map[uint64]lease.Tokens)
	}
	if st.Status == lease.Active {
		if first, before := r.answers[st.Seq]; before && first != st.Granted {
			t.Errorf("%s: sequence %d granted %d, then %d", r.name, st.Seq, first, st.Granted)
		}
		r.answers[st.Seq] = st.Granted
	}
	if r.pending && seq == r.seq && (st.Seq == seq || st.Status == lease.NotPlanned) {
		r.pending = false
		if st.Granted < r.granted {
			t.Errorf("%s: granted went from %d to %d", r.name, r.granted, st.Granted)
		}
		r.granted = st.Granted
	}
}

func (r *racingRegion) agent(t *testing.T, source lease.Source, rounds int) {
	for range rounds {
		req := r.begin()
		reply, err := source.SyncLeases(t.Context(), req)
		if err != nil {
			t.Error(err)
			return
		}
		if e := reply.Items[0].Err; e != nil {
			if e.Code != lease.Unavailable {
				t.Error(e)
			}
			continue
		}
		r.install(t, req.Items[0].Leases[0].Seq, reply.Items[0].Leases[0])
	}
}

// Invariant 3, single grant, under failing, lost and unknown commits, agents
// that race, and replays: a sequence has one answer, and the regions hold
// together exactly what the ledger says it granted, which is all there is. Faults seen to be caught: a
// replayed sequence processed again; an older one processed; a failed item
// answered as if it had succeeded.
func TestSingleGrantThroughFailingCommits(t *testing.T) {
	const tokens = 500
	store := ledger(t, tokens)
	broken := &faulty{Store: store, rng: rand.New(rand.NewPCG(3, 4)), fails: 10, lost: 10, unknown: 20}
	// Grants come in pieces, so that one processed twice would show.
	pieces := allocation.Config{Planner: func(s *allocation.State, _ *allocation.Pool, _ lease.Time) []allocation.Target {
		var targets []allocation.Target
		for _, r := range s.Regions {
			targets = append(targets, allocation.Target{Region: r.Name, Lumps: true, Lump: tokens, Piece: 2, Keep: lease.MaxTokens})
		}
		return targets
	}}
	alloc := allocation.NewAllocator(broken, pieces)
	committer := allocation.NewCommitter(alloc, 2)
	var regions []*racingRegion
	var agents sync.WaitGroup
	for i := range 6 {
		r := &racingRegion{name: fmt.Sprint("region", i)}
		regions = append(regions, r)
		for range 4 {
			agents.Go(func() { r.agent(t, committer, 200) })
		}
	}
	agents.Wait()
	committer.Close()

	// What is still pending gets its answer from a healthy store.
	healthy := allocation.NewAllocator(store, pieces)
	sum := lease.Tokens(0)
	for _, r := range regions {
		r.agent(t, healthy, 40)
		sum += r.granted
	}
	totals := pool(t, store, "b").Totals
	if sum != totals.LumpGranted || sum != tokens {
		t.Errorf("regions were granted %d, the ledger says %d, there are %d", sum, totals.LumpGranted, tokens)
	}
	stats := alloc.Stats()
	if stats.UnknownCommits.Load() == 0 || stats.Failed.Load() == 0 || stats.Commits.Load() == 0 {
		t.Error("no fault was met: the test shows nothing")
	}
}

// The headline case: two regions, a limit of 4, float 0. However they ask,
// never 5 are granted.
func TestTwoRegionsNeverGetMoreThanFour(t *testing.T) {
	for seed := range uint64(20) {
		store := ledger(t, 4)
		broken := &faulty{Store: store, rng: rand.New(rand.NewPCG(seed, 0)), lost: 20, unknown: 30}
		committer := allocation.NewCommitter(allocation.NewAllocator(broken, allocation.Config{}), 2)
		us, eu := &racingRegion{name: "us"}, &racingRegion{name: "eu"}
		var agents sync.WaitGroup
		for _, r := range []*racingRegion{us, eu} {
			for range 2 {
				agents.Go(func() { r.agent(t, committer, 20) })
			}
		}
		agents.Wait()
		committer.Close()
		healthy := allocation.NewAllocator(store, allocation.Config{})
		us.agent(t, healthy, 5)
		eu.agent(t, healthy, 5)
		if got := us.granted + eu.granted; got != 4 {
			t.Errorf("seed %d: %d granted of 4", seed, got)
		}
	}
}

// Requests that come while a commit is under way share the next one.
// Fault seen to be caught: gather returning its first item alone.
func TestRequestsShareCommits(t *testing.T) {
	slow := newGate(ledger(t, 1000))
	alloc := allocation.NewAllocator(slow, allocation.Config{})
	committer := allocation.NewCommitter(alloc, 4)
	var callers sync.WaitGroup
	ask := func(i int) {
		callers.Go(func() {
			reply, err := committer.SyncLeases(t.Context(), lumpRequest(fmt.Sprint("r", i), 1, 0, 3))
			if err != nil || reply.Items[0].Err != nil {
				t.Error(err, reply)
			}
		})
	}
	ask(0)
	<-slow.entered
	for i := 1; i < 100; i++ {
		ask(i)
	}
	waitFor(func() bool { return committer.Queued() == 99 })
	close(slow.leave)
	callers.Wait()
	committer.Close()
	stats := alloc.Stats()
	if stats.Commits.Load() != 2 || stats.Batched.Load() != 100 || stats.Largest.Load() != 99 {
		t.Errorf("%d commits of %d items, the largest of %d; want 2 of 100, of 99",
			stats.Commits.Load(), stats.Batched.Load(), stats.Largest.Load())
	}
}

// A caller that leaves does not take its commit along.
func TestLeavingCallerDoesNotCancelTheCommit(t *testing.T) {
	slow := newGate(ledger(t, 100))
	alloc := allocation.NewAllocator(slow, allocation.Config{})
	committer := allocation.NewCommitter(alloc, 1)
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan error)
	req := lumpRequest("eu", 1, 0, 5)
	go func() {
		_, err := committer.SyncLeases(ctx, req)
		left <- err
	}()
	<-slow.entered
	leave()
	if err := <-left; lease.CodeOf(err) != lease.Unavailable {
		t.Errorf("the caller heard %v, want unavailable", err)
	}
	close(slow.leave)
	committer.Close()
	got := pool(t, slow.Store, "b").Totals.LumpGranted
	if got < 5 {
		t.Errorf("%d granted, wanted were 5", got)
	}
	reply, err := alloc.SyncLeases(t.Context(), req)
	if err != nil || grantedIn(reply) != got {
		t.Errorf("the repetition is answered %+v, %v; granted were %d", reply, err, got)
	}
}

// Close commits what is queued, refuses what comes later, and may be repeated.
func TestCloseDrains(t *testing.T) {
	slow := newGate(ledger(t, 1000))
	committer := allocation.NewCommitter(allocation.NewAllocator(slow, allocation.Config{}), 2)
	var callers sync.WaitGroup
	ask := func(i int) {
		callers.Go(func() {
			reply, err := committer.SyncLeases(t.Context(), lumpRequest(fmt.Sprint("r", i), 1, 0, 1))
			if err != nil || reply.Items[0].Err != nil {
				t.Error(err, reply)
			}
		})
	}
	ask(0) // alone, so that the first commit has it and nothing else
	<-slow.entered
	for i := 1; i < 20; i++ {
		ask(i)
	}
	waitFor(func() bool { return committer.Queued() == 19 })
	var closers sync.WaitGroup
	for range 3 {
		closers.Go(committer.Close)
	}
	close(slow.leave)
	closers.Wait()
	callers.Wait()
	if _, err := committer.SyncLeases(t.Context(), lumpRequest("late", 1, 0, 1)); lease.CodeOf(err) != lease.Unavailable {
		t.Errorf("after Close: %v, want unavailable", err)
	}
}

// A step that panics costs its own item alone. Fault seen to be caught: the
// culprit left in the second run of its batch.
func TestPanicCostsItsOwnItemAlone(t *testing.T) {
	store := ledger(t, 1000)
	poison := allocation.Config{Planner: func(s *allocation.State, p *allocation.Pool, now lease.Time) []allocation.Target {
		for _, r := range s.Regions {
			if r.Demand == 13 {
				panic("thirteen")
			}
		}
		return allocation.Plan(s, p, now)
	}}
	var seen []error
	alloc := allocation.NewAllocator(store, poison, allocation.WithObserver(func(err error) { seen = append(seen, err) }))
	committer := allocation.NewCommitter(alloc, 1)
	req := lumpRequest("eu", 1, 0, 2)
	req.Items = append(req.Items, lumpRequest("eu", 2, 0, 13).Items[0], lumpRequest("eu", 3, 0, 4).Items[0])
	reply, err := committer.SyncLeases(t.Context(), req)
	committer.Close()
	if err != nil {
		t.Fatal(err)
	}
	if e := reply.Items[1].Err; e == nil || e.Code != lease.Internal {
		t.Errorf("the panicking item is answered %v", e)
	}
	// The two others, of one budget, were processed in their order.
	if a, b := reply.Items[0], reply.Items[2]; a.Err != nil || b.Err != nil || a.Leases[0].Seq != 1 || b.Leases[0].Seq != 3 {
		t.Errorf("the others are answered %+v and %+v", a, b)
	}
	if alloc.Stats().Panics.Load() == 0 || len(seen) == 0 {
		t.Error("the panic was neither counted nor observed")
	}
}

// waitFor waits for what is sure to come.
func waitFor(cond func() bool) {
	for !cond() {
		runtime.Gosched()
	}
}
