package memory_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/memory"
)

// clockAt is a clock that stands still until the test moves it.
type clockAt struct{ now lease.Time }

func (c *clockAt) read() lease.Time { return c.now }

func newStore(c *clockAt) *memory.Store {
	lives := 0
	life := func() string { lives++; return fmt.Sprint("life", lives) }
	return memory.New(c.read, life, regionstore.DefaultConfig())
}

func open(t *testing.T, s *memory.Store, budget string) {
	t.Helper()
	req := regionstore.OpenRequest{Budget: budget, Nonces: [lease.Kinds]lease.Incarnation{"a", "b", "c"}, LocalNonce: "d"}
	if _, err := s.Open(context.Background(), req); err != nil {
		t.Fatal(err)
	}
}

func outcome(t *testing.T, s *memory.Store, budget string) regionstore.Outcome {
	t.Helper()
	v, err := s.Read(context.Background(), []string{budget}, []regionstore.Now{{}})
	if err != nil {
		t.Fatal(err)
	}
	return v[0].Outcome
}

func TestStallEndsWithTheCallersContext(t *testing.T) {
	s := newStore(&clockAt{now: 1})
	open(t, s, "t/a")
	first := s.Stall()
	resume := s.Stall()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.InUse(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a stalled call whose caller has gone: %v", err)
	}
	done := make(chan regionstore.Outcome)
	go func() { done <- outcome(t, s, "t/a") }()
	first()
	select {
	case <-done:
		t.Error("the end of an earlier stall ended the later one")
	default:
	}
	resume()
	resume()
	if got := <-done; got != regionstore.OK {
		t.Errorf("after the stall: outcome %d", got)
	}
}

func TestRowsExpireAMarginAfterTheirLastUse(t *testing.T) {
	clock := &clockAt{now: 1_000_000}
	s := newStore(clock)
	open(t, s, "t/a")
	clock.now = clock.now.Add(regionstore.DefaultConfig().KeepMargin - time.Microsecond)
	// Each first call moves the marks, and with them the expiry.
	if got := outcome(t, s, "t/a"); got != regionstore.OK {
		t.Fatalf("before its expiry: outcome %d", got)
	}
	clock.now = clock.now.Add(regionstore.DefaultConfig().KeepMargin)
	if got := outcome(t, s, "t/a"); got != regionstore.Missing {
		t.Fatalf("after its expiry: outcome %d", got)
	}
}

// An allocator that was out of reach for most of a day still hears of what was
// admitted without a lease (invariant 9). Seen to catch: KeepMargin for all rows.
func TestLocalAdmissionsAreKeptForADay(t *testing.T) {
	clock := &clockAt{now: 1_000_000}
	s := newStore(clock)
	open(t, s, "t/a")
	local := regionstore.LocalRequest{Budget: "t/a", Rate: lease.Rate{Tokens: 10, Per: time.Second}, Burst: 5}
	take := func(cost lease.Tokens) regionstore.Outcome {
		local.Cost, local.Now = cost, regionstore.Now{NotAfter: clock.now}
		r, err := s.TakeLocal(context.Background(), local)
		if err != nil {
			t.Fatal(err)
		}
		return r.Outcome
	}
	take(1)
	clock.now = clock.now.Add(time.Second)
	if got := take(1); got != regionstore.OK {
		t.Fatalf("a second's allowance: outcome %d", got)
	}
	clock.now = clock.now.Add(regionstore.KeepLocal - time.Microsecond)
	if got := outcome(t, s, "t/a"); got != regionstore.OK {
		t.Fatalf("within the day: outcome %d", got)
	}
}

func TestAnswersExpire(t *testing.T) {
	clock := &clockAt{now: 1_000_000}
	s := newStore(clock)
	open(t, s, "t/a")
	ask := func(content string) regionstore.TakeReply {
		r, err := s.Take(context.Background(), regionstore.TakeRequest{
			Takes: []regionstore.Take{{Budget: "t/a"}}, RequestID: "q", Content: content, KeepAnswer: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	ask("one")
	clock.now = clock.now.Add(time.Second - time.Microsecond)
	if !ask("two").Conflict {
		t.Error("forgotten too early")
	}
	clock.now = clock.now.Add(time.Microsecond)
	if r := ask("two"); r.Conflict || r.Replayed {
		t.Errorf("remembered too long: %+v", r)
	}
}

func BenchmarkTake(b *testing.B) {
	clock := &clockAt{now: 1_000_000}
	s := newStore(clock)
	ctx := context.Background()
	req := regionstore.OpenRequest{Budget: "t/a", Nonces: [lease.Kinds]lease.Incarnation{"a", "b", "c"}}
	if _, err := s.Open(ctx, req); err != nil {
		b.Fatal(err)
	}
	begun, err := s.Begin(ctx, regionstore.BeginRequest{
		Budget: "t/a", Intents: []regionstore.Intent{{Kind: lease.Paced, Incarnation: "b", LowerBeta: -1}},
	})
	if err != nil || begun.Reports[0].Outcome != regionstore.OK {
		b.Fatal(begun, err)
	}
	state := lease.State{
		Kind: lease.Paced, Incarnation: "b", Seq: 1, Status: lease.Active, TTL: time.Hour,
		X: lease.Rate{Tokens: 1000, Per: time.Second}, Beta: 1000, Granted: 1000,
	}
	installed, err := s.Install(ctx, regionstore.InstallRequest{Budget: "t/a", States: []lease.State{state}})
	if err != nil || installed.Outcomes[0] != regionstore.OK {
		b.Fatal(installed, err)
	}
	b.ReportAllocs()
	for b.Loop() {
		clock.now++
		take := regionstore.Take{Budget: "t/a", Cost: 1, Demand: 1, Now: regionstore.Now{NotAfter: clock.now}}
		if _, err := s.Take(ctx, regionstore.TakeRequest{Takes: []regionstore.Take{take}}); err != nil {
			b.Fatal(err)
		}
	}
}
