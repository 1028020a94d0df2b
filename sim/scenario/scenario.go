package scenario

import (
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// Scenario is what a file says. It is not changed by its methods, and may be
// used concurrently.
type Scenario struct {
	// File is its path as given; Sweep what was set beside the file, in order.
	File  string
	Sweep []Setting
	// Title and Question are for readers; Title defaults to the file's name.
	Title, Question string
	// Seeds are those of its runs, at least one.
	Seeds []uint64
	// Strategies to put side by side unless others are asked for; at least one.
	Strategies []sim.Strategy
	Expect     []Expectation

	options sim.Options
	budgets []policy.Budget
	changes []change
}

// Setting is a field that is set beside the file; see Load.
type Setting struct {
	Field string `json:"field"`
	Value string `json:"value"`
}

type change struct {
	at     time.Duration
	apply  []policy.Budget
	delete []string
	node   *yaml.Node
}

// Length is the simulated time.
func (s *Scenario) Length() time.Duration { return s.options.Length }

// Step is the bulk arrival step, 0 where requests come one by one.
func (s *Scenario) Step() time.Duration { return s.options.Bulk }

// Regions names the regions in the file's order.
func (s *Scenario) Regions() []string { return regionNames(s.options.Topology) }

// Native is the strategy that all budgets are written with, or sim.AsWritten
// where they differ.
func (s *Scenario) Native() sim.Strategy {
	var one policy.Strategy
	for _, b := range s.budgets {
		strategy := b.Strategy
		if strategy == "" {
			strategy = policy.Dynamic
		}
		if one != "" && one != strategy {
			return sim.AsWritten
		}
		one = strategy
	}
	return sim.Strategy(one)
}

// Options makes a run's options with the budgets played by a strategy. Options
// of different calls share nothing that a run writes.
func (s *Scenario) Options(strategy sim.Strategy, seed uint64) (sim.Options, error) {
	o := s.options
	o.Strategy, o.Seed = strategy, seed
	o.Budgets = s.played(s.budgets, strategy)
	o.Changes = nil
	for _, c := range s.changes {
		o.Changes = append(o.Changes, sim.Change{At: c.at, Apply: s.played(c.apply, strategy), Delete: c.delete})
	}
	bounds, err := s.bounds(o)
	o.Bounds = bounds
	return o, err
}

func (s *Scenario) played(budgets []policy.Budget, strategy sim.Strategy) []policy.Budget {
	out := make([]policy.Budget, len(budgets))
	for i, b := range budgets {
		out[i] = played(b, strategy, s.Regions())
	}
	return out
}

// played writes a budget for a strategy: with the regions it needs, and
// without what it cannot have.
func played(b policy.Budget, strategy sim.Strategy, regions []string) policy.Budget {
	switch strategy {
	case sim.Static, sim.Independent, sim.Dynamic:
		b.Strategy = policy.Strategy(strategy)
	}
	if b.Strategy == policy.Dynamic || b.Strategy == "" {
		return b
	}
	if len(b.Regions) == 0 {
		for _, name := range regions {
			b.Regions = append(b.Regions, policy.Region{Name: name})
		}
	} else if strategy == sim.Strategy(b.Strategy) {
		plain := make([]policy.Region, len(b.Regions))
		for i, r := range b.Regions {
			plain[i] = policy.Region{Name: r.Name, Weight: r.Weight}
		}
		b.Regions = plain
	}
	if strategy == sim.Independent {
		b.OverAdmission, b.Float = policy.OverAdmission{}, 0
	}
	return b
}

func regionNames(t sim.Topology) []string {
	names := make([]string, len(t.Regions))
	for i, r := range t.Regions {
		names[i] = r.Name
	}
	return names
}

// Deployment is what the scenario declares of its faults: the bounds rest on
// it.
func (s *Scenario) Deployment() errorbound.Deployment { return deployment(s.options) }
