package wire_test

import (
	"context"
	"io"
	"log/slog"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/internal/wire/wiretest"
	"github.com/ration-dev/ration/lease/rpc"
)

// unreadable is a request whose reading panics.
type unreadable struct{}

func (*unreadable) Read([]byte, wire.Text) bool { panic("on purpose") }
func (*unreadable) Reset() bool                 { return true }

// A message whose reading panics costs its call, not the process. Caught: a
// message read before the interceptors are called.
func TestAPanicOfAReaderCostsItsCall(t *testing.T) {
	method := wiretest.Method(func(r grpc.ServiceRegistrar) {
		wire.Register(r, rationv1.File_ration_v1_limit_proto.Services().ByName("LimitService"),
			func(context.Context, *unreadable) (*wire.Reply, error) { return wire.NewReply(), nil })
	})
	var panics atomic.Int64
	decode := func(q any) error { return rpc.NewCodec().Unmarshal(nil, q) }
	recovers := rpc.Recover(&panics, slog.New(slog.NewTextHandler(io.Discard, nil)))
	if _, err := method(nil, t.Context(), decode, recovers); status.Code(err) != codes.Internal || panics.Load() != 1 {
		t.Errorf("%v, and %d panics counted", err, panics.Load())
	}
}
