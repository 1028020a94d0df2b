package agent

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// plenty is a budget of which a few tokens are a tiny change.
func plenty(name string) policy.Budget { return bucket(name, 100_000, 100_000, policy.Dynamic) }

// asks counts what a store is asked.
type asks struct {
	regionstore.Store
	takes, settles, refills int
}

func (s *asks) Take(ctx context.Context, req regionstore.TakeRequest) (regionstore.TakeReply, error) {
	s.takes++
	return s.Store.Take(ctx, req)
}

func (s *asks) Settle(ctx context.Context, list []regionstore.Settle) ([]regionstore.Outcome, error) {
	s.settles += len(list)
	return s.Store.Settle(ctx, list)
}

func (s *asks) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	s.refills += len(takes)
	return s.Store.Refill(ctx, takes)
}

// Once known, decisions of a slow budget find their tokens in memory, and the store
// makes one step for a dozen of them; what they used is booked, to the token, and
// the rest goes back once nobody asks any more. Seen to fail without refills, with
// parts that end by their deadline alone, and with what is left kept beside what
// comes.
func TestSlowBudgetsAreRefilled(t *testing.T) {
	b := newBench(t, plenty("acme/x"))
	b.grant("acme/x", 100_000, lease.State{})
	store := &asks{Store: b.store}
	b.decider.opt.Store = store
	admitted := 0
	pass := func(length, every time.Duration) {
		for at := b.now; b.now < at+length; b.now += flushEvery {
			if every > 0 && (b.now-at)%every == 0 {
				if a := b.decide(named(1, "acme/x")); a.Outcome != Allowed {
					t.Fatalf("%+v", a)
				}
				admitted++
			}
			b.decider.Flush(t.Context(), false)
		}
	}
	pass(10*time.Second, 500*time.Millisecond)
	*store = asks{Store: b.store}
	given := b.stats.GivenBack.Load()
	pass(40*time.Second, 500*time.Millisecond)
	if b.stats.GivenBack.Load() == given {
		t.Error("what goes back with a refill is not counted")
	}
	if store.takes > 0 || store.settles > 0 || store.refills == 0 || store.refills > 80/12 {
		t.Errorf("80 decisions took %d takes, %d settlements and %d refills", store.takes, store.settles, store.refills)
	}
	*store = asks{Store: b.store}
	pass(2*tinyFor, 0)
	if store.refills > 1 {
		t.Errorf("%d refills that nobody used", store.refills)
	}
	l := b.view("acme/x").Row.Leases[lease.Lump-1]
	if l.Used != lease.Tokens(admitted) || counted(&l) != 0 {
		t.Errorf("%d used and %d still held, %d were admitted", l.Used, counted(&l), admitted)
	}
}

