package allocation

import (
	"context"
	"sync"
	"time"

	"github.com/ration-dev/ration/lease"
)

// LongPoll holds an item that got too little for a waiting caller, for a
// while, and answers when tokens have come. Only a request of one item is
// held: nobody else's answer waits for it.
//
// While it waits, its sequence is not processed in the ledger, so that a
// repetition, wherever it arrives, is simply tried too, and whichever is
// granted first is the answer for both. What is committed is only that the
// region asks, so that the plan moves tokens towards it. At the end of the
// wait the item is processed as if it had just come.
type LongPoll struct {
	committer *Committer
	longest   time.Duration

	mu    sync.Mutex
	waits map[string]map[*wait]struct{} // by budget
}

// LongestHold bounds a wait, TrialGap the time between a wake and its trial.
const (
	LongestHold = 500 * time.Millisecond
	TrialGap    = 5 * time.Millisecond
	laterTrial  = 100 * time.Millisecond
)

// NewLongPoll puts the long poll over c. One per Committer.
func NewLongPoll(c *Committer) *LongPoll {
	l := &LongPoll{committer: c, longest: LongestHold, waits: make(map[string]map[*wait]struct{})}
	wake := l.wake
	c.committed.Store(&wake)
	return l
}

// SyncLeases is Committer.SyncLeases with the wait.
func (l *LongPoll) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	l.supersede(req)
	if !Holdable(req) {
		return l.committer.SyncLeases(ctx, req)
	}
	return l.hold(ctx, req)
}

// wait is one held item.
type wait struct {
	region string
	item   lease.Item
	// woken has room for one: a wake during a trial is not lost.
	woken chan struct{}
	// over is closed when a newer sequence has come.
	over     chan struct{}
	overOnce sync.Once
}

func (l *LongPoll) hold(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	alloc := l.committer.alloc
	syncs, reply, err := alloc.prepare(req)
	if err != nil || len(syncs) == 0 {
		return reply, err
	}
	w := l.register(req.Region, req.Items[0])
	defer l.forget(w)
	end := time.NewTimer(l.longest)
	defer end.Stop()
	start := time.Now()
	for held := false; ; held = true {
		t := alloc.trialTask(req.Region, 0, w.item, time.Since(start))
		if err := l.committer.do(ctx, []*syncTask{t}); err != nil {
			return lease.SyncReply{}, err
		}
		alloc.stats.Evaluations.Add(1)
		if t.err != nil || !t.held {
			if held {
				alloc.stats.Woken.Add(1)
			}
			alloc.collect([]*syncTask{t}, &reply)
			return reply, nil
		}
		if !held {
			alloc.stats.Holds.Add(1)
		}
		if l.await(ctx, w, end, min(retryOf(t.reply), t.left)) {
			continue
		}
		if ctx.Err() != nil {
			return lease.SyncReply{}, unavailable("the caller left while its item was held: %v", context.Cause(ctx))
		}
		return l.committer.SyncLeases(ctx, req)
	}
}

// await returns true when the item is to be tried again, false when its wait
// is over.
func (l *LongPoll) await(ctx context.Context, w *wait, end *time.Timer, retry time.Duration) bool {
	again := time.NewTimer(retry)
	defer again.Stop()
	select {
	case <-w.woken:
	case <-again.C:
		return true
	case <-end.C:
		return false
	case <-w.over:
		return false
	case <-ctx.Done():
		return false
	case <-l.committer.closing:
		return false
	}
	// Commits on a hot budget come many at a time: one trial serves for all.
	again.Reset(TrialGap)
	select {
	case <-again.C:
		return true
	case <-end.C:
		return false
	case <-ctx.Done():
		return false
	}
}

// retryOf is when the pool itself may have more, as far as the answer says.
func retryOf(r lease.ItemReply) time.Duration {
	soonest := laterTrial
	for _, st := range r.Leases {
		if st.Short != lease.Enough && st.RetryAfter > 0 {
			soonest = min(soonest, st.RetryAfter)
		}
	}
	return max(soonest, TrialGap)
}

func (l *LongPoll) register(region string, it lease.Item) *wait {
	w := &wait{region: region, item: it, woken: make(chan struct{}, 1), over: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waits[it.Budget] == nil {
		l.waits[it.Budget] = make(map[*wait]struct{})
	}
	l.waits[it.Budget][w] = struct{}{}
	return w
}

func (l *LongPoll) forget(w *wait) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.waits[w.item.Budget], w)
	if len(l.waits[w.item.Budget]) == 0 {
		delete(l.waits, w.item.Budget)
	}
}

// wake lets the items that wait for a budget be tried again.
func (l *LongPoll) wake(budget string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for w := range l.waits[budget] {
		select {
		case w.woken <- struct{}{}:
		default:
		}
	}
}

// supersede ends the waits of items of which the request has a newer sequence.
func (l *LongPoll) supersede(req lease.SyncRequest) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waits) == 0 {
		return
	}
	for i := range req.Items {
		for w := range l.waits[req.Items[i].Budget] {
			if w.region == req.Region && newer(req.Items[i].Leases, w.item.Leases) {
				w.overOnce.Do(func() { close(w.over) })
			}
		}
	}
}

// newer reports whether reports has a later word on a lease of held, or a
// lease in its place.
func newer(reports, held []lease.Report) bool {
	for _, h := range held {
		for _, r := range reports {
			if r.Kind == h.Kind && (r.Incarnation != h.Incarnation || r.Seq > h.Seq) {
				return true
			}
		}
	}
	return false
}
