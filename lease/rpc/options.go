package rpc

import (
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/keepalive"
)

// MaxMessage bounds a message in bytes, either way. A full batch of
// lease.MaxItems takes about 2 MB with names of the largest size; a list of
// budgets may be longer.
const MaxMessage = 16 << 20

// A client probes a silent connection after probeAfter and gives it up after
// probeTimeout, so that a partition is noticed in seconds; a server lets it.
const (
	probeAfter   = 10 * time.Second
	probeTimeout = 3 * time.Second
)

// A connection is closed kindly after maxAge (gRPC adds jitter), so that
// clients find replicas that were added meanwhile.
const (
	maxAge      = 10 * time.Minute
	maxAgeGrace = 10 * time.Second
)

// maxStreams bounds the calls under way on one connection, and with them the
// memory that a caller can take up before its token is looked at.
const maxStreams = 1000

// ServerOptions are what every gRPC server of this project starts with:
// bounds on messages and what is in them, keepalive, and recovery from panics.
func ServerOptions(panics *atomic.Int64, log *slog.Logger) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage),
		grpc.MaxSendMsgSize(MaxMessage),
		grpc.ForceServerCodecV2(NewCodec()),
		grpc.MaxConcurrentStreams(maxStreams),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: probeAfter / 2, PermitWithoutStream: true}),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			Time: probeAfter, Timeout: probeTimeout,
			MaxConnectionAge: maxAge, MaxConnectionAgeGrace: maxAgeGrace,
		}),
		grpc.ChainUnaryInterceptor(Recover(panics, log)),
		grpc.ChainStreamInterceptor(RecoverStream(panics, log)),
	}
}

// clientOptions are the client's part of the same.
func clientOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(MaxMessage), grpc.MaxCallSendMsgSize(MaxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{
			Time: probeAfter, Timeout: probeTimeout, PermitWithoutStream: true,
		}),
		grpc.WithConnectParams(grpc.ConnectParams{Backoff: reconnect, MinConnectTimeout: probeTimeout}),
		grpc.WithDefaultServiceConfig(`{"loadBalancingConfig":[{"round_robin":{}}]}`),
		grpc.WithDisableServiceConfig(), // none from DNS
		grpc.WithDisableRetry(),
	}
}

// reconnect comes back within seconds: a region lives on its leases only so
// long.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
