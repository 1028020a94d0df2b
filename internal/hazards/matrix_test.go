package hazards_test

import (
	"context"
	"crypto/rand"
	"fmt"
	mathrand "math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/redis"
)

const (
	limit = 100 // tokens of each budget; nothing refills them
	most  = 50  // what one lease may lose: the half that a region is granted at first
	ttl   = 2 * time.Second
)

// system is one region over a real Redis, and a ledger over a real Postgres,
// with a budget per gap of the protocol.
type system struct {
	t        *testing.T
	postgres *testpg.Server
	url      string
	redis    *testredis.Server
	ledger   *allocation.Allocator
	hands    []*hand
}

// What is killed and started again between every two of open, begin, send,
// commit, reply, install, take, use, return, report and close: the agent, the
// allocator, Redis (empty, or from an old snapshot) and Postgres. Budget i is at
// gap i when it happens. Then the steps that were under way go on, another agent
// takes over and spends all it can get: never more than the limit, however long
// it tries, and never less than what the lost lease leaves. The books hold.
//
// Seen to catch: a wallet that does not compare the replication id (105 of 100
// over an old snapshot); an expiry that credits what it writes off (the ledger
// refuses to write it, and the budget stands still).
func TestKillBetweenEveryTwoSteps(t *testing.T) {
	shared := testpg.New(t, testpg.Options{})
	for name, fault := range map[string]struct {
		// old is how many steps before the fault Redis takes a snapshot.
		old int
		do  func(*system)
		// dead is set when the process that did the steps is gone with the fault.
		dead bool
	}{
		"agent":                 {dead: true, do: func(*system) {}},
		"allocator":             {do: (*system).connect},
		"redis, empty":          {do: func(s *system) { s.redis.RestartEmpty() }},
		"redis, old snapshot":   {old: 2, do: func(s *system) { s.redis.Restart() }},
		"redis, fresh snapshot": {old: 0, do: func(s *system) { s.redis.Snapshot(); s.redis.Restart() }},
		"postgres":              {do: func(s *system) { s.postgres.Kill(s.t); s.postgres.Restart(s.t) }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := shared
			if name == "postgres" {
				server = testpg.New(t, testpg.Options{})
			}
			s := newSystem(t, server)
			s.each(func(gap int, h *hand) { h.run(t, 0, max(0, gap-fault.old)) })
			if fault.old > 0 {
				s.redis.Snapshot()
				s.each(func(gap int, h *hand) { h.run(t, max(0, gap-fault.old), gap) })
			}
			fault.do(s)
			if !fault.dead {
				s.each(func(gap int, h *hand) { h.run(nil, gap, len(steps)) })
			}
			s.spendAll()
		})
	}
}

// run does the steps from up to to. With t, each has to succeed.
func (h *hand) run(t *testing.T, from, to int) {
	for _, s := range steps[from:to] {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		h.failed = nil
		s.do(h, ctx)
		cancel()
		if t != nil && h.failed != nil {
			t.Errorf("%s: %s: %v", h.budget, s.name, h.failed)
		}
	}
}

func newSystem(t *testing.T, server *testpg.Server) *system {
	s := &system{t: t, postgres: server, url: server.Database(t), redis: testredis.Start(t, testredis.Options{})}
	s.connect()
	var budgets []policy.Budget
	for gap := range len(steps) + 1 {
		budgets = append(budgets, policy.Budget{
			Name: fmt.Sprintf("acme/gap-%02d", gap), TTL: ttl, Regions: []policy.Region{{Name: "us"}},
			Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: 24 * time.Hour}, Burst: limit},
		})
	}
	if _, err := s.ledger.Apply(t.Context(), budgets); err != nil {
		t.Fatal(err)
	}
	store := s.store()
	for _, b := range budgets {
		s.hands = append(s.hands, &hand{store: store, ledger: s.source(), budget: b.Name})
	}
	return s
}

// connect makes another allocator process over the same database, that knows
// nothing of an earlier one.
func (s *system) connect() {
	store, err := postgres.Open(s.t.Context(), s.url, postgres.Options{Check: true, MaxConns: 4})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(store.Close)
	s.ledger = allocation.NewAllocator(store, allocation.Config{})
}

// source is whatever allocator runs now.
func (s *system) source() lease.Source { return current{s} }

type current struct{ s *system }

func (c current) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	return c.s.ledger.SyncLeases(ctx, req)
}

func (s *system) store() regionstore.Store {
	store, err := redis.Open(s.t.Context(), redis.Options{Region: "us", Timeout: time.Second}, s.redis.Addr())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = store.Shutdown() })
	return store
}

func (s *system) each(do func(gap int, h *hand)) {
	var all sync.WaitGroup
	for gap, h := range s.hands {
		all.Go(func() { do(gap, h) })
	}
	all.Wait()
}

// spendAll lets a new agent spend what is left, before and after the lost
// leases have expired, and checks the sum and the books.
func (s *system) spendAll() {
	r := agent.NewRunner(agent.RunnerConfig{
		Options: agent.Options{Region: "us", Process: rand.Text(), Store: s.store(), StoreDeadline: time.Second},
		Leases:  s.ledger, Policies: s.ledger,
		Keeper: agent.KeeperConfig{Rand: mathrand.New(mathrand.NewPCG(1, 2)), Nonce: rand.Text},
	})
	done := make(chan error, 1)
	go func() { done <- r.Run(context.Background()) }()
	// Until then the last lease has expired, and what dead processes held is aged out.
	expired := time.Now().Add(max(ttl, lease.ProcessDeadline) + lease.DefaultClocks().Guard(ttl) + 6*time.Second)
	s.each(func(_ int, h *hand) {
		for refused := 0; refused < 20 || time.Now().Before(expired); {
			a, err := r.Check(s.t.Context(), agent.Check{Budgets: []string{h.budget}, Cost: 1, Deadline: 50 * time.Millisecond})
			if err == nil && a.Outcome == agent.Allowed {
				h.spent++
				continue
			}
			refused++
			time.Sleep(20 * time.Millisecond)
			_, _ = s.ledger.Sweep(s.t.Context())
		}
	})
	r.Close()
	if err := <-done; err != nil {
		s.t.Error(err)
	}
	for gap, h := range s.hands {
		if h.spent > limit || h.spent < limit-most {
			s.t.Errorf("gap %d: %d of %d admitted", gap, h.spent, limit)
		}
	}
	for v, err := range s.ledger.Audit(s.t.Context()) {
		s.t.Errorf("audit: %v %v", v, err)
	}
}
