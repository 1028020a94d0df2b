package redis

import (
	"context"
	"crypto/rand"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// shared opens a store under a prefix of its own on the shared server.
func shared(t testing.TB) *Store {
	t.Helper()
	url, prefix := testredis.Shared(t)
	return open(t, Options{Prefix: prefix}, url)
}

func nonces() (n [lease.Kinds]lease.Incarnation) {
	for i := range n {
		n[i] = lease.Incarnation(rand.Text())
	}
	return n
}

// openRow opens a budget's row.
func openRow(t testing.TB, s *Store, budget string) regionstore.OpenReply {
	t.Helper()
	r, err := s.Open(context.Background(), regionstore.OpenRequest{
		Budget: budget, Nonces: nonces(), LocalNonce: rand.Text(),
	})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// grant opens a row and installs a lump of n tokens for a minute.
func grant(t testing.TB, s *Store, budget string, n lease.Tokens) lease.Incarnation {
	t.Helper()
	inc := openRow(t, s, budget).View.Row.Leases[lease.Lump-1].Incarnation
	r := install(t, s, begin(t, s, budget, inc), n)
	if r.Outcomes[0] != regionstore.OK {
		t.Fatalf("install: %v", r.Outcomes)
	}
	return inc
}

// begin begins a lump's next sequence and returns the answer that grants n.
func begin(t testing.TB, s *Store, budget string, inc lease.Incarnation) regionstore.InstallRequest {
	t.Helper()
	b, err := s.Begin(context.Background(), regionstore.BeginRequest{
		Budget:  budget,
		Intents: []regionstore.Intent{{Kind: lease.Lump, Incarnation: inc, Want: 1, LowerBeta: -1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return regionstore.InstallRequest{Budget: budget, States: []lease.State{{
		Kind: lease.Lump, Incarnation: inc, Seq: b.Reports[0].Report.Seq, Status: lease.Active, TTL: time.Minute,
	}}}
}

func install(t testing.TB, s *Store, req regionstore.InstallRequest, n lease.Tokens) regionstore.InstallReply {
	t.Helper()
	req.States[0].Granted = n
	r, err := s.Install(context.Background(), req)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func takes(cost lease.Tokens, budgets ...string) regionstore.TakeRequest {
	var req regionstore.TakeRequest
	for _, b := range budgets {
		req.Takes = append(req.Takes, regionstore.Take{Budget: b, Cost: cost, Demand: cost})
	}
	return req
}

func take(t testing.TB, s *Store, cost lease.Tokens, budgets ...string) regionstore.TakeReply {
	t.Helper()
	r, err := s.Take(context.Background(), takes(cost, budgets...))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func read(t testing.TB, s *Store, budget string) regionstore.View {
	t.Helper()
	v, err := s.Read(context.Background(), []string{budget}, make([]regionstore.Now, 1))
	if err != nil {
		t.Fatal(err)
	}
	return v[0]
}

func lump(v regionstore.View) regionstore.Lease { return v.Row.Leases[lease.Lump-1] }

func wantUnavailable(t testing.TB, err error) {
	t.Helper()
	if lease.CodeOf(err) != lease.Unavailable {
		t.Errorf("got %v, want unavailable", err)
	}
}

// eventually retries what a real server needs some time for.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
