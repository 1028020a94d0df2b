package bench

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

// The roles that a process of this binary can have.
const (
	roleAllocator = "allocator"
	roleAgent     = "agent"
	roleNoop      = "no-op"
)

// roleOptions has what each role needs.
type roleOptions struct {
	Budgets   []policy.Budget // the allocator's
	Allocator string          // the agent's: addresses
	Redis     string
	Agent     string // the no-op's: whose answers it has ready
}

// readyWithin is how long a role may take until it serves.
const readyWithin = time.Minute

func serve(role string, opt roleOptions) (told, error) {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	switch role {
	case roleAllocator:
		a, err := startAllocator(ctx, opt.Budgets)
		if err != nil {
			return told{}, err
		}
		return told{GRPC: a.GRPCAddr(), HTTP: a.HTTPAddr()}, nil
	case roleAgent:
		return serveAgent(ctx, opt)
	case roleNoop:
		return serveNoop(opt.Agent)
	}
	return told{}, fmt.Errorf("no role %q", role)
}

func serveAgent(ctx context.Context, opt roleOptions) (told, error) {
	store, err := openStore(ctx, opt.Redis)
	if err != nil {
		return told{}, err
	}
	conn, err := rpc.Dial(rpc.Dialing{Target: opt.Allocator})
	if err != nil {
		return told{}, err
	}
	allocator := rpc.NewClient(conn, "us")
	a, err := startAgent(ctx, store, allocator, allocator)
	if err != nil {
		return told{}, err
	}
	return told{GRPC: a.GRPCAddr(), HTTP: a.HTTPAddr()}, nil
}

// serveNoop serves every face's ready answer, with the options of an agent's
// server.
func serveNoop(agent string) (told, error) {
	conn, err := grpc.NewClient(agent, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return told{}, err
	}
	defer conn.Close()
	server := grpc.NewServer(app.AgentServerOptions(new(atomic.Int64), quiet)...)
	for _, f := range faces(1) {
		if err := f.ready(server, conn); err != nil {
			return told{}, err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return told{}, err
	}
	go func() { _ = server.Serve(l) }()
	return told{GRPC: l.Addr().String()}, nil
}
