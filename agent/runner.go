package agent

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// flushEvery is how often a process settles what it spent of its prefetch.
const flushEvery = 50 * time.Millisecond

// Workers for the Keeper's effects: on the store, whose steps share round trips
// when many are under way, and on the ledger, whose calls last a round trip and
// may be held back until tokens come.
const (
	storeWorkers  = 64
	ledgerWorkers = 64
	urgentQueue   = 1024
)

// Runner is an agent as a process runs it: the thin shell of goroutines and
// timers around a Decider and a Keeper. Make one with NewRunner, Run it, and
// Close it.
type Runner struct {
	stats    Stats
	decider  *Decider
	keeper   *Keeper
	executor Executor

	events chan Event
	urgent chan Urgent
	asks   chan func(*Keeper)
	// budgets has room for one list; a newer one takes its place.
	budgets chan []*terms

	closing chan struct{}
	// flushed is closed once the flusher has ended.
	flushed   chan struct{}
	closeOnce sync.Once
	running   atomic.Bool
	done      chan struct{}
	onPanic   func(value any)
}

// RunnerConfig is what a Runner needs beside Options.
type RunnerConfig struct {
	Options  Options
	Leases   lease.Source
	Policies policy.Source
	Keeper   KeeperConfig
	// OnPanic hears of every panic that was caught, for logs; may be nil.
	OnPanic func(value any)
}

// NewRunner returns a Runner that is not running yet: its checks are answered
// as unavailable until Run has listed the budgets.
func NewRunner(cfg RunnerConfig) *Runner {
	r := &Runner{
		events:  make(chan Event, 256),
		urgent:  make(chan Urgent, urgentQueue),
		asks:    make(chan func(*Keeper)),
		budgets: make(chan []*terms, 1),
		closing: make(chan struct{}),
		flushed: make(chan struct{}),
		done:    make(chan struct{}),
		onPanic: cfg.OnPanic,
	}
	cfg.Keeper.Region, cfg.Keeper.Process = cfg.Options.Region, cfg.Options.Process
	cfg.Keeper.Clocks, cfg.Keeper.Stats = cfg.Options.Clocks, &r.stats
	r.decider = NewDecider(cfg.Options, &r.stats, r.want)
	r.keeper = NewKeeper(cfg.Keeper)
	r.executor = Executor{Decider: r.decider, Leases: cfg.Leases, Policies: cfg.Policies}
	return r
}

// Stats returns the live counters.
func (r *Runner) Stats() *Stats { return &r.stats }

// Ready reports whether the budgets are known, so that checks are decided.
func (r *Runner) Ready() bool { return r.decider.Ready() }

// want passes an urgent wish on without blocking: a later decision repeats
// what is dropped here.
func (r *Runner) want(u Urgent) {
	select {
	case r.urgent <- u:
	default:
		r.stats.UrgentDropped.Add(1)
	}
}

// Check decides c, waiting for tokens from afar as long as c and its budgets
// allow. The error is a *lease.Error about a field of c; that no decision
// could be made is an Answer, as is every check once Close was called. It keeps
// none of c's lists. Safe for concurrent use.
func (r *Runner) Check(ctx context.Context, c Check) (answer Answer, err error) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
			answer, err = Answer{}, lease.Errorf(lease.Internal, "", "the decision failed")
		}
	}()
	select {
	case <-r.closing:
		return Answer{Outcome: Unavailable, Mode: FromMemory, Reason: reasonClosing}, nil
	default:
	}
	answer, pending, err := r.decider.Begin(ctx, c)
	for pending != nil && err == nil {
		if !r.await(ctx, pending) {
			r.decider.Abandon(pending)
			return Answer{Outcome: Unavailable, Mode: FromStore, Reason: reasonNoLease}, nil
		}
		answer, pending, err = r.decider.Resume(ctx, pending)
	}
	return answer, err
}

// await returns when p is to be tried again; false when the caller left.
func (r *Runner) await(ctx context.Context, p *Pending) bool {
	timer := time.NewTimer(max(0, p.At-r.decider.opt.Now()))
	defer timer.Stop()
	select {
	case <-p.Arrived:
	case <-timer.C:
	case <-r.closing:
		return false
	case <-ctx.Done():
		return false
	}
	return true
}

func (r *Runner) panicked(v any) {
	r.stats.Panics.Add(1)
	if r.onPanic != nil {
		r.onPanic(v)
	}
}

