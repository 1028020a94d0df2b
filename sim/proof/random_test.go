package proof_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// draw makes random runs. Everything comes from the one generator, in order.
type draw struct {
	*rand.Rand
	o sim.Options
	// causes that a deployment may have are on or off for the whole run.
	replicated, steps, lossyLedger, suspends, local, cuts bool
	// extreme runs have the ledger's clocks as fast and the regions' as slow as
	// is declared, no slack beside that, and regions that are cut off for longer
	// than a lease lives.
	extreme bool
}

// random is the run of a seed.
func random(seed uint64) sim.Options {
	d := &draw{Rand: rand.New(rand.NewPCG(seed, 0x5eed))}
	for _, cause := range []*bool{&d.replicated, &d.steps, &d.suspends, &d.local, &d.cuts} {
		*cause = d.chance(0.3)
	}
	d.lossyLedger, d.extreme = d.chance(0.1), d.chance(0.15)
	d.o = sim.Options{
		Seed: seed, Length: d.span(4*time.Second, 14*time.Second), RandomAgents: d.chance(0.5),
		Windows: []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 10 * time.Second},
		Epoch:   epoch(d.Rand),
	}
	if d.chance(0.04) {
		d.o.Length = d.span(20*time.Second, time.Minute)
	}
	d.topology()
	for i := range d.pick(1, 1, 2, 3) {
		d.o.Budgets = append(d.o.Budgets, d.budget(fmt.Sprintf("t%d/b%d", d.IntN(2), i)))
	}
	d.workloads()
	for range d.pick(0, 1, 1, 2, 2, 3, 4) {
		d.fault()
	}
	if d.extreme {
		d.squeeze()
	}
	if d.cuts {
		d.change()
	}
	bounds, err := promise(&d.o)
	if err != nil {
		panic(err)
	}
	d.o.Bounds = bounds
	return d.o
}

// epoch lets a quarter of the runs cross an hour, where quotas of an hour
// begin a new window.
func epoch(r *rand.Rand) lease.Time {
	const hour = lease.Time(1_800_000_000_000_000)
	if r.IntN(4) > 0 {
		return hour.Add(10 * time.Minute)
	}
	return hour.Add(-time.Duration(1+r.IntN(6)) * time.Second)
}

func (d *draw) chance(p float64) bool { return d.Float64() < p }

func (d *draw) pick(of ...int) int { return of[d.IntN(len(of))] }

// span is a duration between two, in whole milliseconds.
func (d *draw) span(least, most time.Duration) time.Duration {
	return least + time.Duration(d.Int64N(int64((most-least)/time.Millisecond)+1))*time.Millisecond
}

// within is a number of parts per million that the deployment declares.
func (d *draw) within() int64 {
	if d.extreme {
		return -d.o.Topology.Declared.DriftPPM
	}
	most := d.o.Topology.Declared.DriftPPM
	switch d.IntN(4) {
	case 0:
		return most
	case 1:
		return -most
	case 2:
		return 0
	}
	return d.Int64N(2*most+1) - most
}

func (d *draw) topology() {
	t := &d.o.Topology
	t.Declared = lease.DefaultClocks()
	if d.chance(0.2) {
		t.Declared = lease.Clocks{DriftPPM: int64(d.pick(100, 20_000, 80_000)), BackStep: d.span(0, time.Second), Quantum: 5 * time.Millisecond}
	}
	if d.extreme {
		t.Declared.BackStep = 0
		t.Declared.DriftPPM = int64(d.pick(1000, 20_000, 80_000))
	}
	t.Ledger = sim.Ledger{Allocators: d.pick(1, 1, 2, 3), Commit: d.span(time.Millisecond, 20*time.Millisecond)}
	t.Ledger.Database.DriftPPM, t.Ledger.Allocator.DriftPPM = d.within(), d.within()
	if d.extreme {
		t.Ledger.Database.DriftPPM, t.Ledger.Allocator.DriftPPM = t.Declared.DriftPPM, t.Declared.DriftPPM
	}
	for i := range d.pick(1, 2, 2, 3, 3, 4, 5) {
		r := sim.Region{Name: fmt.Sprintf("r%d", i), Agents: d.pick(1, 1, 2, 2, 3)}
		r.Up, r.Down = d.link(), d.link()
		r.Store = sim.Clock{Offset: d.span(-10*time.Second, 10*time.Second), DriftPPM: d.within()}
		r.Agent = sim.Clock{Offset: d.span(-10*time.Second, 10*time.Second), DriftPPM: d.within()}
		if d.chance(0.2) {
			r.StoreLatency = d.span(time.Millisecond, 30*time.Millisecond)
		}
		t.Regions = append(t.Regions, r)
	}
	d.o.MaxAgents = 3
	if d.replicated {
		t.ReplicatedStores, t.StoreIsolation = true, d.span(0, 3*time.Second)
	}
}