// Only what is worth it is refilled: what runs low, or ends, of a slow budget that
// is used, of which the wallet has more. Seen to fail with each condition taken away.
func TestWhatRunsLow(t *testing.T) {
	const ends = refillBefore / 2
	for _, c := range []struct {
		name string
		set  func(e *entry, q *part)
		want bool
	}{
		{"two left", func(_ *entry, q *part) { q.free.Store(2) }, true},
		{"more than for two looks", func(_ *entry, q *part) { q.free.Store(4) }, false},
		{"a third left", func(e *entry, q *part) { e.rate = 300; q.free.Store(170) }, false}, // of 500, the most that is small
		{"nobody used any", func(e *entry, q *part) { q.free.Store(2); e.arrived = 0 }, false},
		{"ends", func(e *entry, q *part) { q.deadline, e.arrived = time.Hour+ends, 0 }, true},
		{"few are held at all", func(e *entry, q *part) { e.rate = 0.3; q.free.Store(0) }, false},
		{"fast", func(e *entry, q *part) { e.rate = 1001; q.free.Store(0) }, false},
		{"denied a moment ago", func(e *entry, q *part) {
			q.free.Store(0)
			e.denial = &denial{cost: 1, until: time.Hour + time.Second}
		}, false},
		{"the wallet has no more", func(e *entry, q *part) { q.free.Store(2); e.last.Live = 2*prefetchPart + 1 }, false},
		{"refilled a moment ago", func(e *entry, q *part) { q.free.Store(0); e.refillAt = time.Hour + 1 }, false},
		{"deleted", func(e *entry, q *part) {
			q.free.Store(2)
			gone := *e.policy.Load()
			gone.Deleted = true
			e.policy.Store(&gone)
		}, false},
	} {
		b := newBench(t, plenty("acme/x"))
		e := remembering(b.decider.entry("acme/x"))
		q := newPart(24, time.Hour+tinyFor)
		e.rate, e.arrived, e.pocket.parts = 2, 1, []*part{q}
		e.last = holdings{Live: 100_000, until: time.Hour + time.Minute}
		c.set(e, q)
		if got := e.runsLow(e.policy.Load(), e.arrived > 0, time.Hour); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// low makes a budget one that the next flush refills.
func low(b *bench, name string) *entry {
	e := remembering(b.decider.entry(name))
	b.decider.touch(e, b.now)
	e.rate, e.rateAt, e.told, e.arrived = 2, b.now, b.now, 1
	e.last = holdings{Live: 100_000, until: b.now + time.Minute}
	return e
}

// A refill whose outcome is unknown is not made again, what it brought is not spent,
// and what it told is not told twice. Seen to fail where it is repeated.
func TestARefillOfUnknownOutcomeAgesOut(t *testing.T) {
	b := newBench(t, plenty("acme/x"))
	b.grant("acme/x", 100_000, lease.State{})
	e := low(b, "acme/x")
	e.offered = 3
	b.store.unknown = true
	b.decider.Flush(t.Context(), false)
	b.store.unknown = false
	held, told := b.view("acme/x").Row.Leases[lease.Lump-1], b.view("acme/x").Row.DemandTotal
	if counted(&held) == 0 || b.decider.Prefetched("acme/x", b.now) != 0 || told != 3 {
		t.Fatalf("the row counts %d held, the process %d; %d told", counted(&held), b.decider.Prefetched("acme/x", b.now), told)
	}
	for range 40 {
		b.now += restFor
		b.decider.Flush(t.Context(), false)
	}
	held, told = b.view("acme/x").Row.Leases[lease.Lump-1], b.view("acme/x").Row.DemandTotal
	if counted(&held) != 0 || told != 3 {
		t.Errorf("afterwards the row counts %d held; %d told", counted(&held), told)
	}
}

// While the store is away what is left stays to be spent. Seen to fail where it is
// given up before anybody looks whether it answers.
func TestWhatIsLeftStaysWhileTheStoreIsAway(t *testing.T) {
	b := newBench(t, plenty("acme/x"), plenty("acme/y"))
	e := low(b, "acme/x")
	q := newPart(2, b.now+tinyFor)
	e.pocket.parts, e.pocket.touched = []*part{q}, b.now
	b.store.down = true
	b.decide(named(1, "acme/y"))
	b.decider.Flush(t.Context(), false)
	if n := b.decider.Prefetched("acme/x", b.now); n != 2 {
		t.Errorf("%d of 2 left", n)
	}
}

// A budget that a decision has filled before its turn comes is not emptied, and none
// is once the process leaves. Seen to fail without looking again, and without
// looking whether it leaves.
func TestARefillThatIsNotNeededAnyMore(t *testing.T) {
	b := newBench(t, plenty("acme/x"))
	b.grant("acme/x", 100_000, lease.State{})
	e := low(b, "acme/x")
	gone, leave := context.WithCancel(t.Context())
	leave()
	b.decider.refill(gone, []*entry{e})
	if n := b.decider.Prefetched("acme/x", b.now); n != 0 {
		t.Errorf("%d held by a process that leaves", n)
	}
	q := newPart(20, b.now+tinyFor)
	e.pocket.parts = []*part{q}
	b.decider.refill(t.Context(), []*entry{e})
	if len(e.pocket.parts) != 1 || e.pocket.parts[0] != q || q.ending {
		t.Error("it was emptied")
	}
}

// A refill that brings nothing is not made again at each look, one that brings what
// ends soon is looked at again before that. Seen to fail without each.
func TestRefillsOfLittleUse(t *testing.T) {
	b := newBench(t, plenty("acme/x"), plenty("acme/y"))
	b.grant("acme/x", 0, lease.State{})
	e := low(b, "acme/x")
	store := &asks{Store: b.store}
	b.decider.opt.Store = store
	for range 4 * int(restFor/flushEvery) {
		e.last.Live, e.arrived = 100_000, 1 // as if others came and went
		b.decider.Flush(t.Context(), false)
		b.now += flushEvery
	}
	if store.refills != 1 {
		t.Errorf("%d refills that bring nothing", store.refills)
	}
	b.grant("acme/y", 100_000, lease.State{})
	b.now += time.Minute - refillBefore/2 // until the lump ends
	other := low(b, "acme/y")
	b.decider.Flush(t.Context(), false)
	if n := b.decider.Prefetched("acme/y", b.now); n == 0 || other.rests.Load() {
		t.Errorf("%d held, until a moment from now; it rests: %v", n, other.rests.Load())
	}
}

// partly is a store that answers only for the last of a refill's budgets.
type partly struct{ regionstore.Store }

func (s partly) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	results, err := s.Store.Refill(ctx, takes)
	clear(results[:len(results)-1])
	return results, errors.Join(err, errDown)
}

// What is known of a refill that failed for others is spent. Seen to fail where an
// error stands for all.
func TestWhatIsKnownOfARefillIsSpent(t *testing.T) {
	b := newBench(t, plenty("acme/x"), plenty("acme/y"))
	for _, name := range []string{"acme/x", "acme/y"} {
		b.grant(name, 100_000, lease.State{})
		low(b, name)
	}
	b.decider.opt.Store = partly{b.store}
	b.decider.Flush(t.Context(), false)
	if x, y := b.decider.Prefetched("acme/x", b.now), b.decider.Prefetched("acme/y", b.now); x != 0 || y == 0 {
		t.Errorf("%d and %d held", x, y)
	}
}

// Refills see to a wallet that sinks below its low mark, as decisions do. Seen to
// fail without that.
func TestARefillAsksForMoreWhereTheWalletIsLow(t *testing.T) {
	b := newBench(t, plenty("acme/x"))
	b.grant("acme/x", 100_000, lease.State{X: lease.Rate{Tokens: 1, Per: time.Second}, Beta: 1})
	low(b, "acme/x").hint = Hint{Low: 100_001}
	b.decider.Flush(t.Context(), false)
	if len(b.urgent) != 1 || b.urgent[0].Budget != "acme/x" {
		t.Errorf("asked for %+v", b.urgent)
	}
}

// A region that forgot a budget does not spend what was taken ahead of it again, nor
// does a refill open it. Seen to fail where an answer without a row counts as seen.
func TestARefillOfAForgottenBudget(t *testing.T) {
	b := newBench(t, plenty("acme/x"), plenty("acme/y"))
	b.grant("acme/y", 100_000, lease.State{})
	e, other := low(b, "acme/x"), low(b, "acme/y")
	b.decider.Flush(t.Context(), false)
	if e.touched != 0 || other.touched == 0 || b.decider.Prefetched("acme/x", b.now) != 0 || b.decider.Prefetched("acme/y", b.now) == 0 {
		t.Errorf("seen by clocks %d and %d, %d and %d held", e.touched, other.touched,
			b.decider.Prefetched("acme/x", b.now), b.decider.Prefetched("acme/y", b.now))
	}
}

// A process that leaves takes nothing ahead any more. Seen to fail with refills in
// the last flush.
func TestTheLastFlushRefillsNothing(t *testing.T) {
	b := newBench(t, plenty("acme/x"))
	b.grant("acme/x", 100_000, lease.State{})
	low(b, "acme/x")
	b.decider.Flush(t.Context(), true)
	if n := b.decider.Prefetched("acme/x", b.now); n != 0 {
		t.Errorf("%d held", n)
	}
}

// slowRefill answers its first refill only when it is let.
type slowRefill struct {
	regionstore.Store
	asked, answer chan struct{}
}

func (s *slowRefill) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	results, err := s.Store.Refill(ctx, takes)
	select {
	case <-s.asked:
	default:
		close(s.asked)
		<-s.answer
	}
	return results, err
}

