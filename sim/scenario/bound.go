package scenario

import (
	"time"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// bounds computes what each budget promises under what the scenario declares.
// The yardsticks promise nothing.
func (s *Scenario) bounds(o sim.Options) (map[string]sim.Bound, error) {
	if o.Strategy == sim.Central || o.Strategy == sim.CountLocally {
		return nil, nil
	}
	d := deployment(o)
	all := map[string]sim.Bound{}
	for _, b := range o.Budgets {
		versions, err := s.versions(b, o.Changes, d.Deployment)
		if err != nil {
			return nil, err
		}
		bound := sim.Bound{Window: func(w time.Duration) lease.Tokens { return worst(versions, d, w) }}
		if len(versions) == 1 && !b.Contract.IsQuota() && !repeats(o.Faults) { // a quota's windows have each their own
			one := versions[0]
			bound.Lifetime = func(t time.Duration) lease.Tokens { return lifetime(one, d, t) }
		}
		all[b.Name] = bound
	}
	return all, nil
}

// versions are a budget's policies one after the other, normalized.
func (s *Scenario) versions(b policy.Budget, changes []sim.Change, d policy.Deployment) ([]policy.Budget, error) {
	first, err := b.Normalize(d)
	if err != nil {
		return nil, err
	}
	all := []policy.Budget{first}
	for _, c := range changes {
		for _, next := range c.Apply {
			if next.Name != b.Name {
				continue
			}
			n, err := next.Normalize(d)
			if err != nil {
				return nil, err
			}
			all = append(all, n)
		}
	}
	return all, nil
}

// worst is the largest bound over the versions and the ways from one to the
// next.
func worst(versions []policy.Budget, d errorbound.Deployment, w time.Duration) lease.Tokens {
	most := lease.Tokens(0)
	for i, b := range versions {
		bound, err := errorbound.Over(b, d, w)
		if err != nil {
			return lease.MaxTokens // promises nothing
		}
		most = max(most, bound.Total)
		if i == 0 {
			continue
		}
		if cut, err := errorbound.OverCut(versions[i-1], b, d, w); err == nil {
			most = max(most, cut.Total)
		}
	}
	return most
}

// lifetime is the bound over the first t of a run: the pool starts with burst,
// so that a float, which is only room, adds nothing.
func lifetime(b policy.Budget, d errorbound.Deployment, t time.Duration) lease.Tokens {
	bound, err := errorbound.Over(b, d, max(t, time.Microsecond))
	if err != nil {
		return lease.MaxTokens
	}
	return bound.Total - bound.Of(errorbound.Float)
}

// repeats reports faults whose terms count once in a window, so that a whole
// run may have more of them.
func repeats(faults []sim.Fault) bool {
	for _, f := range faults {
		switch f.Kind {
		case sim.StoreFailover, sim.StoreRestore, sim.DatabaseFailover, sim.StepStoreClock, sim.StepDatabaseClock, sim.SuspendAgent, sim.StoreStall:
			return true
		}
	}
	return false
}

// deployment declares the faults that a scenario has: its topology's own
// words, and what its list of faults does.
func deployment(o sim.Options) errorbound.Deployment {
	d := errorbound.DefaultDeployment()
	t := o.Topology
	if t.Declared != (lease.Clocks{}) {
		d.Clocks = t.Declared
	}
	d.ReplicatedStores, d.StoreIsolation, d.StoreOutage = t.ReplicatedStores, t.StoreIsolation, t.StoreOutage
	d.Regions = len(t.Regions)
	if o.MaxAgents > 0 {
		d.AgentsPerRegion = o.MaxAgents
	}
	for _, r := range t.Regions {
		d.AgentsPerRegion = max(d.AgentsPerRegion, r.Agents)
	}
	for _, f := range o.Faults {
		declare(&d, f, &o)
	}
	return d
}

// storeStep is what a step of a store's clock may make before agents take it
// for a step.
const storeStep = 50 * time.Millisecond

// ledgerStep is the most that a step of the database's clock may make that no
// replica sees.
const ledgerStep = 3 * time.Second

func declare(d *errorbound.Deployment, f sim.Fault, o *sim.Options) {
	switch f.Kind {
	case sim.SuspendAgent:
		d.Suspended += f.Agents(&o.Topology)
	case sim.StepStoreClock:
		d.StoreStep = max(d.StoreStep, min(f.Step, storeStep+f.SteppedBack(o.Faults)))
	case sim.StepDatabaseClock:
		d.LedgerStep = max(d.LedgerStep, min(f.Step, ledgerStep))
		d.CalendarStep = max(d.CalendarStep, f.Step)
	case sim.DatabaseFailover:
		d.LedgerStep = max(d.LedgerStep, min(f.Step, ledgerStep))
		d.CalendarStep = max(d.CalendarStep, f.Step)
		d.AsyncLedger = d.AsyncLedger || f.Lag > 0
	case sim.Partition, sim.CutReplies, sim.CutRequests, sim.DatabaseDown, sim.KillAllocator:
		d.Outage = max(d.Outage, f.For)
	}
}
