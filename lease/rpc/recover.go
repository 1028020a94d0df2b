package rpc

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/ration-dev/ration/lease"
)

// Recover returns an interceptor that turns a handler's panic into INTERNAL,
// counts it, and logs it with its stack. The process goes on.
func Recover(panics *atomic.Int64, log *slog.Logger) grpc.UnaryServerInterceptor {
	return func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (reply any, err error) {
		defer func() {
			if cause := recover(); cause != nil {
				reply, err = nil, caught(info.FullMethod, cause, panics, log)
			}
		}()
		return handler(ctx, req)
	}
}

// RecoverStream is Recover for streaming calls.
func RecoverStream(panics *atomic.Int64, log *slog.Logger) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
		defer func() {
			if cause := recover(); cause != nil {
				err = caught(info.FullMethod, cause, panics, log)
			}
		}()
		return handler(srv, stream)
	}
}

func caught(method string, cause any, panics *atomic.Int64, log *slog.Logger) error {
	panics.Add(1)
	log.Error("a handler panicked", "method", method, "cause", cause, "stack", string(debug.Stack()))
	return EncodeError(lease.Errorf(lease.Internal, "", "internal error"))
}
