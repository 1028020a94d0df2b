package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	agentrpc "github.com/ration-dev/ration/agent/rpc"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/load"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

const (
	servedCallers = 64
	servedConns   = 4
	manyKeys      = 10_000
	servedRounds  = 11
	servedFor     = 500 * time.Millisecond
	// Latency is measured for longer, after a second of the same load: two calls
	// of a hundred are in the first moments' stalls otherwise, while 256 stacks
	// grow and the heap with them.
	latencyRounds = 7
	latencyFor    = 2 * time.Second
	latencyBefore = time.Second
	// servedBefore is for how long many keys are asked before each measurement, as
	// often as while it lasts: what an agent holds ahead follows that, and the
	// yardstick's turn is a pause. It is more than a process holds tokens for.
	servedBefore = 10 * time.Second
	// servedRate is each budget's: more than is asked, as refusals are cheaper.
	servedRate = 1_000_000
)

// face is one of the agent's faces: how a call of it is made for a key, how a
// server with a ready answer is.
type face struct {
	name string
	// ask makes one call for key's request, and fails if it was not allowed.
	ask func(conn *grpc.ClientConn, key int) error
	// ready registers a service that returns what an agent returned once.
	ready func(r grpc.ServiceRegistrar, from *grpc.ClientConn) error
}

func faces(keys int) []face { return []face{envoyFace(keys), rationFace(keys)} }

func envoyFace(keys int) face {
	requests := make([]*ratelimitv3.RateLimitRequest, keys)
	for i := range requests {
		requests[i] = &ratelimitv3.RateLimitRequest{Domain: "edge", Descriptors: []*commonv3.RateLimitDescriptor{{
			Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "tenant", Value: "acme"}, {Key: "route", Value: route(i)}},
		}}}
	}
	ask := func(conn *grpc.ClientConn, key int) (*ratelimitv3.RateLimitResponse, error) {
		r, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(context.Background(), requests[key])
		if err == nil && r.GetOverallCode() != ratelimitv3.RateLimitResponse_OK {
			err = fmt.Errorf("denied: %v", r)
		}
		return r, err
	}
	return face{
		name: "Envoy",
		ask:  func(conn *grpc.ClientConn, key int) error { _, err := ask(conn, key); return err },
		ready: func(r grpc.ServiceRegistrar, from *grpc.ClientConn) error {
			reply, err := ask(from, 0)
			ratelimitv3.RegisterRateLimitServiceServer(r, readyEnvoy{reply: reply})
			return err
		},
	}
}

type readyEnvoy struct {
	ratelimitv3.UnimplementedRateLimitServiceServer
	reply *ratelimitv3.RateLimitResponse
}

func (s readyEnvoy) ShouldRateLimit(context.Context, *ratelimitv3.RateLimitRequest) (*ratelimitv3.RateLimitResponse, error) {
	return s.reply, nil
}

func rationFace(keys int) face {
	requests := make([]*rationv1.CheckLimitsRequest, keys)
	for i := range requests {
		requests[i] = &rationv1.CheckLimitsRequest{
			Descriptors: []*rationv1.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "route", Value: route(i)}},
		}
	}
	ask := func(conn *grpc.ClientConn, key int) (*rationv1.CheckLimitsResponse, error) {
		r, err := rationv1.NewLimitServiceClient(conn).CheckLimits(context.Background(), requests[key])
		if err == nil && !r.GetAllowed() {
			err = fmt.Errorf("denied: %v", r)
		}
		return r, err
	}
	return face{
		name: "ration.v1",
		ask:  func(conn *grpc.ClientConn, key int) error { _, err := ask(conn, key); return err },
		ready: func(r grpc.ServiceRegistrar, from *grpc.ClientConn) error {
			reply, err := ask(from, 0)
			rationv1.RegisterLimitServiceServer(r, readyRation{reply: reply})
			return err
		},
	}
}

type readyRation struct {
	rationv1.UnimplementedLimitServiceServer
	reply *rationv1.CheckLimitsResponse
}

func (s readyRation) CheckLimits(context.Context, *rationv1.CheckLimitsRequest) (*rationv1.CheckLimitsResponse, error) {
	return s.reply, nil
}