// What a refill brings while the process leaves goes back with the rest. Seen to
// fail where the last flush does not wait for the one under way.
func TestARefillUnderWayWhenTheProcessLeaves(t *testing.T) {
	l := newLive(t, plenty("acme/x"))
	memory := l.store()
	store := &slowRefill{Store: memory, asked: make(chan struct{}), answer: make(chan struct{})}
	r := l.runner("us", store, l.ledger, l.ledger)
	if a, err := r.Check(t.Context(), named(1, "acme/x")); err != nil || a.Outcome != Allowed {
		t.Fatalf("%+v, %v", a, err)
	}
	e, now := r.decider.entry("acme/x"), r.decider.opt.Now()
	e.lock()
	e.rate, e.rateAt, e.arrived = 50, now, 1
	e.last = holdings{Live: 100_000, until: now + time.Minute}
	e.unlock()
	r.decider.touch(e, now)
	select {
	case <-store.asked:
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is refilled")
	}
	closed := make(chan struct{})
	go func() { r.Close(); close(closed) }()
	<-r.closing
	time.Sleep(20 * time.Millisecond) // in which a last flush that did not wait would be over
	close(store.answer)
	<-closed
	row := memory.Peek("acme/x").Row
	if lump := &row.Leases[lease.Lump-1]; counted(lump) != 0 || r.decider.Prefetched("acme/x", now) != 0 {
		t.Errorf("%d are held by a process that left: %+v", counted(lump), lump)
	}
}
