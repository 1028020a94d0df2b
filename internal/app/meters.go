package app

import (
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/overadmission"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// meters measure what all regions of one process admit.
type meters struct {
	regions int
	all     []budgetMeter
	// latest is the longest time, in microseconds, that an admission took: by so
	// much the instants at which admissions are counted may be wrong.
	latest atomic.Int64
}

// measuredWindows are the lengths that dev measures beside any length.
func measuredWindows() []time.Duration { return []time.Duration{time.Second, 2 * time.Second} }

type budgetMeter struct {
	budget policy.Budget
	meter  *overadmission.Meter
}

func newMeters(budgets []policy.Budget, regions int) *meters {
	m := &meters{regions: regions}
	for _, b := range budgets {
		m.all = append(m.all, budgetMeter{b, overadmission.New(b.Contract, measuredWindows()...)})
	}
	return m
}

// watch counts an admitted check in every budget that it was charged to.
func (m *meters) watch(c agent.Check, a agent.Answer, took time.Duration) {
	if a.Outcome != agent.Allowed || c.Cost == 0 {
		return
	}
	m.took(took)
	at := wallClock()
	for i := range m.all {
		if charged(&m.all[i].budget, &c) {
			m.all[i].meter.Add(at, c.Cost)
		}
	}
}

// took notes how long an admission lasted.
func (m *meters) took(d time.Duration) {
	us := int64(d / time.Microsecond)
	for {
		latest := m.latest.Load()
		if us <= latest || m.latest.CompareAndSwap(latest, us) {
			return
		}
	}
}

// charged is the plain meaning of a match: by name, or every descriptor.
func charged(b *policy.Budget, c *agent.Check) bool {
	for _, name := range c.Budgets {
		if name == b.Name {
			return true
		}
	}
	if len(c.Descriptors) == 0 || len(b.Match) == 0 {
		return false
	}
	found := 0
	for _, d := range c.Descriptors {
		if b.Match[d.Key] == d.Value && d.Value != "" {
			found++
		}
	}
	return found == len(b.Match)
}

// Measured is what one budget admitted against what it promised.
type Measured struct {
	Budget   policy.Budget
	Admitted lease.Tokens
	// Worst are the excesses over any window and over each measured length,
	// Promised what each may be at most, Late how much of Promised is there
	// because instants are only known to within the longest decision.
	Worst    []overadmission.Excess
	Promised []lease.Tokens
	Late     lease.Tokens
}

// Kept reports whether no excess is above its promise.
func (m Measured) Kept() bool {
	for i, w := range m.Worst {
		if w.Tokens > m.Promised[i] {
			return false
		}
	}
	return true
}

// read compares measurement and promise after a run of some length.
func (m *meters) read(run time.Duration) []Measured {
	latest := time.Duration(m.latest.Load()) * time.Microsecond
	var out []Measured
	for _, b := range m.all {
		one := Measured{Budget: b.budget, Admitted: b.meter.Admitted(), Worst: b.meter.Worst()}
		one.Late = overadmission.Late(b.budget.Contract.Rate, latest)
		for _, w := range one.Worst {
			length := w.Window
			if length == 0 {
				length = run
			}
			one.Promised = append(one.Promised, overadmission.Promise(b.budget, policy.DefaultDeployment(), m.regions, length)+one.Late)
		}
		out = append(out, one)
	}
	return out
}
