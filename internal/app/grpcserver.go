package app

import (
	"context"
	"log/slog"
	"net"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
)

// grpcServer is a gRPC server with health, reflection, and recovery.
type grpcServer struct {
	server   *grpc.Server
	health   *health.Server
	listener net.Listener
	log      *slog.Logger
	done     chan struct{}
}

// newGRPC listens and registers; serve makes it answer.
func newGRPC(address, flag string, tls credentials.TransportCredentials, log *slog.Logger, register func(grpc.ServiceRegistrar), options ...grpc.ServerOption) (*grpcServer, error) {
	l, err := listen(address, flag)
	if err != nil {
		return nil, err
	}
	if tls != nil {
		options = append(options, grpc.Creds(tls))
	}
	g := &grpcServer{
		server: grpc.NewServer(options...), health: health.NewServer(),
		listener: l, log: log, done: make(chan struct{}),
	}
	healthv1.RegisterHealthServer(g.server, g.health)
	register(g.server)
	reflection.Register(g.server)
	g.ready(false)
	return g, nil
}

func (g *grpcServer) addr() string { return g.listener.Addr().String() }

// serve starts answering in the background.
func (g *grpcServer) serve() {
	go func() {
		defer close(g.done)
		if err := g.server.Serve(g.listener); err != nil {
			g.log.Error("gRPC server ended", "error", err)
		}
	}()
}

// ready tells health checks whether to send calls here.
func (g *grpcServer) ready(yes bool) {
	status := healthv1.HealthCheckResponse_NOT_SERVING
	if yes {
		status = healthv1.HealthCheckResponse_SERVING
	}
	g.health.SetServingStatus("", status)
}

// stop lets calls finish until ctx ends, then ends them: an open stream would
// hold GracefulStop for ever.
func (g *grpcServer) stop(ctx context.Context) error {
	g.health.Shutdown()
	graceful := make(chan struct{})
	go func() {
		defer close(graceful)
		g.server.GracefulStop()
	}()
	select {
	case <-graceful:
	case <-ctx.Done():
		g.server.Stop()
		<-graceful
	}
	<-g.done
	return nil
}
