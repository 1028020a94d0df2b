package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// spender is a region that spends every token of its lump at once and asks for
// more. It repeats a request until it is answered.
type spender struct {
	region, budget string
	report         lease.Report
	lives          int
	// spent is over all incarnations; granted is what each was answered.
	spent   lease.Tokens
	granted map[lease.Incarnation]lease.Tokens
	repeats int
}

func newSpender(region, budget string) *spender {
	s := &spender{region: region, budget: budget, granted: map[lease.Incarnation]lease.Tokens{}}
	s.open()
	return s
}

func (s *spender) open() {
	s.lives++
	inc := lease.Incarnation(fmt.Sprintf("%s/%s/%d", s.region, s.budget, s.lives))
	s.report = lease.Report{Kind: lease.Lump, Incarnation: inc, Seq: 1, Want: 50}
}

func (s *spender) run(t *testing.T, source lease.Source, stop *atomic.Bool) {
	for !stop.Load() {
		reply, err := source.SyncLeases(context.Background(), lease.SyncRequest{
			Region: s.region,
			Items:  []lease.Item{{Budget: s.budget, Leases: []lease.Report{s.report}, Demand: 1000, RTT: time.Millisecond}},
		})
		if err != nil || reply.Items[0].Err != nil {
			if e := reply.Items[0].Err; err != nil || e.Code != lease.Unavailable {
				t.Errorf("%s: %v, %v", s.region, err, e)
				return
			}
			s.repeats++
			continue
		}
		for _, l := range reply.Items[0].Leases {
			s.answered(t, l)
		}
	}
}

func (s *spender) answered(t *testing.T, l lease.State) {
	if l.Kind != lease.Lump || l.Incarnation != s.report.Incarnation {
		return
	}
	switch l.Status {
	case lease.Ended:
		s.open()
	case lease.Active:
		if l.Seq != s.report.Seq || l.Granted < s.report.Used {
			t.Errorf("%s: sequence %d with %d used was answered %+v", s.region, s.report.Seq, s.report.Used, l)
		}
		s.spent += l.Granted - s.report.Used
		s.granted[l.Incarnation] = l.Granted
		s.report.Used = l.Granted
		s.report.Seq++
	}
}

// slowCommits makes each commit take a while, so that a kill often hits one.
const slowCommits = `
CREATE FUNCTION test_wait() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(0.01);
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER test_wait AFTER UPDATE ON pools
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION test_wait();
`

// Seen to catch: a reply before the commit, which a crash takes back.
func TestAServerKilledUnderLoadLosesNoAnswerAndGrantsNothingTwice(t *testing.T) {
	server := testpg.New(t, testpg.Options{NoFsync: true})
	url := server.Database(t)
	(&fakeTime{t: t, url: url}).exec(slowCommits)
	s := open(t, url, postgres.Options{
		Check: true, RetryFor: 200 * time.Millisecond, Timeout: 2 * time.Second, CommitTimeout: 2 * time.Second,
	})
	allocator := allocation.NewAllocator(s, allocation.Config{})
	const rate, burst = 2000, 1000
	budgets := []string{"acme/a", "acme/b"}
	for _, name := range budgets {
		_, err := allocator.Apply(context.Background(), []policy.Budget{{
			Name: name, Strategy: policy.Dynamic,
			Contract: policy.Contract{Rate: lease.Rate{Tokens: rate, Per: time.Second}, Burst: burst},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	began := now(t, s).Governed
	spenders := killUnderLoad(t, server, s, allocator, budgets)
	elapsed := now(t, s).Governed.Sub(began) + time.Second // since Apply

	for v, err := range allocator.Audit(context.Background()) {
		t.Errorf("the audit finds %v, %v", v, err)
	}
	for _, name := range budgets {
		var spent lease.Tokens
		state := get(t, s, name)
		if n := state.Pools[0].Totals.Alarms; n != 0 {
			t.Errorf("%s: %d reports told of more than was on record", name, n)
		}
		for _, sp := range spenders {
			if sp.budget != name {
				continue
			}
			spent += sp.spent
			for _, l := range state.Leases {
				if got := sp.granted[l.Incarnation]; got > l.Granted {
					t.Errorf("%s was answered %d, and %d are on record", l.Incarnation, got, l.Granted)
				}
			}
		}
		if limit := burst + lease.Tokens(elapsed.Seconds()*rate) + 1; spent > limit {
			t.Errorf("%s: %d were spent, the limit is %d", name, spent, limit)
		}
		if spent < burst {
			t.Errorf("%s: only %d were spent", name, spent)
		}
	}
}

// killUnderLoad kills the server three times, each time after some more
// commits, while three regions spend of each budget.
func killUnderLoad(t *testing.T, server *testpg.Server, s *postgres.Store, source lease.Source, budgets []string) (spenders []*spender) {
	var stop atomic.Bool
	var wg sync.WaitGroup
	for _, budget := range budgets {
		for _, region := range []string{"ap", "eu", "us"} {
			sp := newSpender(region, budget)
			spenders = append(spenders, sp)
			wg.Go(func() { sp.run(t, source, &stop) })
		}
	}
	awaitCommits := func() {
		for enough := s.Stats.Transactions.Load() + 40; s.Stats.Transactions.Load() < enough; {
			time.Sleep(time.Millisecond)
		}
	}
	for range 3 {
		awaitCommits()
		server.Restart(t)
	}
	awaitCommits()
	stop.Store(true)
	wg.Wait()
	return spenders
}
