package allocation

import (
	"slices"

	"github.com/ration-dev/ration/lease"
)

// trialTask is a syncTask that grants nothing, and sets held, when it would
// give too little to a waiting caller; then the item is to be tried again.
func (a *Allocator) trialTask(region string, index int, it lease.Item) *syncTask {
	t := &syncTask{index: index}
	t.budget = it.Budget
	t.run = func(now Now, s *State) {
		trial := cloneState(s)
		t.reply = Sync(a.cfg, now, trial, region, it)
		t.held = tooLittle(t.reply, it)
		if !t.held {
			*s = *trial
			return
		}
		st := newStep(a.cfg, now, s)
		st.region = region
		st.listen(it)
	}
	return t
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
