package allocation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// poll is a long poll over a memory store on virtual time, with a budget b of
// 10 tokens that mints one in 10 minutes, all of them held by region rich.
type poll struct {
	store     *memory.Store
	alloc     *allocation.Allocator
	committer *allocation.Committer
	*allocation.LongPoll
}

func newPoll(t *testing.T) *poll {
	clock := func() lease.Time { return lease.Time(time.Now().UnixMicro()) }
	p := &poll{store: memory.New(clock, memory.WithCheck(), memory.WithReruns(1))}
	apply(t, p.store, policy.Budget{
		Name:     "b",
		Strategy: policy.Dynamic,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: 10 * time.Minute}, Burst: 10},
	})
	// Whatever is wanted is planned, so that what is granted is what there is.
	greedy := func(s *allocation.State, _ *allocation.Pool, _ lease.Time) []allocation.Target {
		var targets []allocation.Target
		for _, r := range s.Regions {
			targets = append(targets, allocation.Target{Region: r.Name, Lumps: true, Lump: 10, Keep: lease.MaxTokens})
		}
		return targets
	}
	p.alloc = allocation.NewAllocator(p.store, allocation.Config{Planner: greedy})
	p.committer = allocation.NewCommitter(p.alloc, 2)
	p.LongPoll = allocation.NewLongPoll(p.committer)
	p.sync(t, lumpRequest("rich", 1, 0, 10))
	return p
}

func (p *poll) sync(t *testing.T, req lease.SyncRequest) lease.State {
	t.Helper()
	reply, err := p.SyncLeases(t.Context(), req)
	if err != nil || reply.Items[0].Err != nil {
		t.Fatal(err, reply)
	}
	return reply.Items[0].Leases[0]
}

// waiting asks for want tokens, for which a caller waits.
func waiting(region string, seq uint64, want lease.Tokens) lease.SyncRequest {
	req := lumpRequest(region, seq, 0, want)
	req.Items[0].Waiting = want
	return req
}

func returning(region string, seq uint64, returned lease.Tokens) lease.SyncRequest {
	req := lumpRequest(region, seq, 0, 0)
	req.Items[0].Leases[0].Returned = returned
	return req
}

// A waiting caller is woken when tokens arrive, not before and not much later.
// Fault seen to be caught: commits that wake nobody.
func TestHeldItemIsAnsweredWhenTokensCome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t)
		defer p.committer.Close()
		begun := time.Now()
		answered := make(chan lease.State)
		go func() { answered <- p.sync(t, waiting("poor", 1, 3)) }()
		time.Sleep(130 * time.Millisecond)
		p.sync(t, returning("rich", 2, 2))
		time.Sleep(70 * time.Millisecond)
		synctest.Wait()
		select {
		case st := <-answered:
			t.Fatalf("answered with too little: %+v", st)
		default:
		}
		p.sync(t, returning("rich", 3, 4))
		st := <-answered
		if took := time.Since(begun); st.Granted != 3 || took > 210*time.Millisecond {
			t.Errorf("granted %d after %v, want 3 after 200 ms", st.Granted, took)
		}
		if again := p.sync(t, waiting("poor", 1, 3)); again != st {
			t.Errorf("the repetition is answered %+v, the first time %+v", again, st)
		}
	})
}

// A wait ends after half a second, with the evidence for a denial, which a
// repetition gets too.
func TestHeldItemIsAnsweredAtTheEndOfItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t)
		defer p.committer.Close()
		p.sync(t, returning("rich", 2, 1))
		begun := time.Now()
		st := p.sync(t, waiting("poor", 1, 3))
		if took := time.Since(begun); took != 500*time.Millisecond {
			t.Errorf("answered after %v, want 500 ms", took)
		}
		if st.Granted != 1 || st.Short != lease.PoolEmpty && st.Short != lease.CeilingReached {
			t.Errorf("answered %+v, want the one token there is, and why no more", st)
		}
		if p.alloc.Stats().Holds.Load() != 1 {
			t.Errorf("%d holds counted", p.alloc.Stats().Holds.Load())
		}
	})
}

// Nothing is granted to a caller that left, and nothing stays behind.
// Fault seen to be caught: the trial's state kept while it is held.
func TestHeldItemOfALeavingCallerGetsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t)
		defer p.committer.Close()
		p.sync(t, returning("rich", 2, 2))
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		begun := time.Now()
		if _, err := p.SyncLeases(ctx, waiting("poor", 1, 3)); lease.CodeOf(err) != lease.Unavailable {
			t.Errorf("answered %v, want unavailable", err)
		}
		if took := time.Since(begun); took != 50*time.Millisecond {
			t.Errorf("the wait ended after %v, the caller left after 50 ms", took)
		}
		if got := pool(t, p.store, "b"); got.Totals.LumpGranted != 10 || got.Available != 2 {
			t.Errorf("the pool has %+v", got)
		}
	})
}

// A newer sequence of the same lease ends the wait of an older one, whose
// answer then is the current state. Fault seen to be caught: supersede left
// out.
func TestNewerSequenceEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t)
		defer p.committer.Close()
		begun := time.Now()
		answered := make(chan time.Duration)
		go func() {
			p.sync(t, waiting("poor", 1, 3))
			answered <- time.Since(begun)
		}()
		time.Sleep(100 * time.Millisecond)
		p.sync(t, lumpRequest("poor", 2, 0, 0))
		if took := <-answered; took > 110*time.Millisecond {
			t.Errorf("the older sequence was held for %v", took)
		}
	})
}

// What a held region no longer holds is free for others while it waits, and
// its demand counts. Fault seen to be caught: listen that books nothing.
func TestHeldItemKeepsNoTokensFromOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPoll(t)
		defer p.committer.Close()
		answered := make(chan lease.State)
		back := returning("rich", 2, 4)
		back.Items[0].Waiting, back.Items[0].Leases[0].Want = 20, 20
		go func() { answered <- p.sync(t, back) }()
		synctest.Wait()
		if st := p.sync(t, waiting("poor", 1, 4)); st.Granted != 4 {
			t.Errorf("granted %d of the 4 that a held region gave back", st.Granted)
		}
		if st := <-answered; st.Seq != 2 || st.Granted != 10 {
			t.Errorf("the held region is answered %+v", st)
		}
	})
}
