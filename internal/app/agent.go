package app

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	mathrand "math/rand/v2"
	"net/http"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/agent/envoy"
	agenthttp "github.com/ration-dev/ration/agent/http"
	agentrpc "github.com/ration-dev/ration/agent/rpc"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Checker decides checks.
type Checker interface {
	Check(ctx context.Context, c agent.Check) (agent.Answer, error)
}

// AgentOptions says what an agent serves. Region, Store, Leases and Policies
// are required.
type AgentOptions struct {
	Region string
	// Store has the region's wallets; it stays the caller's to close.
	Store regionstore.Store
	// Leases and Policies are the allocator.
	Leases   lease.Source
	Policies policy.Source
	Clocks   lease.Clocks
	// GRPC and HTTP are addresses; port 0 takes any free port.
	GRPC, HTTP string
	TLS        credentials.TransportCredentials
	// StoreDeadline bounds each store call of a decision; 0 takes the agent's
	// default, as MaxAgents does: how many agents the region may have.
	StoreDeadline time.Duration
	MaxAgents     int
	Drain         Drain
	Log           *slog.Logger
	// Watch, if set, sees every check, its answer, and how long it took. It keeps
	// none of the check's lists, which are used again.
	Watch func(c agent.Check, a agent.Answer, took time.Duration)
}

// lookPeriod is how often health and outages are looked at.
const lookPeriod = 2 * time.Second

// Agent is a regional agent as a server. Make one with NewAgent.
type Agent struct {
	opt      AgentOptions
	runner   *agent.Runner
	registry *prometheus.Registry
	panics   atomic.Int64
	// allocator and store are what the agent depends on; opened is how often the
	// store's breaker had opened at the last look.
	allocator, store *outage
	opened           int64

	parts    stack
	grpc     *grpcServer
	web      *web
	draining atomic.Bool
	looking  sync.Mutex // one look at a time
	stop     sync.Once
	ended    error
}

