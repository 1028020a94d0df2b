package app

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

// AllocatorOptions says what an allocator serves. Store and Credentials are
// required.
type AllocatorOptions struct {
	// Store is the ledger; it stays the caller's to close.
	Store allocation.Store
	// Credentials tells whose a token is; rpc.Insecure lets messages name their
	// region.
	Credentials rpc.Credentials
	// Deployment has the clock errors and kind of store; its zero Clocks are
	// the defaults.
	Deployment policy.Deployment
	// Listen and HTTP are addresses; port 0 takes any free port.
	Listen, HTTP string
	// TLS secures gRPC; nil leaves it in the clear.
	TLS credentials.TransportCredentials
	// Drain is how the server ends.
	Drain Drain
	Log   *slog.Logger
	// Collectors are metrics of what the caller made, such as the store.
	Collectors []prometheus.Collector
}

// Drain says how long a server takes to end.
type Drain struct {
	// Pause is how long it goes on serving after it began to say that it does
	// not, so that balancers look elsewhere.
	Pause time.Duration
	// Deadline is how long calls under way may then take.
	Deadline time.Duration
}

const (
	sweepPeriod = 200 * time.Millisecond
	clockPeriod = time.Second
	poolPeriod  = 5 * time.Second
	// staleClock is how long after the last successful look at the ledger's
	// clock a replica still calls itself ready.
	staleClock = 5 * time.Second
)

// Allocator is the global side as a server. Make one with NewAllocator.
type Allocator struct {
	opt      AllocatorOptions
	core     *allocation.Allocator
	registry *prometheus.Registry
	stats    rpc.Stats
	panics   atomic.Int64
	pools    pools

	parts    stack
	grpc     *grpcServer
	web      *web
	source   lease.Source
	synced   *prometheus.HistogramVec
	draining atomic.Bool
	// seen is when the ledger's clock was last read, on this process's
	// monotonic clock in nanoseconds since begun.
	begun time.Time
	seen  atomic.Int64
	// ledger is whether the database answers.
	ledger *outage
	stop   sync.Once
	ended  error
}

// NewAllocator makes an allocator that has not started.
func NewAllocator(opt AllocatorOptions) *Allocator {
	if opt.Deployment.Clocks == (lease.Clocks{}) {
		opt.Deployment.Clocks = lease.DefaultClocks()
	}
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	a := &Allocator{opt: opt, registry: newRegistry(), begun: time.Now()}
	a.seen.Store(-int64(staleClock))
	a.ledger = &outage{what: "the ledger", now: func() time.Duration { return 1 + time.Since(a.begun) }}
	a.core = allocation.NewAllocator(opt.Store, allocation.Config{Clocks: opt.Deployment.Clocks},
		allocation.WithDeployment(opt.Deployment), allocation.WithObserver(a.failed))
	a.synced = durations("ration_sync_duration_seconds", "Time to answer one SyncLeases call, holds included.", "result")
	newAllocatorMetrics(a.registry, a)
	return a
}

// Core is the allocator itself, to apply budgets with.
func (a *Allocator) Core() *allocation.Allocator { return a.core }

// Source is where regions in the same process send their requests. It is nil
// before Start.
func (a *Allocator) Source() lease.Source { return a.source }

// GRPCAddr and HTTPAddr are the addresses in use once started.
func (a *Allocator) GRPCAddr() string { return a.grpc.addr() }

// HTTPAddr is described with GRPCAddr.
func (a *Allocator) HTTPAddr() string { return a.web.addr() }

// Start listens, starts the background work, and serves. After an error
// nothing runs.
func (a *Allocator) Start(ctx context.Context) error {
	if err := a.start(ctx); err != nil {
		return errors.Join(err, a.parts.close(context.WithoutCancel(ctx)))
	}
	return nil
}