// dial opens connections of which callers take one each in turn.
func dial(b *testing.B, addr string) (conns [servedConns]*grpc.ClientConn) {
	b.Helper()
	for i := range conns {
		conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return conns
}

// noop serves a face's ready answer, with the agent's own options.
func noop(b *testing.B, f face, from *grpc.ClientConn) (addr string) {
	b.Helper()
	server := grpc.NewServer(append(rpc.ServerOptions(new(atomic.Int64), quiet), grpc.MaxRecvMsgSize(agentrpc.MaxMessage))...)
	if err := f.ready(server, from); err != nil {
		b.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(server.Stop)
	return l.Addr().String()
}

// caller makes calls of a face on these connections, each for a random key.
func caller(f face, keys int, conns [servedConns]*grpc.ClientConn) load.Call {
	return func(caller, _ int) error { return f.ask(conns[caller%servedConns], rand.IntN(keys)) }
}

func BenchmarkServed(b *testing.B) {
	for _, keys := range []int{1, manyKeys} {
		strategy := policy.Dynamic
		if keys == manyKeys {
			// What leases of so many budgets cost is another row; these need few.
			strategy = policy.Static
		}
		d := deploy(b, 1, routesOf(b, keys, servedRate, strategy))
		for _, f := range faces(keys) {
			b.Run(fmt.Sprintf("%s/keys=%d", f.name, keys), func(b *testing.B) { served(b, d, f, keys) })
		}
	}
}

func served(b *testing.B, d *deployment, f face, keys int) {
	conns := dial(b, d.agents[0].GRPCAddr())
	warm(b, f, keys, conns[0])
	ours := caller(f, keys, conns)
	yardstick := caller(f, keys, dial(b, noop(b, f, conns[0])))
	before := d.decided()
	turns, latencyTurns, lead := servedRounds, latencyRounds, time.Duration(0)
	if keys > 1 {
		turns, latencyTurns, lead = rounds, rounds, servedBefore
	}
	closed := func(call load.Call, lead time.Duration) func() float64 {
		return func() float64 {
			load.Closed(servedCallers, lead, call)
			return noted(b, load.Closed(servedCallers, servedFor, call)).PerSecond()
		}
	}
	got := compare(turns, closed(ours, lead), closed(yardstick, 0))
	what := fmt.Sprintf("%s over gRPC, %s", f.name, map[bool]string{true: "one hot key", false: count(float64(keys)) + " keys"}[keys == 1])
	report(Row{
		what + fmt.Sprintf(", %d callers", servedCallers),
		perSecond(got.Ours), perSecond(got.Yardstick) + " no-op server", ratio(got.Ratio),
		map[bool]string{true: "≥ 0.8", false: "≥ 0.6"}[keys == 1],
	})
	for _, at := range []struct {
		part, goal string
		rate       float64
	}{{"half", "< 5 ms", got.Ours / 2}, {"a quarter", "", got.Ours / 4}} {
		late := compare(latencyTurns, latency(b, ours, at.rate, lead), latency(b, yardstick, at.rate, 0))
		report(Row{
			what + fmt.Sprintf(", p99 at %s of that, open-loop", at.part),
			count(late.Ours) + " ms", count(late.Yardstick) + " ms no-op server", ratio(late.Ratio), at.goal,
		})
	}
	after := d.decided()
	for m := range after {
		after[m] -= before[m]
	}
	b.Logf("decided from %v", after)
}

// latency measures the 99th percentile of this many calls per second, in
// milliseconds, once they have been made for lead.
func latency(b *testing.B, call load.Call, rate float64, lead time.Duration) func() float64 {
	return func() float64 {
		load.Open(4*servedCallers, rate, max(lead, latencyBefore), call)
		r := noted(b, load.Open(4*servedCallers, rate, latencyFor, call))
		return r.Quantile(99).Seconds() * 1000
	}
}

// noted logs what failed in a run: a refusal would be cheaper than a decision.
func noted(b *testing.B, r load.Result) load.Result {
	if r.Failed > 0 {
		b.Logf("%d of %d failed: %v", r.Failed, r.Calls, r.Err)
	}
	return r
}

// warm asks for every key until it is allowed: that the first request waits for
// a lease is measured elsewhere.
func warm(b *testing.B, f face, keys int, conn *grpc.ClientConn) {
	b.Helper()
	deadline := time.Now().Add(time.Minute)
	var next atomic.Int64
	var running sync.WaitGroup
	for range servedCallers {
		running.Go(func() {
			for key := next.Add(1) - 1; key < int64(keys); key = next.Add(1) - 1 {
				for f.ask(conn, int(key)) != nil {
					if time.Now().After(deadline) {
						b.Errorf("key %d has no tokens after a minute", key)
						return
					}
				}
			}
		})
	}
	running.Wait()
}
