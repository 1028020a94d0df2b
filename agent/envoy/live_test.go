package envoy

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/allocation"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	wallet "github.com/ration-dev/ration/regionstore/memory"
)

func clock() lease.Time { return lease.Time(time.Now().UnixMicro()) }

// once is a budget of n tokens, all of them this region's, that nothing
// refills while a test runs.
func once(name string, n lease.Tokens, match ...string) policy.Budget {
	return matching(policy.Budget{
		Name: name, Strategy: policy.Static, Regions: []policy.Region{{Name: "us", Weight: 1}},
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Hour}, Burst: n},
	}, match...)
}

func matching(b policy.Budget, pairs ...string) policy.Budget {
	b.Match = map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		b.Match[pairs[i]] = pairs[i+1]
	}
	return b
}

// live is an agent over a ledger and a store in memory.
type live struct {
	*agent.Runner
	ledger *allocation.Allocator
}

func newLive(t *testing.T, budgets ...policy.Budget) *live {
	t.Helper()
	l := &live{ledger: allocation.NewAllocator(ledger.New(clock, ledger.WithCheck()), allocation.Config{})}
	if _, err := l.ledger.Apply(t.Context(), budgets); err != nil {
		t.Fatal(err)
	}
	var nonces atomic.Int64
	nonce := func() string { return fmt.Sprint("n", nonces.Add(1)) }
	l.Runner = agent.NewRunner(agent.RunnerConfig{
		Options: agent.Options{
			Region: "us", Process: nonce(), Store: wallet.New(clock, nonce, regionstore.DefaultConfig()),
			StoreDeadline: -1, Deadline: 10 * time.Second,
		},
		Leases: l.ledger, Policies: l.ledger,
		Keeper: agent.KeeperConfig{Rand: rand.New(rand.NewPCG(1, 2)), Nonce: nonce},
	})
	go func() {
		if err := l.Run(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(l.Close)
	for start := time.Now(); !l.filled(t, budgets); time.Sleep(time.Millisecond) {
		if time.Since(start) > 10*time.Second {
			t.Fatal("the budgets' tokens never came")
		}
	}
	return l
}

func (l *live) filled(t *testing.T, budgets []policy.Budget) bool {
	for _, b := range budgets {
		if !l.Ready() || !b.Contract.IsQuota() && l.left(t, b.Name) != b.Contract.Burst {
			return false
		}
	}
	return true
}

// left is what a peek says is left of a budget.
func (l *live) left(t *testing.T, budget string) lease.Tokens {
	t.Helper()
	a, err := l.Check(t.Context(), agent.Check{Budgets: []string{budget}})
	if err != nil {
		t.Fatal(err)
	}
	return a.Remaining
}

// serve serves a and returns a client and the count of malformed requests.
func serve(t *testing.T, a Agent) (ratelimitv3.RateLimitServiceClient, *atomic.Int64) {
	t.Helper()
	conn, invalid := dial(t, a)
	return ratelimitv3.NewRateLimitServiceClient(conn), invalid
}

func dial(t *testing.T, a Agent) (*grpc.ClientConn, *atomic.Int64) {
	t.Helper()
	invalid := new(atomic.Int64)
	options := leaserpc.ServerOptions(new(atomic.Int64), slog.New(slog.NewTextHandler(io.Discard, nil)))
	server := grpc.NewServer(options...)
	NewServer(a, invalid).Register(server)
	listener := bufconn.Listen(1 << 20)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, invalid
}

func descriptor(pairs ...string) *commonv3.RateLimitDescriptor {
	d := &commonv3.RateLimitDescriptor{}
	for i := 0; i < len(pairs); i += 2 {
		d.Entries = append(d.Entries, &commonv3.RateLimitDescriptor_Entry{Key: pairs[i], Value: pairs[i+1]})
	}
	return d
}

// adding gives a descriptor a hits_addend of its own.
func adding(n uint64, d *commonv3.RateLimitDescriptor) *commonv3.RateLimitDescriptor {
	d.HitsAddend = wrapperspb.UInt64(n)
	return d
}

func asking(hits uint32, descriptors ...*commonv3.RateLimitDescriptor) *ratelimitv3.RateLimitRequest {
	return &ratelimitv3.RateLimitRequest{Domain: "edge", Descriptors: descriptors, HitsAddend: hits}
}