func (d *draw) link() sim.Link {
	l := sim.Link{Delay: sim.Delay{Base: d.span(0, 120*time.Millisecond)}}
	if d.chance(0.3) {
		l.Delay.Exponential = d.span(0, 100*time.Millisecond)
		l.Loss, l.Duplicate = 0.2*d.Float64(), 0.3*d.Float64()
		l.Reorder, l.ReorderBy = 0.2*d.Float64(), d.span(0, 2*time.Second)
	}
	return l
}

// contract is a bucket or, sometimes, a quota; both small enough for a short
// run to matter.
func (d *draw) contract() policy.Contract {
	if d.chance(0.15) {
		return policy.Contract{Quota: policy.Quota{N: lease.Tokens(d.pick(7, 100, 1000, 4000)), Per: policy.Hour, Zone: "UTC"}}
	}
	burst := lease.Tokens(d.pick(1, 5, 20, 100, 300, 800))
	return policy.Contract{
		Rate:  lease.Rate{Tokens: lease.Tokens(d.pick(0, 1, 7, 50, 200, 300, 500)), Per: time.Second},
		Burst: max(1, burst+lease.Tokens(d.IntN(10))),
	}
}

// budget draws until the policy has no objection.
func (d *draw) budget(name string) policy.Budget {
	for {
		b := d.draft(name)
		if _, err := b.Normalize(declared(&d.o).Deployment); err == nil {
			return b
		}
	}
}

func (d *draw) draft(name string) policy.Budget {
	b := policy.Budget{Name: name, Contract: d.contract()}
	b.Strategy = []policy.Strategy{policy.Static, policy.Dynamic, policy.Dynamic, policy.Dynamic, policy.Independent}[d.IntN(5)]
	b.TTL, b.ShareTTL = d.span(time.Second, 4*time.Second), d.span(3*time.Second, 8*time.Second)
	if b.Strategy != policy.Dynamic || d.chance(0.5) {
		b.Regions = d.parts(&b)
	}
	if b.Strategy != policy.Independent && !b.Contract.IsQuota() && d.chance(0.3) {
		b.OverAdmission.Tokens = lease.Tokens(d.pick(1, 10, 100, 400))
	}
	if d.local && d.chance(0.7) {
		b.OnFailure = policy.Failure{
			Mode: policy.AllowLocal, Burst: lease.Tokens(d.pick(1, 10, 60)),
			Rate: lease.Rate{Tokens: lease.Tokens(d.pick(1, 10, 100)), Per: time.Second},
		}
	}
	if d.chance(0.3) {
		b.OnStoreLoss = policy.Wait
	}
	if d.chance(0.2) {
		b.Wait = d.span(10*time.Millisecond, 300*time.Millisecond)
	}
	return b
}

// parts gives regions weights, floors and reserves.
func (d *draw) parts(b *policy.Budget) (all []policy.Region) {
	weighted, reserved := d.chance(0.5), d.chance(0.4)
	n := lease.Tokens(len(d.o.Topology.Regions))
	for _, r := range d.o.Topology.Regions {
		p := policy.Region{Name: r.Name}
		if weighted {
			p.Weight = int64(1 + d.IntN(9))
		}
		if b.Strategy == policy.Dynamic && reserved && b.Contract.Rate.Tokens >= 2*n && b.Contract.Burst >= n {
			p.Reserve = policy.Reserve{Rate: lease.Rate{Tokens: b.Contract.Rate.Tokens / n / 2, Per: time.Second}, Burst: b.Contract.Burst / n}
			p.Floor = p.Reserve.Rate
		}
		all = append(all, p)
	}
	return all
}

