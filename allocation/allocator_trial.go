package allocation

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// trialTask is a syncTask that grants nothing, and sets held, when it would
// give too little to a waiting caller; then the item is to be tried again.
// waited is for how long it has been held already.
func (a *Allocator) trialTask(region string, index int, it lease.Item, waited time.Duration) *syncTask {
	t := &syncTask{index: index}
	t.budget = it.Budget
	t.run = func(now Now, s *State) {
		trial := cloneState(s)
		t.reply = Sync(a.cfg, now, trial, region, it)
		t.left = patience(&s.Budget, it) - waited
		t.held = t.left > 0 && tooLittle(t.reply, it)
		if !t.held {
			*s = *trial
			return
		}
		Listen(a.cfg, now, s, region, it)
	}
	return t
}

// Listen is the step of an item that is held for want of tokens: it takes over
// what the item says and answers nothing, and the item's sequences stay
// unprocessed. A Sync of it in place of Listen, or after, is the same item's
// first.
func Listen(cfg Config, now Now, s *State, region string, it lease.Item) {
	st := newStep(cfg, now, s)
	st.region = region
	st.listen(it)
}

// listen takes over from an item what others need to know while it is held:
// the region's demand, and what its leases no longer hold. Totals are
// cumulative and what a region holds only shrinks by its own word, so booking
// them is the same once or twice; the sequence stays unprocessed, and what
// closes or replaces a lease waits for it.
func (s *step) listen(it lease.Item) {
	s.settle()
	fresh := make([]bool, len(it.Leases))
	for i := range it.Leases {
		fresh[i] = s.isNew(&it.Leases[i])
	}
	s.hear(it, fresh)
	s.bookLocal(it.Local)
	for i := range it.Leases {
		r := &it.Leases[i]
		l := s.find(s.region, r.Kind, r.Incarnation)
		if l == nil || !fresh[i] || r.Closed || !l.unended() {
			continue
		}
		seq := l.Seq
		s.book(r)
		l.Seq = seq
		l.ToldX, l.ToldBeta = min(l.ToldX, l.X), min(l.ToldBeta, l.Beta)
	}
}

// tooLittle reports whether the answer leaves a waiting caller without what it
// waits for, while more may come soon. A share mints by itself: whoever holds
// one that can hold the cost is not kept waiting for the answer.
func tooLittle(r lease.ItemReply, it lease.Item) bool {
	if r.Err != nil || it.Waiting <= 0 {
		return false
	}
	short := false
	for _, st := range r.Leases {
		switch {
		case st.Status == lease.Ended:
		case st.Kind.IsShare():
			if st.X.Tokens > 0 && st.Beta >= it.Waiting {
				return false
			}
		case st.Short == lease.LimitZero:
			return false
		case st.Short != lease.Enough:
			short = holdOf(st, it.Leases) < it.Waiting
		}
	}
	return short
}

// patience is how long an item is held. Where the budget lets decisions wait,
// they wait no longer than that, and what came later would lie where nobody
// asks for it any more.
func patience(b *policy.Budget, it lease.Item) time.Duration {
	if b.Wait <= 0 {
		return LongestHold
	}
	return min(LongestHold, b.Wait-max(0, it.RTT))
}

// holdOf is what the region holds of a lump once it has the answer.
func holdOf(st lease.State, reports []lease.Report) lease.Tokens {
	for _, r := range reports {
		if r.Kind == st.Kind && r.Incarnation == st.Incarnation {
			return st.Granted - r.Used - r.Returned
		}
	}
	return st.Granted
}

// cloneState copies a state and all its rows.
func cloneState(s *State) *State {
	c := *s
	c.Pools = slices.Clone(s.Pools)
	c.Leases = slices.Clone(s.Leases)
	c.Regions = slices.Clone(s.Regions)
	c.Locals = slices.Clone(s.Locals)
	return &c
}

// Trial is one step of the long poll, for who drives it with a clock of his
// own: SyncLeases of a request whose single item a caller waits for, unless
// that would leave the caller with too little. Then held is set, nothing is
// answered, and retry says when the pool itself may have more, or the wait ends.
// waited is for how long the request has been held already.
func (a *Allocator) Trial(ctx context.Context, req lease.SyncRequest, waited time.Duration) (reply lease.SyncReply, held bool, retry time.Duration, err error) {
	if !Holdable(req) {
		reply, err = a.SyncLeases(ctx, req)
		return reply, false, 0, err
	}
	syncs, reply, err := a.prepare(req)
	if err != nil || len(syncs) == 0 {
		return reply, false, 0, err
	}
	t := a.trialTask(req.Region, 0, req.Items[0], waited)
	a.commit(ctx, []*task{&t.task})
	a.stats.Evaluations.Add(1)
	if t.err == nil && t.held {
		return lease.SyncReply{}, true, min(retryOf(t.reply), t.left), nil
	}
	a.collect([]*syncTask{t}, &reply)
	return reply, false, 0, nil
}

// Holdable reports whether the long poll may hold a request back: nobody
// else's answer must wait for it.
func Holdable(req lease.SyncRequest) bool {
	return len(req.Items) == 1 && req.Items[0].Waiting > 0
}

// Supersedes reports whether a request that has come ends the wait of a held
// one, which then is processed as if it had just come.
func Supersedes(req, held lease.SyncRequest) bool {
	if req.Region != held.Region {
		return false
	}
	for i := range req.Items {
		if req.Items[i].Budget == held.Items[0].Budget && newer(req.Items[i].Leases, held.Items[0].Leases) {
			return true
		}
	}
	return false
}
