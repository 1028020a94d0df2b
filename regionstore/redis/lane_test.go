package redis

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/regionstore"
)

// Steps that come together share round trips, and each gets its own answer.
// Seen to fail with a batch of one, and with answers handed out in reverse.
func TestStepsShareRoundTrips(t *testing.T) {
	const callers, each = 64, 50
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	names := make([]string, callers)
	for i := range names {
		names[i] = "acme/" + strconv.Itoa(i)
		grant(t, s, names[i], 1000)
	}
	before := reads(t, server)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() {
			for n := range each {
				got := take(t, s, 1, names[i])
				if want := 1000 - int64(n) - 1; !got.Took || int64(got.Results[0].Live) != want {
					t.Errorf("%s: %+v, want %d left", names[i], got, want)
					return
				}
			}
		})
	}
	wg.Wait()
	if n := reads(t, server) - before; n > callers*each/4 {
		t.Errorf("the server read %d times for %d steps", n, callers*each)
	}
}

// reads is how often the server has read from a connection.
func reads(t *testing.T, server *testredis.Server) int {
	t.Helper()
	field, _ := infoField(server.Do("INFO", "stats").(string), "total_reads_processed")
	n, err := strconv.Atoi(field)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// What waits behind a stalled server leaves when its caller's time is up, and is
// not sent afterwards: only what was on the wire may happen. Seen to fail when
// next kept those who had left.
func TestStepsWhoseCallersLeftAreNotSent(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	grant(t, s, "acme/search", 1000)
	server.Pause()
	var wg sync.WaitGroup
	call := func(patience time.Duration) {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			_, err := s.Take(ctx, takes(1, "acme/search"))
			wantUnavailable(t, err)
		})
	}
	l := s.lanes.get(s.Primary("acme/search"))
	for range laneBatches {
		call(time.Second)
	}
	eventually(t, "the lane to be busy", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.batches == laneBatches
	})
	for range 100 {
		call(50 * time.Millisecond)
	}
	wg.Wait()
	server.Continue()
	eventually(t, "the lane to be empty", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.batches == 0 && len(l.waiting) == 0
	})
	if used := lump(read(t, s, "acme/search")).Used; used > laneBatches {
		t.Errorf("%d taken, by %d that were on the wire", used, laneBatches)
	}
}

// A lane that is full refuses at once, and sends nothing. Seen to fail when board
// did not count.
func TestFullLaneRefuses(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	grant(t, s, "acme/search", 1000)
	l := s.lanes.get(s.Primary("acme/search"))
	l.mu.Lock()
	l.batches = laneBatches
	for range laneWaiting {
		l.waiting = append(l.waiting, &ticket{ctx: context.Background()})
	}
	l.mu.Unlock()
	_, err := s.Take(context.Background(), takes(1, "acme/search"))
	wantUnavailable(t, err)
	if err == nil || !strings.Contains(err.Error(), "wait for the region's store already") {
		t.Errorf("it waited: %v", err)
	}
	l.mu.Lock()
	l.batches, l.waiting = 0, nil
	l.mu.Unlock()
	if used := lump(read(t, s, "acme/search")).Used; used != 0 {
		t.Errorf("%d taken", used)
	}
}

// Where scripts may not read the replication id, a step that waited while the
// primary was replaced carries the new one's, which another step's connection
// has read. Seen to fail with the id from before the wait: the old snapshot's
// tokens were taken again.
func TestStepsThatWaitedCarryTheNewReplicationID(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{connCheck: true}, server.Addr())
	grant(t, s, "acme/search", 5)
	server.Snapshot()
	take(t, s, 5, "acme/search")
	l := s.lanes.get(s.Primary("acme/search"))
	l.mu.Lock()
	l.batches = laneBatches
	l.mu.Unlock()
	var got regionstore.TakeReply
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		got, err = s.Take(context.Background(), takes(1, "acme/search"))
	}()
	eventually(t, "a step to wait", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting) == 1
	})
	server.Restart()
	eventually(t, "another connection", func() bool { return s.client.Ping(context.Background()).Err() == nil })
	s.carry(l)
	<-done
	if err != nil || got.Took || got.Results[0].Outcome != regionstore.Missing {
		t.Errorf("taken again from an old snapshot: %+v, %v", got, err)
	}
}

// The answer to a take that comes after its caller left is handed on, once, with
// the tokens that it brought; one in time is not. Seen to fail without the
// hand-over, and with one of answers in time too.
func TestLateTakesAreHandedOn(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{Timeout: 10 * time.Second}, server.Addr())
	grant(t, s, "acme/search", 1000)
	late := make(chan regionstore.TakeReply, 2)
	req := takes(1, "acme/search")
	req.Takes[0].Prefetch = 20
	req.Late = func(r regionstore.TakeReply) { late <- r }
	l := s.lanes.get(s.Primary("acme/search"))
	waiting := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.waiting)
	}
	send := func(ctx context.Context) (answered chan error) {
		answered = make(chan error)
		l.mu.Lock()
		l.batches = laneBatches
		l.mu.Unlock()
		go func() {
			_, err := s.Take(ctx, req)
			answered <- err
		}()
		eventually(t, "a step to wait", func() bool { return waiting() == 1 })
		return answered
	}

	ctx, leave := context.WithCancel(t.Context())
	answered := send(ctx)
	server.Pause()
	var carried sync.WaitGroup
	carried.Go(func() { s.carry(l) })
	eventually(t, "it to be sent", func() bool { return waiting() == 0 })
	leave()
	wantUnavailable(t, <-answered)
	server.Continue()
	carried.Wait()
	if len(late) != 1 {
		t.Fatalf("%d late answers", len(late))
	}
	if r := <-late; !r.Took || len(r.Results[0].Parts) != 1 || r.Results[0].Parts[0].Tokens != 20 {
		t.Errorf("%+v", r)
	}

	answered = send(t.Context())
	s.carry(l)
	if err := <-answered; err != nil || len(late) != 0 {
		t.Errorf("%v, and %d late answers", err, len(late))
	}
}

// Decisions do not wait behind the many other steps that a region of very many
// budgets makes: each batch has room for both. Seen to fail with one queue for
// all, and with batches that decisions fill up.
func TestDecisionsDoNotWaitForOtherSteps(t *testing.T) {
	decision, other := &script{decides: true}, &script{}
	l := &lane{batches: laneBatches}
	wait := func(sc *script, n int) {
		for range n {
			l.board(&ticket{ctx: context.Background(), call: call{script: sc}})
		}
	}
	wait(other, 3*othersBatch)
	wait(decision, stepBatch+1)
	for round, want := range []struct{ decisions, others int }{{stepBatch, othersBatch}, {1, othersBatch}, {0, othersBatch}, {0, 0}} {
		got := map[*script]int{}
		for _, t := range l.next() {
			got[t.call.script]++
		}
		if got[decision] != want.decisions || got[other] != want.others {
			t.Errorf("batch %d has %d decisions and %d others, want %+v", round, got[decision], got[other], want)
		}
	}
	l.batches = laneBatches
	wait(other, laneWaiting)
	if l.board(&ticket{ctx: context.Background(), call: call{script: other}}) != full {
		t.Error("others wait without end")
	}
	if l.board(&ticket{ctx: context.Background(), call: call{script: decision}}) != waits {
		t.Error("a decision was refused for others that wait")
	}
}