func (d *draw) workloads() {
	names := make([]string, len(d.o.Budgets))
	for i, b := range d.o.Budgets {
		names[i] = b.Name
	}
	for i, r := range d.o.Topology.Regions {
		for k, b := range d.o.Budgets {
			w := sim.Workload{Name: fmt.Sprintf("%d/%d", i, k), Region: r.Name, Budgets: []string{b.Name}, Even: d.chance(0.2)}
			if len(names) > 1 && k == 0 && d.chance(0.3) {
				w.Budgets, w.All = names, d.chance(0.5)
			}
			w.Pattern = d.pattern(b, i)
			w.Cost = d.cost(b)
			d.o.Workloads = append(d.o.Workloads, w)
		}
	}
}

func (d *draw) pattern(b policy.Budget, region int) sim.Pattern {
	regions := len(d.o.Topology.Regions)
	rate := float64(b.Contract.Rate.Tokens)
	if b.Contract.IsQuota() {
		rate = float64(b.Contract.Quota.N) / d.o.Length.Seconds()
	}
	total := max(2, rate) * (0.3 + 2*d.Float64())
	mine := total / float64(regions)
	at := d.span(time.Second, d.o.Length)
	switch d.IntN(8) {
	case 0:
		return sim.Hoarder{Quiet: mine / 10, First: at, Every: d.span(time.Second, 4*time.Second)}
	case 1:
		return sim.Lurker{Quiet: mine / 5, Look: 50 * time.Millisecond, Rest: d.span(0, 3*time.Second), Part: 0.3 + 0.6*d.Float64()}
	case 2:
		return sim.Bursty{States: []sim.BurstState{{PerSecond: mine / 10, Mean: time.Second}, {PerSecond: 3 * mine, Mean: 500 * time.Millisecond}}}
	case 3:
		return sim.Flash{Base: mine / 5, Peak: 3 * mine, At: at, Rise: 300 * time.Millisecond, Hold: time.Second, Fall: time.Second}
	case 4:
		return sim.Phases{List: []sim.Phase{{PerSecond: mine}, {At: at, AtOnce: sim.Everything}, {At: at + time.Second, PerSecond: 2 * mine}}}
	case 5:
		return sim.Constant{PerSecond: mine}
	}
	if regions == 1 {
		return sim.Constant{PerSecond: total}
	}
	return sim.Hot{Total: total, Share: 0.8, Index: region, Regions: regions, Every: d.span(time.Second, 4*time.Second)}
}

func (d *draw) cost(b policy.Budget) sim.Cost {
	switch limit := b.Contract.Limit(); d.IntN(5) {
	case 0:
		return sim.Cost{Choices: []sim.CostChoice{{Cost: 1, Weight: 8}, {Cost: max(1, limit/4), Weight: 1}}}
	case 1:
		return sim.Cost{Median: 2, Sigma: 0.8, Most: max(1, limit/2)}
	}
	return sim.Cost{}
}

// change lowers, raises, turns or deletes one budget, once: the bound of a cut
// is that of one at a time.
func (d *draw) change() {
	b := d.o.Budgets[d.IntN(len(d.o.Budgets))]
	at := d.span(time.Second, d.o.Length-time.Second)
	if d.chance(0.1) {
		d.o.Changes = append(d.o.Changes, sim.Change{At: at, Delete: []string{b.Name}})
		return
	}
	for {
		next := d.draft(b.Name)
		if next.Contract.IsQuota() != b.Contract.IsQuota() {
			continue
		}
		if _, err := next.Normalize(declared(&d.o).Deployment); err == nil {
			d.o.Changes = append(d.o.Changes, sim.Change{At: at, Apply: []policy.Budget{next}})
			return
		}
	}
}
