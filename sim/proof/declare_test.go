package proof_test

import (
	"cmp"
	"slices"
	"time"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// declared is what a deployment has to declare so that the run's topology and
// schedule of faults are within it, and nothing beyond: a fault that is not in
// the schedule is not declared, so that its cause is off.
func declared(o *sim.Options) errorbound.Deployment {
	t := &o.Topology
	d := errorbound.DefaultDeployment()
	d.Clocks = cmp.Or(t.Declared, lease.DefaultClocks())
	d.ReplicatedStores, d.StoreIsolation, d.StoreOutage = t.ReplicatedStores, t.StoreIsolation, t.StoreOutage
	d.Regions = len(t.Regions)
	d.AgentsPerRegion = 1
	for _, r := range t.Regions {
		d.AgentsPerRegion = max(d.AgentsPerRegion, r.Agents)
	}
	for i := range o.Faults {
		declare(&d, &o.Faults[i], o)
	}
	return d
}

// Up to hiddenStep, a step of a store's clock looks like a slow call to
// agents; up to hiddenLedgerStep, one of the database's like the time that no
// allocator was there.
const (
	hiddenStep       = 50 * time.Millisecond
	hiddenLedgerStep = 3 * time.Second
)

func declare(d *errorbound.Deployment, f *sim.Fault, o *sim.Options) {
	switch f.Kind {
	case sim.SuspendAgent:
		d.Suspended += f.Agents(&o.Topology)
	case sim.StepStoreClock:
		d.StoreStep = max(d.StoreStep, min(f.Step, hiddenStep+f.SteppedBack(o.Faults)))
	case sim.StepDatabaseClock:
		d.LedgerStep = max(d.LedgerStep, unseen(f, o))
		d.CalendarStep = max(d.CalendarStep, f.Step)
	case sim.DatabaseFailover:
		d.LedgerStep = max(d.LedgerStep, unseen(f, o))
		d.CalendarStep = max(d.CalendarStep, f.Step)
		d.AsyncLedger = d.AsyncLedger || f.Lag > 0
	}
}

// unseen is how much of a step of the database's clock no allocator sees: the
// clock is governed by those that run.
func unseen(f *sim.Fault, o *sim.Options) time.Duration {
	for i := range o.Faults {
		if k := &o.Faults[i]; k.Kind == sim.KillAllocator && k.At <= f.At {
			return max(0, min(f.Step, hiddenLedgerStep))
		}
	}
	return 0
}

// promise is what errorbound says of each budget, over all of its versions
// and the ways from one to the next.
func promise(o *sim.Options) (map[string]sim.Bound, error) {
	d := declared(o)
	all := map[string]sim.Bound{}
	for _, b := range o.Budgets {
		list, err := versions(b, o, d.Deployment)
		if err != nil {
			return nil, err
		}
		bound := sim.Bound{Window: func(w time.Duration) lease.Tokens { return worst(list, d, w).Total }}
		if len(list) == 1 && !b.Contract.IsQuota() { // each of a quota's windows has the bound for itself
			bound.Lifetime = func(t time.Duration) lease.Tokens {
				// A pool starts with its burst, so the float, which is only room,
				// adds nothing to a lifetime.
				w := worst(list, d, max(t, time.Microsecond))
				return w.Total - w.Of(errorbound.Float)
			}
		}
		all[b.Name] = bound
	}
	return all, nil
}

// versions are a budget's policies one after the other, normalized.
func versions(b policy.Budget, o *sim.Options, d policy.Deployment) ([]policy.Budget, error) {
	n, err := b.Normalize(d)
	if err != nil {
		return nil, err
	}
	all := []policy.Budget{n}
	for _, c := range o.Changes {
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
		if slices.Contains(c.Delete, b.Name) {
			gone := all[len(all)-1]
			gone.Float, gone.Contract.Rate.Tokens, gone.Contract.Burst, gone.Contract.Quota.N = 0, 0, 0, 0
			all = append(all, gone)
		}
	}
	return all, nil
}

// bounds are those of the versions and of the ways between them.
func bounds(list []policy.Budget, d errorbound.Deployment, w time.Duration) (all []errorbound.Bound) {
	add := func(b errorbound.Bound, err error) {
		if err != nil {
			panic(err)
		}
		all = append(all, b)
	}
	for i, b := range list {
		add(errorbound.Over(b, d, w))
		if i > 0 {
			add(errorbound.OverCut(list[i-1], b, d, w))
		}
	}
	return all
}

// worst is the largest of them.
func worst(list []policy.Budget, d errorbound.Deployment, w time.Duration) errorbound.Bound {
	return slices.MaxFunc(bounds(list, d, w), func(a, b errorbound.Bound) int { return cmp.Compare(a.Total, b.Total) })
}

// declaredCause reports whether a token of a budget may have this cause at
// all.
func declaredCause(o *sim.Options, budget string, cause sim.CauseName) bool {
	d := declared(o)
	list, err := versions(*budgetOf(o, budget), o, d.Deployment)
	if err != nil {
		return false
	}
	of := func(names ...errorbound.Name) bool {
		return slices.ContainsFunc(bounds(list, d, o.Length), func(b errorbound.Bound) bool {
			return slices.ContainsFunc(names, func(n errorbound.Name) bool { return b.Of(n) > 0 })
		})
	}
	switch cause {
	case sim.CauseFloat:
		return slices.ContainsFunc(list, func(b policy.Budget) bool { return b.Float > 0 })
	case sim.CauseDrift:
		return of(errorbound.Drift)
	case sim.CauseRounding:
		return of(errorbound.Rounding)
	case sim.CauseStep:
		return of(errorbound.LedgerStep, errorbound.StoreStep, errorbound.WindowEdge)
	case sim.CauseLocal:
		return of(errorbound.LocalStores)
	case sim.CauseRegrant:
		return of(errorbound.RegrantedShare)
	case sim.CauseSuspended:
		return of(errorbound.Suspension)
	case sim.CauseIndependent:
		return of(errorbound.Independence)
	case sim.CauseCut:
		return len(list) > 1
	case sim.CauseFailover:
		return of(errorbound.LedgerLoss)
	}
	return false
}

func budgetOf(o *sim.Options, name string) *policy.Budget {
	for i := range o.Budgets {
		if o.Budgets[i].Name == name {
			return &o.Budgets[i]
		}
	}
	return nil
}
