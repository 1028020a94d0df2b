package agent

import "github.com/ration-dev/ration/policy"

// Match appends the budgets whose descriptors all stand in have, each once:
// what a check with these descriptors would be charged to. It is for faces that
// ask with several sets of descriptors at once, and so takes any: what no
// budget can match it leaves aside. The budgets are not to be changed, and lack
// their Match. A budget may be deleted before it is asked for by name, which is
// then UnknownBudget. Nothing matches before Ready.
func (d *Decider) Match(have []Descriptor, to []*policy.Budget) []*policy.Budget {
	ix := d.index.Load()
	if ix == nil {
		return to
	}
	var room [8]*entry
	for _, e := range ix.match(have, room[:0]) {
		to = append(to, e.policy.Load())
	}
	return to
}

// State is what an answer would say of a budget, as far as this process knows
// and without asking the store; ok is false for a name that is not listed. Its
// Outcome says nothing.
func (d *Decider) State(budget string) (a Answer, ok bool) {
	e := d.entry(budget)
	if e == nil {
		return Answer{}, false
	}
	now := d.opt.Now()
	e.lock()
	remaining := e.pocket.live(now) + e.last.Live
	e.unlock()
	return d.answer(e, now, remaining), true
}

// Match is Decider.Match.
func (r *Runner) Match(have []Descriptor, to []*policy.Budget) []*policy.Budget {
	return r.decider.Match(have, to)
}

// State is Decider.State.
func (r *Runner) State(budget string) (Answer, bool) { return r.decider.State(budget) }