// NewAgent makes an agent that has not started.
func NewAgent(opt AgentOptions) *Agent {
	if opt.Clocks == (lease.Clocks{}) {
		opt.Clocks = lease.DefaultClocks()
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	opt.Log = opt.Log.With("region", opt.Region)
	start := time.Now()
	now := func() time.Duration { return 1 + time.Since(start) }
	a := &Agent{
		opt: opt, registry: newRegistry(),
		allocator: &outage{what: "the allocator", now: now}, store: &outage{what: "the region's store", now: now},
	}
	times := newAgentTimes(a.store)
	far := watched{opt.Leases, opt.Policies, a.allocator}
	a.runner = agent.NewRunner(agent.RunnerConfig{
		Options: agent.Options{
			Region: opt.Region, Process: Nonce(), Store: opt.Store, Clocks: opt.Clocks,
			StoreDeadline: opt.StoreDeadline, MaxAgents: opt.MaxAgents, Observer: times,
		},
		Leases: far, Policies: far,
		Keeper: agent.KeeperConfig{Rand: newRand(), Nonce: Nonce},
		OnPanic: func(v any) {
			opt.Log.Error("the agent panicked", "panic", v, "stack", string(debug.Stack()))
		},
	})
	newAgentMetrics(a.registry, a.runner.Stats(), times, &wallets{ask: a.runner.Wallets}, &a.panics)
	return a
}

// Nonce is a name that never repeats: 128 random bits.
func Nonce() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// newRand is for jitter alone.
func newRand() *mathrand.Rand {
	return mathrand.New(mathrand.NewPCG(mathrand.Uint64(), mathrand.Uint64()))
}

// Check decides a check, as the servers do.
func (a *Agent) Check(ctx context.Context, c agent.Check) (agent.Answer, error) {
	start := time.Now()
	answer, err := a.runner.Check(ctx, c)
	if a.opt.Watch != nil && err == nil {
		a.opt.Watch(c, answer, time.Since(start))
	}
	return answer, err
}

// Match is agent.Runner's.
func (a *Agent) Match(have []agent.Descriptor, to []agent.Matched) []agent.Matched {
	return a.runner.Match(have, to)
}

// State is agent.Runner's.
func (a *Agent) State(budget string) (agent.Answer, bool) { return a.runner.State(budget) }

// Runner is the agent itself, to look into.
func (a *Agent) Runner() *agent.Runner { return a.runner }

// Region is the agent's region.
func (a *Agent) Region() string { return a.opt.Region }

// GRPCAddr and HTTPAddr are the addresses in use once started.
func (a *Agent) GRPCAddr() string { return a.grpc.addr() }

// HTTPAddr is described with GRPCAddr.
func (a *Agent) HTTPAddr() string { return a.web.addr() }

// Start listens, fills the wallets in the background, and serves. After an
// error nothing runs.
func (a *Agent) Start(ctx context.Context) error {
	if err := a.start(); err != nil {
		return errors.Join(err, a.parts.close(context.WithoutCancel(ctx)))
	}
	return nil
}

func (a *Agent) start() error {
	var err error
	a.grpc, err = newGRPC(a.opt.GRPC, "--grpc", a.opt.TLS, a.opt.Log, func(r grpc.ServiceRegistrar) {
		agentrpc.NewServer(a, &a.runner.Stats().Invalid).Register(r)
		envoy.NewServer(a, &a.runner.Stats().Invalid).Register(r)
	}, AgentServerOptions(&a.panics, a.opt.Log)...)
	if err != nil {
		return err
	}
	a.web, err = newWeb(a.opt.HTTP, "--http", a.registry, a.opt.Log, a.Ready, map[string]http.Handler{
		agenthttp.Path:       agenthttp.New(a, &a.runner.Stats().Invalid, &a.panics, a.opt.Log),
		"GET /debug/budgets": explainHandler(a.runner),
	})
	if err != nil {
		return errors.Join(err, a.grpc.listener.Close())
	}
	a.run()
	a.parts.background("the agent's health", func(ctx context.Context) { every(ctx, lookPeriod, &a.panics, a.opt.Log, a.look) })
	a.grpc.serve()
	a.parts.push("the gRPC server", a.grpc.stop)
	a.web.serve()
	a.parts.push("the HTTP server", a.web.stop)
	return nil
}

// AgentServerOptions are those of an agent's gRPC server, TLS aside, for whoever
// measures what such a server costs before it decides anything. panics counts
// what handlers did not recover from.
func AgentServerOptions(panics *atomic.Int64, log *slog.Logger) []grpc.ServerOption {
	return append(rpc.ServerOptions(panics, log),
		grpc.MaxRecvMsgSize(agentrpc.MaxMessage), grpc.NumStreamWorkers(streamWorkers), grpc.StaticConnWindowSize(connWindow))
}

// connWindow is how many bytes a connection takes before its sender has to hear
// that more may come. It is fixed, and a stream's with it (64 KiB, about the
// largest message): left alone, gRPC finds out what a connection could carry by a
// ping and its answer in every round trip, a fourteenth of what calls this small
// cost.
const connWindow = 1 << 20

// streamWorkers are goroutines that stay and answer one call after another; while
// all of them are busy, a call gets one of its own, whose stack has to grow first:
// a tenth of what a call costs.
const streamWorkers = 64

// run starts the runner. Its end closes the region's leases, so it comes after
// the servers have ended.
func (a *Agent) run() {
	done := make(chan error, 1)
	go func() { done <- a.runner.Run(context.Background()) }()
	a.parts.push("the agent", func(context.Context) error {
		a.runner.Close()
		return <-done
	})
}

// look keeps health current, and says what does not answer: the
// store once its breaker opened, or nothing came from it since the last look,
// because a call may be late now and then.
func (a *Agent) look(context.Context) {
	a.looking.Lock()
	defer a.looking.Unlock()
	a.grpc.ready(a.Ready() == nil)
	a.allocator.look(a.opt.Log, a.allocator.last() != nil)
	opened := a.runner.Stats().BreakerOpened.Load()
	a.store.look(a.opt.Log, opened > a.opened || a.store.lasts(lookPeriod))
	a.opened = opened
}

// Ready returns nil if this agent decides, if only by a budget's failure mode,
// or why not.
func (a *Agent) Ready() error {
	switch {
	case a.draining.Load():
		return errDraining
	case !a.runner.Ready() && a.allocator.last() != nil:
		return fmt.Errorf("the budgets are not known yet: %w", a.allocator.last())
	case !a.runner.Ready():
		return errors.New("the budgets are not known yet")
	}
	return nil
}

// AwaitReady returns nil once the agent is ready, or when ctx ends why not.
func (a *Agent) AwaitReady(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := a.Ready()
		if err == nil {
			a.grpc.ready(true)
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return fmt.Errorf("the agent of %s is not ready: %w", a.opt.Region, err)
		}
	}
}

// Stop drains and ends everything: the last agent of a region closes its
// leases. It may be called again and returns the same.
func (a *Agent) Stop(ctx context.Context) error {
	a.stop.Do(func() {
		a.draining.Store(true)
		if a.grpc != nil {
			a.grpc.health.Shutdown()
		}
		ctx, cancel := pauseThen(ctx, a.opt.Drain)
		defer cancel()
		a.ended = a.parts.close(ctx)
	})
	return a.ended
}
