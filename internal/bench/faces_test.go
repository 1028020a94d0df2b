package bench

import (
	"bytes"
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
	"google.golang.org/protobuf/proto"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/load"
)

// face is one of the agent's faces: how a call of it is made for a key, how a
// server with a ready answer is.
type face struct {
	name string
	// ask makes one call for key's request, and fails if it was not allowed.
	ask func(conn *grpc.ClientConn, key int) error
	// method and messages, by key, are the same call in bytes.
	method   string
	messages [][]byte
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
		name:     "Envoy",
		ask:      func(conn *grpc.ClientConn, key int) error { _, err := ask(conn, key); return err },
		method:   ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName,
		messages: marshaled(requests),
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
		name:     "ration.v1",
		ask:      func(conn *grpc.ClientConn, key int) error { _, err := ask(conn, key); return err },
		method:   rationv1.LimitService_CheckLimits_FullMethodName,
		messages: marshaled(requests),
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

func marshaled[M proto.Message](requests []M) [][]byte {
	messages := make([][]byte, len(requests))
	for i, r := range requests {
		var err error
		if messages[i], err = proto.Marshal(r); err != nil {
			panic(err) // a request of this file
		}
	}
	return messages
}

// unary is a face's call in bytes, each for a random key.
func (f *face) unary() load.Unary {
	return load.Unary{
		Method:  f.method,
		Request: func(int) []byte { return f.messages[rand.IntN(len(f.messages))] },
		Accept: func(answer []byte) error {
			// The first field of both faces' answers, which is 1 if the call is allowed.
			if !bytes.HasPrefix(answer, []byte{1 << 3, 1}) {
				return fmt.Errorf("denied: %x", answer)
			}
			return nil
		},
	}
}

// wires opens connections for calls in bytes.
func wires(b *testing.B, addr string) []net.Conn {
	b.Helper()
	conns := make([]net.Conn, servedConns)
	for i := range conns {
		var err error
		if conns[i], err = net.Dial("tcp", addr); err != nil {
			b.Fatal(err)
		}
	}
	return conns
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
