package proof_test

import (
	"time"

	"github.com/ration-dev/ration/sim"
)

// fault adds one to the schedule. What a bound counts once in a window happens
// once in a run, and causes that are off do not happen at all.
func (d *draw) fault() {
	kinds := sim.Kinds()
	f := sim.Fault{
		Kind: kinds[d.IntN(len(kinds))], At: d.span(500*time.Millisecond, d.o.Length),
		For: d.span(100*time.Millisecond, 4*time.Second), Probability: 0.05 + 0.5*d.Float64(),
		Agent: d.IntN(3) - 1, Allocator: d.IntN(d.o.Topology.Ledger.Allocators+1) - 1,
	}
	if d.chance(0.7) {
		f.Region = d.o.Topology.Regions[d.IntN(len(d.o.Topology.Regions))].Name
	}
	if !d.allowed(&f) {
		return
	}
	d.o.Faults = append(d.o.Faults, f)
}

// squeeze cuts a region off for longer than its leases live, which before that
// has heard the ledger late or asked again.
func (d *draw) squeeze() {
	r := &d.o.Topology.Regions[d.IntN(len(d.o.Topology.Regions))]
	at := d.span(second, 4*second)
	if d.chance(0.5) {
		// The ledger counts from long before its answer comes.
		r.Up, r.Down, r.Agents = sim.Link{Delay: sim.Delay{Base: ms}}, sim.Link{Delay: sim.Delay{Base: d.span(100*ms, 500*ms)}}, 3
	} else {
		deaf := sim.Fault{Kind: sim.CutReplies, Region: r.Name, At: at, For: d.span(0, 1500*ms)}
		d.o.Faults = append(d.o.Faults, deaf)
		at += deaf.For + d.span(0, 500*ms)
	}
	d.o.Faults = append(d.o.Faults, sim.Fault{Kind: sim.Partition, Region: r.Name, At: at, For: d.span(2*second, 8*second)})
}

// allowed fills in what the kind needs, and refuses what the run may not have.
func (d *draw) allowed(f *sim.Fault) bool {
	t := &d.o.Topology
	switch f.Kind {
	case sim.DegradeLinks:
		f.Link = d.link()
	case sim.SuspendAgent:
		return d.suspends
	case sim.StoreRestore:
		f.Lag = d.span(0, 3*time.Second)
	case sim.StoreFailover:
		f.Lag = d.span(0, 3*time.Second)
		if d.replicated {
			f.Isolated = d.span(0, 4*time.Second)
			if t.StoreIsolation > 0 {
				f.Isolated = min(f.Isolated, t.StoreIsolation)
			}
		}
		return !d.has(sim.StoreFailover)
	case sim.StepStoreClock:
		return d.steps && d.step(f)
	case sim.StepDatabaseClock:
		f.Step = d.span(-20*time.Second, 20*time.Second)
		return d.steps && !d.has(f.Kind) && !d.has(sim.DatabaseFailover)
	case sim.DatabaseFailover:
		if d.steps && !d.has(sim.StepDatabaseClock) {
			f.Step = d.span(-5*time.Second, 5*time.Second)
		}
		if d.lossyLedger {
			f.Lag = d.span(0, time.Second)
		}
		return !d.has(f.Kind)
	case sim.DriftStoreClock, sim.DriftAgentClock, sim.DriftDatabaseClock, sim.DriftAllocator:
		f.PPM = d.within()
	case sim.StoreStall, sim.StoreUnknown:
		// Both are outages to a process: all of them together are declared.
		f.For = min(f.For, 2*time.Second)
		t.StoreOutage += f.For
	}
	return true
}

// step steps one region's clock once: back by what is declared, or forward by
// anything.
func (d *draw) step(f *sim.Fault) bool {
	if d.has(f.Kind) {
		return false
	}
	f.Step = d.span(0, 10*time.Second)
	if f.Region == "" {
		f.Region = d.o.Topology.Regions[0].Name
	}
	switch d.IntN(4) {
	case 0:
		f.Step = -d.o.Topology.Declared.BackStep
	case 1: // and forth
		forth := *f
		forth.Step = d.o.Topology.Declared.BackStep
		f.Step = -forth.Step
		forth.At += d.span(10*time.Millisecond, 3*time.Second)
		d.o.Faults = append(d.o.Faults, forth)
	case 2:
		f.Step = d.span(0, 60*time.Millisecond)
	}
	return true
}

func (d *draw) has(k sim.Kind) bool {
	for i := range d.o.Faults {
		if d.o.Faults[i].Kind == k {
			return true
		}
	}
	return false
}
