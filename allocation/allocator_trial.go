package allocation

import (
	"slices"
	"strings"

	"github.com/ration-dev/ration/lease"
)

// trialTask is a syncTask that changes nothing but what the ledger knows of
// the region's demand when it would give too little to a waiting caller; then
// it sets held, and the item is to be tried again.
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
		noteDemand(s, trial, region)
	}
	return t
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

// noteDemand takes over from a trial what steers the plan, and nothing that
// was granted in it.
func noteDemand(s, trial *State, region string) {
	byName := func(r Region, name string) int { return strings.Compare(r.Name, name) }
	from, heard := slices.BinarySearchFunc(trial.Regions, region, byName)
	if !heard {
		return
	}
	noted := trial.Regions[from]
	i, known := slices.BinarySearchFunc(s.Regions, region, byName)
	if known {
		noted.Window, noted.WindowGranted = s.Regions[i].Window, s.Regions[i].WindowGranted
		s.Regions[i] = noted
		return
	}
	noted.Window, noted.WindowGranted = 0, 0
	s.Regions = slices.Insert(s.Regions, i, noted)
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
