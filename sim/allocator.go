package sim

import (
	"context"
	"errors"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// allocator is one allocator process: the production Allocator over its
// connection to the database, and the long poll's rule driven by events.
type allocator struct {
	w      *world
	index  int
	clock  *hostClock
	core   *allocation.Allocator
	store  *replica
	dead   bool
	paused int
	// backlog is what came while the process was paused.
	backlog []action
	// held are the items held back, oldest first.
	held []*heldItem
	life int
}

// heldItem is one request in the long poll.
type heldItem struct {
	req lease.SyncRequest
	// answer sends what the request gets in the end.
	answer func(lease.SyncReply, error)
	// since is when it came, trial when it is tried next, end when its wait is
	// over.
	since, trial, end time.Duration
	over              bool
}

func newAllocator(w *world, index int) *allocator {
	a := &allocator{w: w, index: index, clock: newClock(w.o.Epoch, w.o.Topology.Ledger.Allocator)}
	a.start()
	return a
}

// start begins a process's life; everything in memory is new.
func (a *allocator) start() {
	a.life++
	a.dead, a.held, a.backlog = false, nil, nil
	a.store = &replica{db: a.w.db, own: a.clock}
	a.core = allocation.NewAllocator(a.store, allocation.Config{Clocks: a.w.declared},
		allocation.WithDeployment(a.w.deployment()), allocation.WithObserver(a.w.observe))
	life := a.life
	offset := time.Duration(a.index+1) * 97 * time.Millisecond
	a.w.after(offset, call(func() { a.tick(life) }))
}

// tickEvery is how often a process sweeps and keeps the clock's row written.
const tickEvery = 500 * time.Millisecond

func (a *allocator) tick(life int) {
	if a.dead || life != a.life {
		return
	}
	if a.paused == 0 {
		ctx := context.Background()
		_, _ = a.store.Now(ctx) // the next one tries again
		for {
			n, err := a.core.Sweep(ctx)
			if n == 0 || err != nil {
				break
			}
		}
	}
	a.w.after(tickEvery, call(func() { a.tick(life) }))
}

var errRefused = errors.New("sim: connection refused")

// sync takes a request in and answers when everything is durable.
func (a *allocator) sync(req lease.SyncRequest, answer func(lease.SyncReply, error)) {
	if a.dead {
		answer(lease.SyncReply{}, errRefused)
		return
	}
	if a.paused > 0 {
		a.backlog = append(a.backlog, call(func() { a.sync(req, answer) }))
		return
	}
	a.w.coverSequences(&req)
	a.supersede(req)
	if !allocation.Holdable(req) {
		reply, err := a.core.SyncLeases(context.Background(), req)
		a.finish(req, reply, err, answer)
		return
	}
	h := &heldItem{req: req, answer: answer, since: a.w.now, end: a.w.now + allocation.LongestHold}
	if a.try(h) {
		return
	}
	a.held = append(a.held, h)
	a.w.coverage.Held++
	a.w.at(h.end, call(func() { a.release(h) }))
}

// finish answers after the commit and wakes who waits for these budgets.
func (a *allocator) finish(req lease.SyncRequest, reply lease.SyncReply, err error, answer func(lease.SyncReply, error)) {
	a.w.cover(&reply, err)
	for i := range reply.Items {
		if reply.Items[i].Err == nil {
			a.wake(req.Items[i].Budget)
		}
	}
	life := a.life
	a.w.after(a.w.commitTime, call(func() {
		if a.dead || a.life != life {
			a.w.coverage.ReplyLostAfterCommit++
			return
		}
		answer(reply, err)
	}))
}

// try is one trial of a held item; true when it is answered.
func (a *allocator) try(h *heldItem) bool {
	reply, held, retry, err := a.core.Trial(context.Background(), h.req, a.w.now-h.since)
	if !held {
		h.over = true
		a.finish(h.req, reply, err, h.answer)
		return true
	}
	a.retry(h, retry)
	return false
}

// retry plans the next trial, unless one comes sooner.
func (a *allocator) retry(h *heldItem, in time.Duration) {
	at := a.w.now + in
	if h.trial > a.w.now && h.trial <= at {
		return
	}
	h.trial = at
	life := a.life
	a.w.at(at, call(func() {
		if h.over || h.trial != at || a.dead || a.life != life {
			return
		}
		if a.paused > 0 {
			a.retry(h, allocation.TrialGap)
			return
		}
		if a.try(h) {
			a.w.coverage.Woken++
			a.forget()
		}
	}))
}

// release ends a wait: the item is processed as if it had just come.
func (a *allocator) release(h *heldItem) {
	switch {
	case h.over || a.dead:
		return
	case a.paused > 0:
		a.backlog = append(a.backlog, call(func() { a.release(h) }))
		return
	}
	h.over = true
	a.forget()
	reply, err := a.core.SyncLeases(context.Background(), h.req)
	a.finish(h.req, reply, err, h.answer)
}

func (a *allocator) forget() {
	kept := a.held[:0]
	for _, h := range a.held {
		if !h.over {
			kept = append(kept, h)
		}
	}
	clear(a.held[len(kept):])
	a.held = kept
}

func (a *allocator) supersede(req lease.SyncRequest) {
	for _, h := range append([]*heldItem(nil), a.held...) {
		if !h.over && allocation.Supersedes(req, h.req) {
			a.w.coverage.Superseded++
			a.release(h)
		}
	}
}

// wake lets the items held for a budget be tried soon: one trial serves for
// the commits that come together.
func (a *allocator) wake(budget string) {
	for _, h := range a.held {
		if !h.over && h.req.Items[0].Budget == budget {
			a.retry(h, allocation.TrialGap)
		}
	}
}

// list answers ListBudgets.
func (a *allocator) list(since uint64, answer func(policy.List, error)) {
	switch {
	case a.dead:
		answer(policy.List{}, errRefused)
	case a.paused > 0:
		a.backlog = append(a.backlog, call(func() { a.list(since, answer) }))
	default:
		answer(a.core.ListBudgets(context.Background(), since))
	}
}

func (a *allocator) kill() {
	a.w.coverage.AllocatorKilled++
	a.dead, a.held, a.backlog = true, nil, nil
}

func (a *allocator) resume() {
	a.paused--
	if a.paused > 0 || a.dead {
		return
	}
	backlog := a.backlog
	a.backlog = nil
	for _, do := range backlog {
		do.fire()
	}
}
