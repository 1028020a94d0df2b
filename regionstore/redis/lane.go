package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/lease"
)

// lane carries the steps of one primary. A step that finds nothing under way
// leaves at once; those that come while batches are on the wire gather, and
// leave together when one of them is back. So at low load no step waits for
// another, and under load they share round trips. The zero value is ready.
type lane struct {
	mu sync.Mutex
	// waiting are decisions, others the other steps.
	waiting, others []*ticket
	batches         int // on the wire
}

// ticket is one step on its way. Its answer stands in it once done is closed;
// a caller that left earlier never looks at it, but late, if set, is called with
// an answer that came after that.
type ticket struct {
	ctx   context.Context
	call  call
	reply *reply
	err   error
	done  chan struct{}
	late  func(*reply)
	// over is set by whoever ends the ticket first, its caller by leaving or the
	// lane with an answer.
	over atomic.Bool
}

// end hands the answer to the caller, or to late if that has left.
func (t *ticket) end() {
	if t.over.CompareAndSwap(false, true) {
		close(t.done)
	} else if t.late != nil && t.err == nil {
		t.late(t.reply)
	}
}

const (
	// laneBatches is how many batches of a lane are on the wire at once: while
	// the server works on one, the answers of the other are read.
	laneBatches = 2
	// laneWaiting is how many decisions of a lane wait, and how many others; the
	// rest are refused.
	laneWaiting = 4096
	// maxLanes bounds the memory for primaries that are long gone.
	maxLanes = 1024
)

// lanes has a lane per primary, by replication id, so that a primary that
// stalls does not hold up the others.
type lanes struct {
	mu   sync.Mutex
	byID map[string]*lane
}

func (ls *lanes) get(id string) *lane {
	ls.mu.Lock()
	defer ls.mu.Unlock()
	l := ls.byID[id]
	if l == nil {
		if ls.byID == nil || len(ls.byID) >= maxLanes {
			ls.byID = map[string]*lane{} // steps under way keep theirs
		}
		l = &lane{}
		ls.byID[id] = l
	}
	return l
}

// run runs one step and returns its flat reply behind the header. It comes
// back when its answer does, or when ctx or the store's timeout ends: then the
// step may or may not have happened.
func (s *Store) run(ctx context.Context, c call) (*reply, error) { return s.runOr(ctx, c, nil) }

// runOr is run, with what is called with an answer that comes after run has
// come back without it.
func (s *Store) runOr(ctx context.Context, c call, late func(*reply)) (*reply, error) {
	if until, ok := ctx.Deadline(); !ok || time.Until(until) > s.opts.Timeout {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
	}
	if err := s.ready(ctx); err != nil {
		return nil, err
	}
	t := &ticket{ctx: ctx, call: c, late: late}
	l := s.lanes.get(s.primary(c.slot))
	switch l.board(t) {
	case full:
		return nil, lease.Errorf(lease.Unavailable, "", "%d steps wait for the region's store already", laneWaiting)
	case alone:
		s.sendAlone(ctx, l, t)
		return t.reply, t.err
	}
	select {
	case <-t.done:
		return t.reply, t.err
	case <-ctx.Done():
		if t.over.CompareAndSwap(false, true) {
			return nil, translate(ctx.Err())
		}
		<-t.done // it is being answered
		return t.reply, t.err
	}
}

// seat says how a step travels.
type seat int

const (
	// alone means that its caller sends it, as a batch of its own: no other
	// goroutine needs to wake.
	alone seat = iota
	waits
	full
)

func (l *lane) board(t *ticket) seat {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.batches < laneBatches:
		l.batches++
		return alone
	}
	queue := &l.others
	if t.call.script.decides {
		queue = &l.waiting
	}
	if len(*queue) >= laneWaiting {
		return full
	}
	t.done = make(chan struct{})
	*queue = append(*queue, t)
	return waits
}

func (s *Store) sendAlone(ctx context.Context, l *lane, t *ticket) {
	defer func() { // a panic must not keep the lane's place
		if !l.leave() {
			go s.carry(l)
		}
	}()
	s.send(ctx, []*ticket{t})
}

// leave ends a batch, unless others wait: then it goes on with them.
func (l *lane) leave() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting)+len(l.others) > 0 {
		return false
	}
	l.batches--
	return true
}

// carry sends batches until nobody waits. The callers' own times end their
// waits; a batch's only bounds the connection.
func (s *Store) carry(l *lane) {
	for {
		batch := l.next()
		if len(batch) == 0 {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), s.opts.Timeout)
		s.send(ctx, batch)
		cancel()
		for _, t := range batch {
			t.end()
		}
	}
}

// next takes the next batch out of the lane: of decisions and of other steps so
// many each, in their order.
func (l *lane) next() []*ticket {
	l.mu.Lock()
	defer l.mu.Unlock()
	batch := boarded(nil, &l.waiting, stepBatch)
	batch = boarded(batch, &l.others, othersBatch)
	if len(batch) == 0 {
		l.batches--
	}
	return batch
}

// boarded appends up to n of those that wait to a batch. Whoever left without an
// answer is left out: that step is never sent.
func boarded(batch []*ticket, waiting *[]*ticket, n int) []*ticket {
	seen := 0
	for _, t := range *waiting {
		if n == 0 {
			break
		}
		if seen++; t.ctx.Err() == nil {
			batch = append(batch, t)
			n--
		}
	}
	rest := copy(*waiting, (*waiting)[seen:])
	clear((*waiting)[rest:])
	*waiting = (*waiting)[:rest]
	return batch
}

// send runs a batch in one round trip.
func (s *Store) send(ctx context.Context, batch []*ticket) {
	calls, replies, errs := make([]call, len(batch)), make([]*reply, len(batch)), make([]error, len(batch))
	for i, t := range batch {
		calls[i] = t.call
	}
	s.exchange(ctx, calls, replies, errs)
	for i, t := range batch {
		t.reply, t.err = replies[i], errs[i]
	}
}
