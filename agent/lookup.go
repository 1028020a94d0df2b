package agent

import "github.com/ration-dev/ration/policy"

// Matched is a budget that a request would be charged to. Its contract is not to
// be changed.
type Matched struct {
	Budget   string
	Contract *policy.Contract
}

// Match appends the budgets whose descriptors all stand in have, each once:
// what a check with these descriptors would be charged to. It is for faces that
// ask with several sets of descriptors at once, and so takes any: what no
// budget can match it leaves aside. A budget may be deleted before it is asked for by
// name, which is then UnknownBudget. Nothing matches before Ready.
func (d *Decider) Match(have []Descriptor, to []Matched) []Matched {
	ix := d.index.Load()
	if ix == nil {
		return to
	}
	var room [8]*entry
	for _, e := range ix.match(have, room[:0]) {
		b := e.policy.Load()
		to = append(to, Matched{b.Name, &b.Contract})
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
func (r *Runner) Match(have []Descriptor, to []Matched) []Matched {
	return r.decider.Match(have, to)
}

// State is Decider.State.
func (r *Runner) State(budget string) (Answer, bool) { return r.decider.State(budget) }
