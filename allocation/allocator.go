package allocation

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Allocator is the global side: it validates, runs the pure steps in the
// store's transactions, and answers. It starts no goroutine, so that a
// simulator can drive it; servers put a Committer in front. Safe for
// concurrent use.
type Allocator struct {
	store      Store
	cfg        Config
	deployment policy.Deployment
	observe    func(error)
	stats      Stats
}

// Option changes what NewAllocator makes.
type Option func(*Allocator)

// WithDeployment says on what a budget's float depends beside the budget; the
// default has the clocks of the Config and standalone stores.
func WithDeployment(d policy.Deployment) Option {
	return func(a *Allocator) { a.deployment = d }
}

// WithObserver is told of every store error and recovered panic, which callers
// only see as unavailable or internal: for logs. It must not block.
func WithObserver(observe func(error)) Option {
	return func(a *Allocator) { a.observe = observe }
}

// NewAllocator makes an Allocator over a store.
func NewAllocator(store Store, cfg Config, opts ...Option) *Allocator {
	cfg = cfg.withDefaults()
	a := &Allocator{
		store:      store,
		cfg:        cfg,
		deployment: policy.Deployment{Clocks: cfg.Clocks},
		observe:    func(error) {},
	}
	for _, opt := range opts {
		opt(a)
	}
	return a
}

// Stats returns the live counters.
func (a *Allocator) Stats() *Stats { return &a.stats }

// SyncLeases answers a region's request when everything that the answer says
// is durable. An error means that the request as a whole was refused; what is
// wrong with one item stands in its reply. Items of one budget are processed
// in their order.
func (a *Allocator) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	syncs, reply, err := a.prepare(req)
	if err != nil {
		return lease.SyncReply{}, err
	}
	a.commit(ctx, tasksOf(syncs))
	a.collect(syncs, &reply)
	return reply, nil
}

// syncTask is one item on its way through a transaction.
type syncTask struct {
	task
	// index is the item's place in its request.
	index int
	reply lease.ItemReply
	// held is set when a trial found too little for a waiting caller, who waits
	// for left more.
	held bool
	left time.Duration
}

// prepare validates a request. The reply has the refused items answered.
func (a *Allocator) prepare(req lease.SyncRequest) ([]*syncTask, lease.SyncReply, error) {
	if err := validateRequest(req); err != nil {
		return nil, lease.SyncReply{}, err
	}
	reply := lease.SyncReply{Items: make([]lease.ItemReply, len(req.Items))}
	syncs := make([]*syncTask, 0, len(req.Items))
	for i, it := range req.Items {
		if err := validateItem(i, it); err != nil {
			reply.Items[i] = lease.ItemReply{Budget: it.Budget, Err: err}
			a.stats.countItem(err)
			continue
		}
		syncs = append(syncs, a.syncTask(req.Region, i, it))
	}
	return syncs, reply, nil
}

func (a *Allocator) syncTask(region string, index int, it lease.Item) *syncTask {
	t := &syncTask{index: index}
	t.budget = it.Budget
	t.run = func(now Now, s *State) { t.reply = Sync(a.cfg, now, s, region, it) }
	return t
}

func tasksOf(syncs []*syncTask) []*task {
	tasks := make([]*task, len(syncs))
	for i, t := range syncs {
		tasks[i] = &t.task
	}
	return tasks
}

// collect puts the answers into the reply.
func (a *Allocator) collect(syncs []*syncTask, reply *lease.SyncReply) {
	for _, t := range syncs {
		answer := t.reply
		if t.err != nil {
			answer = lease.ItemReply{Err: t.err}
		}
		answer.Budget = t.budget
		answer.Err = inItem(t.index, answer.Err)
		a.stats.countItem(answer.Err)
		reply.Items[t.index] = answer
	}
}

// inItem puts an item's place before the field of its error.
func inItem(i int, err *lease.Error) *lease.Error {
	if err == nil || err.Field == "" || err.Field == "region" {
		return err
	}
	placed := *err
	placed.Field = fmt.Sprintf("items[%d].%s", i, err.Field)
	return &placed
}

// Sweep does what time alone demands of some of the budgets that are due, and
// returns how many it saw: call it again while there are any. Safe to run in
// several processes at once.
func (a *Allocator) Sweep(ctx context.Context) (int, error) {
	names, err := a.store.Due(ctx, sweepBatch)
	if err != nil || len(names) == 0 {
		return 0, a.translate(err)
	}
	tasks := make([]*task, len(names))
	for i, name := range names {
		tasks[i] = &task{budget: name, run: func(now Now, s *State) { Sweep(a.cfg, now, s) }}
	}
	a.commit(ctx, tasks)
	swept := 0
	var failed error
	for _, t := range tasks {
		switch {
		case t.err == nil:
			swept++
		case t.err.Code != lease.UnknownBudget: // else purged meanwhile
			failed = t.err
		}
	}
	a.stats.Swept.Add(uint64(swept))
	return swept, failed
}

// sweepBatch bounds the budgets of one sweeping transaction.
const sweepBatch = 64

// retrySoon is when an item that could not be decided may be sent again.
const retrySoon = 100 * time.Millisecond

// translate makes a store's error one that operators and agents may see, with
// the store's reason where it gives one. What a step refuses passes as it is.
func (a *Allocator) translate(err error) error {
	if err == nil {
		return nil
	}
	known, ok := errors.AsType[*lease.Error](err)
	if ok && known.Code != lease.Unavailable && known.Code != lease.Internal {
		return known
	}
	typed := a.typed(err)
	if ok {
		return known
	}
	return typed
}

// typed is translate for items. Details of a store's errors go to the
// observer, not to regions.
func (a *Allocator) typed(err error) *lease.Error {
	a.observe(err)
	known, ok := errors.AsType[*lease.Error](err)
	if _, broken := errors.AsType[Violation](err); broken {
		return lease.Errorf(lease.Internal, "", "the ledger refused to break an invariant")
	}
	out := lease.Errorf(lease.Unavailable, "", "the ledger cannot be reached")
	switch {
	case errors.Is(err, ErrUnknownCommit):
		out.Reason = "the outcome is unknown; the same request finds out"
	case ok && known.Code == lease.Internal:
		out.Code, out.Reason = lease.Internal, "the ledger met a fault of its own"
	}
	out.RetryAfter = retrySoon
	if ok && known.RetryAfter > 0 {
		out.RetryAfter = known.RetryAfter
	}
	return out
}

// panicked makes a recovered panic an error that keeps its text for the
// observer alone.
func (a *Allocator) panicked(value any, stack []byte) *lease.Error {
	a.stats.Panics.Add(1)
	a.observe(fmt.Errorf("allocation: panic: %v\n%s", value, stack))
	return lease.Errorf(lease.Internal, "", "the ledger met a fault of its own")
}
