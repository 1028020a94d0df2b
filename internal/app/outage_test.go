package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	wallet "github.com/ration-dev/ration/regionstore/memory"
)

// However many calls fail, and some succeed between, an outage is said once,
// and its end once it is one. Seen to catch: saying it at each look.
func TestAnOutageIsSaidOnce(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	now := time.Hour
	o := &outage{what: "the allocator", now: func() time.Duration { return now }}
	pass := func(err error) {
		now += time.Second
		o.saw(err)
		o.look(log, o.last() != nil)
	}
	said := func(downs, ups int) {
		t.Helper()
		if d, u := strings.Count(out.String(), "does not answer"), strings.Count(out.String(), "answers again"); d != downs || u != ups {
			t.Errorf("said %d and %d times, want %d and %d:\n%s", d, u, downs, ups, out.String())
		}
	}
	pass(nil)
	said(0, 0)
	for range 10 {
		pass(errors.New("connection refused"))
		pass(nil)
	}
	said(1, 0)
	for range 10 {
		pass(nil)
	}
	said(1, 1)
	pass(errors.New("connection refused"))
	said(2, 1)
	if !strings.Contains(out.String(), "connection refused") {
		t.Error("the reason is not said")
	}
}

// A ledger whose clock can be read and whose transactions fail is said to be
// away, once; a fault of its own each time. Seen to catch: a reading of the clock
// that hides the transactions that fail, a line for each of them.
func TestAnAllocatorSaysOnceThatItsLedgerIsAway(t *testing.T) {
	var out lockedBuffer
	a := NewAllocator(AllocatorOptions{
		Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0",
		Log: slog.New(slog.NewJSONHandler(&out, nil)),
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop(context.Background()) }()
	for !strings.Contains(out.String(), "the ledger does not answer") {
		a.failed(lease.Errorf(lease.Unavailable, "", "connection refused"))
		a.failed(allocation.ErrUnknownCommit)
		time.Sleep(time.Millisecond)
	}
	a.failed(lease.Errorf(lease.Internal, "", "a fault"))
	a.failed(lease.Errorf(lease.Internal, "", "a fault"))
	text := out.String()
	if n, faults := strings.Count(text, "does not answer"), strings.Count(text, "the ledger failed"); n != 1 || faults != 2 {
		t.Errorf("the outage is said %d times, faults %d times:\n%s", n, faults, text)
	}
}

// lockedBuffer is a log that is read while it is written.
type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

type nobody struct{}

func (nobody) SyncLeases(context.Context, lease.SyncRequest) (lease.SyncReply, error) {
	return lease.SyncReply{}, lease.Errorf(lease.Unauthenticated, "", "no such token")
}

func (nobody) ListBudgets(context.Context, uint64) (policy.List, error) {
	return policy.List{}, lease.Errorf(lease.Unauthenticated, "", "no such token")
}

// An agent whose token is refused says so where its operator looks: in its log
// and at /readyz. Seen to catch: a list of budgets whose failure nobody hears of.
func TestAnAgentSaysWhyItIsNotReady(t *testing.T) {
	var out lockedBuffer
	a := NewAgent(AgentOptions{
		Region: "us", Store: wallet.New(wallClock, Nonce, regionstore.DefaultConfig()), Leases: nobody{}, Policies: nobody{},
		GRPC: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: slog.New(slog.NewJSONHandler(&out, nil)),
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Stop(context.Background()) }()
	for a.allocator.last() == nil {
		time.Sleep(time.Millisecond)
	}
	if status, body := get(t, "http://"+a.HTTPAddr()+"/readyz"); status != 503 || !strings.Contains(body, "no such token") {
		t.Errorf("%d %s", status, body)
	}
	for !strings.Contains(out.String(), "no such token") {
		time.Sleep(time.Millisecond)
	}
}
