package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/load"
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

// caller makes calls of a face on these connections, each for a random key.
func caller(f face, keys int, conns [servedConns]*grpc.ClientConn) load.Call {
	return func(caller, _ int) error { return f.ask(conns[caller%servedConns], rand.IntN(keys)) }
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
