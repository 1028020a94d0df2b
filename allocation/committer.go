package allocation

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"github.com/ration-dev/ration/lease"
)

// Committer lets the items of many requests ride in one commit. Each budget
// belongs to one lane, a goroutine that runs one transaction at a time: what
// arrives meanwhile for its budgets waits in its queue and goes together, in
// the order of arrival, so that a hot budget costs one commit per batch
// instead of one wait for its row per request. Safe for concurrent use.
type Committer struct {
	alloc *Allocator
	seed  maphash.Seed
	lanes []chan *queued
	// committed is told the budget of each item that was committed.
	committed atomic.Pointer[func(budget string)]

	// sending is held shared by whoever puts into a lane, exclusively by Close.
	sending sync.RWMutex
	closed  bool
	closing chan struct{}
	running sync.WaitGroup
}

// Bounds of a lane: the items that wait in it, above which callers wait, and
// those of one transaction. Only a lane that cannot keep up fills a large one,
// and then the more regions meet in it over a budget, the fewer rows it writes.
const (
	laneQueue = 4096
	laneBatch = 1024
)

// queued is an item in a lane.
type queued struct {
	*syncTask
	group *group
}

// group counts the items of one request that are still under way.
type group struct {
	left atomic.Int64
	done chan struct{}
}

func (g *group) finish() {
	if g.left.Add(-1) == 0 {
		close(g.done)
	}
}

// NewCommitter starts lanes (at least 1) over alloc. Close ends them.
func NewCommitter(alloc *Allocator, lanes int) *Committer {
	c := &Committer{
		alloc:   alloc,
		seed:    maphash.MakeSeed(),
		lanes:   make([]chan *queued, max(1, lanes)),
		closing: make(chan struct{}),
	}
	for i := range c.lanes {
		lane := make(chan *queued, laneQueue)
		c.lanes[i] = lane
		c.running.Go(func() { c.run(lane) })
	}
	return c
}

// SyncLeases is Allocator.SyncLeases through the lanes. When ctx ends first it
// returns an error, and what was queued is committed all the same: the outcome
// is unknown, and the same request finds out.
func (c *Committer) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	syncs, reply, err := c.alloc.prepare(req)
	if err != nil {
		return lease.SyncReply{}, err
	}
	if err := c.do(ctx, syncs); err != nil {
		return lease.SyncReply{}, err
	}
	c.alloc.collect(syncs, &reply)
	return reply, nil
}

// Close refuses new requests, commits what is queued, and returns when the
// last lane has ended. It may be called again.
func (c *Committer) Close() {
	c.sending.Lock()
	if !c.closed {
		c.closed = true
		close(c.closing)
		for _, lane := range c.lanes {
			close(lane)
		}
	}
	c.sending.Unlock()
	c.running.Wait()
}

// do queues the tasks and waits until all are done. After an error they must
// not be read: lanes may still write them.
func (c *Committer) do(ctx context.Context, syncs []*syncTask) error {
	if len(syncs) == 0 {
		return nil
	}
	g := &group{done: make(chan struct{})}
	g.left.Store(int64(len(syncs)))
	if err := c.enqueue(ctx, syncs, g); err != nil {
		return err
	}
	select {
	case <-g.done:
		return nil
	case <-ctx.Done():
		return unavailable("the caller left before the outcome was known: %v", context.Cause(ctx))
	}
}

func (c *Committer) enqueue(ctx context.Context, syncs []*syncTask, g *group) error {
	c.sending.RLock()
	defer c.sending.RUnlock()
	if c.closed {
		return unavailable("the allocator is shutting down")
	}
	for _, t := range syncs {
		select {
		case c.laneOf(t.budget) <- &queued{t, g}:
		case <-ctx.Done():
			return unavailable("the caller left a full queue: %v", context.Cause(ctx))
		}
	}
	return nil
}

func unavailable(format string, args ...any) *lease.Error {
	err := lease.Errorf(lease.Unavailable, "", format, args...)
	err.RetryAfter = retrySoon
	return err
}

// Queued returns how many items wait for a commit that has not begun.
func (c *Committer) Queued() int {
	n := 0
	for _, lane := range c.lanes {
		n += len(lane)
	}
	return n
}

func (c *Committer) laneOf(budget string) chan *queued {
	return c.lanes[maphash.String(c.seed, budget)%uint64(len(c.lanes))]
}

// run is a lane. A caller's context never reaches the transaction: a commit on
// its way is not to be cancelled.
func (c *Committer) run(lane chan *queued) {
	for first := range lane {
		batch := gather(first, lane)
		tasks := make([]*task, len(batch))
		for i, q := range batch {
			tasks[i] = &q.task
		}
		c.alloc.commit(context.Background(), tasks)
		c.announce(batch)
		for _, q := range batch {
			q.group.finish()
		}
	}
}

// gather takes what already waits in the lane behind first, without waiting.
func gather(first *queued, lane chan *queued) []*queued {
	batch := []*queued{first}
	for len(batch) < laneBatch {
		select {
		case q, ok := <-lane:
			if !ok {
				return batch
			}
			batch = append(batch, q)
		default:
			return batch
		}
	}
	return batch
}

// announce names the budgets whose state changed.
func (c *Committer) announce(batch []*queued) {
	tell := c.committed.Load()
	if tell == nil {
		return
	}
	for _, q := range batch {
		if q.err == nil && !q.held {
			(*tell)(q.budget)
		}
	}
}
