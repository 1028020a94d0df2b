package load

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
)

// health answers as its function does.
type health struct {
	grpc_health_v1.UnimplementedHealthServer
	answer func(service string) error
}

func (h health) Check(_ context.Context, r *grpc_health_v1.HealthCheckRequest) (*grpc_health_v1.HealthCheckResponse, error) {
	return &grpc_health_v1.HealthCheckResponse{Status: grpc_health_v1.HealthCheckResponse_SERVING}, h.answer(r.GetService())
}

// wired runs a load over two connections to a server in memory, with time of its
// own.
func wired(t *testing.T, rate float64, answer func(string) error, change func(*Unary, *grpc.Server)) (r Result) {
	synctest.Test(t, func(t *testing.T) {
		server, l := grpc.NewServer(), bufconn.Listen(1<<20)
		grpc_health_v1.RegisterHealthServer(server, health{answer: answer})
		go func() { _ = server.Serve(l) }()
		defer server.Stop()
		conns := make([]net.Conn, 2)
		for i := range conns {
			var err error
			if conns[i], err = l.Dial(); err != nil {
				t.Fatal(err)
			}
		}
		call := Unary{
			Method: grpc_health_v1.Health_Check_FullMethodName,
			Request: func(n int) []byte {
				m, err := proto.Marshal(&grpc_health_v1.HealthCheckRequest{Service: strings.Repeat("x", 1000+n%10)})
				if err != nil {
					t.Error(err)
				}
				return m
			},
			Accept: func(answer []byte) error {
				var m grpc_health_v1.HealthCheckResponse
				if err := proto.Unmarshal(answer, &m); err != nil || m.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
					return errors.New("not serving")
				}
				return nil
			},
		}
		if change != nil {
			change(&call, server)
		}
		r = openWire(conns, call, rate, time.Second, time.Sleep)
	})
	return r
}

func fine(string) error { return nil }

func TestWireCallsOnSchedule(t *testing.T) {
	r := wired(t, 2000, fine, nil)
	if r.Calls != 2000 || r.Failed != 0 || r.Err != nil {
		t.Errorf("%d calls, %d failed: %v", r.Calls, r.Failed, r.Err)
	}
	if r.Quantile(100) > 2*wireTick || r.Length < 999*time.Millisecond || r.Length > 1001*time.Millisecond {
		t.Errorf("the slowest after %v, all in %v", r.Quantile(100), r.Length)
	}
}

// Calls that could not be made in time are late all the same. Seen to fail with
// latency from when a call was written.
func TestWireCountsFromWhenACallWasDue(t *testing.T) {
	r := wired(t, 1000, fine, func(c *Unary, _ *grpc.Server) {
		request := c.Request
		c.Request = func(n int) []byte {
			if n == 500 {
				time.Sleep(100 * time.Millisecond)
			}
			return request(n)
		}
	})
	for q, want := range map[float64]time.Duration{50: 0, 89: 0, 95: 50 * time.Millisecond, 99: 90 * time.Millisecond} {
		if got := r.Quantile(q); got < want-time.Millisecond || got > want+time.Millisecond {
			t.Errorf("quantile %v: %v, want about %v", q, got, want)
		}
	}
}

// Calls under way do not wait for one another.
func TestWireGoesOnWithCallsUnderWay(t *testing.T) {
	r := wired(t, 1000, func(string) error { time.Sleep(90 * time.Millisecond); return nil }, nil)
	if r.Failed != 0 || r.Quantile(100) > 91*time.Millisecond {
		t.Errorf("%d failed, the slowest after %v", r.Failed, r.Quantile(100))
	}
}

func TestWireCountsFailures(t *testing.T) {
	r := wired(t, 100, func(service string) error {
		if len(service)%10 == 0 {
			return status.Error(codes.Unavailable, "on purpose")
		}
		return nil
	}, nil)
	if r.Calls != 100 || r.Failed != 10 || r.Err == nil || !strings.Contains(r.Err.Error(), "status 14") {
		t.Errorf("%d of %d failed: %v", r.Failed, r.Calls, r.Err)
	}
	refused := errors.New("refused")
	r = wired(t, 100, fine, func(c *Unary, _ *grpc.Server) { c.Accept = func([]byte) error { return refused } })
	if r.Failed != 100 || r.Err != refused {
		t.Errorf("%d failed: %v", r.Failed, r.Err)
	}
	r = wired(t, 100, fine, func(_ *Unary, s *grpc.Server) { time.AfterFunc(500*time.Millisecond, s.Stop) })
	if r.Failed < 49 || r.Failed > 51 || r.Err == nil || !strings.Contains(r.Err.Error(), "without an answer") {
		t.Errorf("%d failed when the server ended: %v", r.Failed, r.Err)
	}
}