func (a *Allocator) start(context.Context) error {
	committer := allocation.NewCommitter(a.core, max(4, runtime.GOMAXPROCS(0)))
	a.parts.push("the committer", func(context.Context) error { committer.Close(); return nil })
	a.source = &timed{allocation.NewLongPoll(committer), a.synced}

	var err error
	a.grpc, err = newGRPC(a.opt.Listen, "--listen", a.opt.TLS, a.opt.Log, func(r grpc.ServiceRegistrar) {
		rpc.NewServer(a.source, a.core, a.opt.Credentials, &a.stats).Register(r)
	}, append(rpc.ServerOptions(&a.stats.Panics, a.opt.Log), rpc.Admit(a.opt.Credentials, &a.stats))...)
	if err != nil {
		return err
	}
	a.web, err = newWeb(a.opt.HTTP, "--http", a.registry, a.opt.Log, a.Ready, nil)
	if err != nil {
		return errors.Join(err, a.grpc.listener.Close())
	}
	a.background()
	a.grpc.serve()
	a.parts.push("the gRPC server", a.grpc.stop)
	a.web.serve()
	a.parts.push("the HTTP server", a.web.stop)
	return nil
}

// background starts what time alone demands.
func (a *Allocator) background() {
	loop := func(what string, period time.Duration, do func(context.Context)) {
		a.parts.background(what, func(ctx context.Context) { every(ctx, period, &a.panics, a.opt.Log, do) })
	}
	loop("the clock", clockPeriod, a.tick)
	loop("the sweep", sweepPeriod, a.sweep)
	loop("the pools' metrics", poolPeriod, func(ctx context.Context) {
		if err := a.pools.look(ctx, a.opt.Store); err != nil && ctx.Err() == nil {
			a.failed(err)
		}
	})
}

// failed notes what went wrong in the ledger. That it does not answer is said
// by tick, once for however many calls; a fault of its own at once.
func (a *Allocator) failed(err error) {
	if lease.CodeOf(err) == lease.Unavailable || errors.Is(err, allocation.ErrUnknownCommit) {
		a.ledger.saw(err)
		return
	}
	a.opt.Log.Error("the ledger failed", "error", err)
}

// tick keeps the governed clock written and the readiness current.
func (a *Allocator) tick(ctx context.Context) {
	now, err := a.opt.Store.Now(ctx)
	if err != nil {
		if ctx.Err() == nil {
			a.failed(err)
		}
	} else {
		a.ledger.saw(nil)
		a.pools.now.Store(&now)
		a.seen.Store(int64(time.Since(a.begun)))
	}
	a.ledger.look(a.opt.Log, a.ledger.within(2*clockPeriod))
	a.grpc.ready(a.Ready() == nil)
}

// maxSweeps bounds one round of the sweep, so that it never starves the rest.
const maxSweeps = 50

func (a *Allocator) sweep(ctx context.Context) {
	for range maxSweeps {
		n, err := a.core.Sweep(ctx)
		if err != nil && ctx.Err() == nil {
			a.failed(err)
		}
		if n == 0 || err != nil || ctx.Err() != nil {
			return
		}
	}
}

var (
	errDraining = errors.New("draining")
	errLedger   = errors.New("the ledger does not answer")
)

// Ready returns nil if this replica should be sent requests, or why not.
func (a *Allocator) Ready() error {
	switch {
	case a.draining.Load():
		return errDraining
	case time.Since(a.begun)-time.Duration(a.seen.Load()) > staleClock:
		return errLedger
	}
	return nil
}

// Stop drains and ends everything. It may be called again and returns the same.
func (a *Allocator) Stop(ctx context.Context) error {
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

// pauseThen waits for the drain's pause and returns a context with its
// deadline.
func pauseThen(ctx context.Context, d Drain) (context.Context, context.CancelFunc) {
	pause := time.NewTimer(d.Pause)
	defer pause.Stop()
	select {
	case <-pause.C:
	case <-ctx.Done():
	}
	deadline := d.Deadline
	if deadline <= 0 {
		deadline = 10 * time.Second
	}
	return context.WithTimeout(ctx, deadline)
}

// timed measures the calls of a source.
type timed struct {
	lease.Source
	took *prometheus.HistogramVec
}

func (t *timed) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	start := time.Now()
	reply, err := t.Source.SyncLeases(ctx, req)
	result := "ok"
	if err != nil {
		result = "failed"
	}
	t.took.WithLabelValues(result).Observe(time.Since(start).Seconds())
	return reply, err
}