// Run keeps the region's wallets filled until ctx ends or Close is called;
// then it gives back what the process holds, closes the region's leases if it
// was the last process, and returns. It is called once.
func (r *Runner) Run(ctx context.Context) error {
	if !r.running.CompareAndSwap(false, true) {
		return fmt.Errorf("agent: Run was called before")
	}
	defer close(r.done)
	stop := context.AfterFunc(ctx, r.beginClose)
	defer stop()
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var helpers sync.WaitGroup
	// The queues are closed before the workers are waited for.
	onStore, onLedger := r.workers(work, &helpers, storeWorkers), r.workers(work, &helpers, ledgerWorkers)
	helpers.Go(func() { r.flusher(work) })
	helpers.Go(r.indexer)
	r.loop(onStore, onLedger)
	cancel()
	close(onStore)
	close(onLedger)
	r.drain(&helpers)
	return nil
}

// Close ends Run and waits until it has returned. Calling it again, or
// without Run, is harmless.
func (r *Runner) Close() {
	r.beginClose()
	if r.running.Load() {
		<-r.done
	}
}

func (r *Runner) beginClose() { r.closeOnce.Do(func() { close(r.closing) }) }

// drain waits for the helpers, taking the events that they still report.
func (r *Runner) drain(helpers *sync.WaitGroup) {
	gone := make(chan struct{})
	go func() { helpers.Wait(); close(gone) }()
	for {
		select {
		case <-r.events:
		case <-gone:
			return
		}
	}
}

// loop steps the Keeper. It never blocks on a worker: what the workers cannot
// take yet waits in the queues, which the Keeper bounds.
func (r *Runner) loop(onStore, onLedger chan<- Effect) {
	var store, ledger backlog
	timer := time.NewTimer(0)
	defer timer.Stop()
	closing := r.closing
	for {
		var toStore, toLedger chan<- Effect
		nextStore, nextLedger := store.next(), ledger.next()
		if nextStore != nil {
			toStore = onStore
		}
		if nextLedger != nil {
			toLedger = onLedger
		}
		var event Event
		select {
		case toStore <- nextStore:
			store.pop()
			continue
		case toLedger <- nextLedger:
			ledger.pop()
			continue
		case ask := <-r.asks:
			ask(r.keeper)
			continue
		case event = <-r.events:
		case u := <-r.urgent:
			event = u
		case <-timer.C:
			event = Tick{}
		case <-closing:
			closing = nil
			<-r.flushed // what its refills brought is to be given back
			r.decider.Flush(context.Background(), true)
			event = Stopping{}
		}
		effects, wake := r.step(event)
		for _, f := range effects {
			switch e := f.(type) {
			case Stopped:
				return
			case Tell:
				r.do(context.Background(), f) // no I/O
			case SetBudgets:
				r.setBudgets(e.Budgets)
			case SendSync, ListBudgets:
				ledger.push(f)
			default:
				store.push(f)
			}
		}
		timer.Reset(max(0, wake-r.decider.opt.Now()))
	}
}

// step steps the Keeper; a panic in it costs that event and no more.
func (r *Runner) step(ev Event) (effects []Effect, wake time.Duration) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
			effects, wake = nil, r.decider.opt.Now()+syncEvery
		}
	}()
	return r.keeper.Step(r.decider.opt.Now(), ev)
}

// workers start n goroutines that do effects.
func (r *Runner) workers(ctx context.Context, helpers *sync.WaitGroup, n int) chan<- Effect {
	queue := make(chan Effect)
	for range n {
		helpers.Go(func() {
			for f := range queue {
				if ev := r.do(ctx, f); ev != nil {
					r.events <- ev
				}
			}
		})
	}
	return queue
}

// do does one effect; a panic becomes its failure.
func (r *Runner) do(ctx context.Context, f Effect) (ev Event) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
			ev = Failed(f, lease.Errorf(lease.Internal, "", "the effect failed"))
		}
	}()
	return r.executor.Do(ctx, f)
}

// setBudgets hands the list to the indexer without waiting for it.
func (r *Runner) setBudgets(list []*terms) {
	select {
	case <-r.budgets:
	default:
	}
	r.budgets <- list
}

// indexer applies lists of budgets until closing: with very many of them that
// takes longer than the loop may stand still.
func (r *Runner) indexer() {
	for {
		select {
		case list := <-r.budgets:
			r.do(context.Background(), SetBudgets{Budgets: list})
		case <-r.closing:
			return
		}
	}
}

// flusher settles the prefetch until closing.
func (r *Runner) flusher(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // what is refilled now would only go back
		select {
		case <-r.closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	defer close(r.flushed)
	tick := time.NewTicker(flushEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			r.flush(ctx)
		case <-r.closing:
			return
		}
	}
}

func (r *Runner) flush(ctx context.Context) {
	defer func() {
		if v := recover(); v != nil {
			r.panicked(v)
		}
	}()
	r.decider.Flush(ctx, false)
}
