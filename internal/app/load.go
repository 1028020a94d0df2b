package app

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The load that dev drives: more than each limit allows, most of it in one
// region, which changes.
const (
	loadFactor  = 1.3
	hotPart     = 0.8
	loadTick    = 10 * time.Millisecond
	maxInFlight = 512 // checks per region; above it demand is not sent
	// quotaSpend is how long a quota lasts under load, so that it is used up.
	quotaSpend = 20 * time.Second
	// maxDemand bounds the load of one budget, in checks per second: one process
	// plays all regions.
	maxDemand = 2000
)

// RegionCount is what a region's load met.
type RegionCount struct {
	Region                              string
	Demand, Admitted, Denied, Undecided int64
	// Leases and Held are what the region had at the end of the run.
	Leases int
	Held   lease.Tokens
}

type regionCounter struct{ demand, admitted, denied, undecided atomic.Int64 }

// LoadReport is what a load met.
type LoadReport struct {
	Length  time.Duration
	Regions []RegionCount
	Budgets []Measured
}

// Kept reports whether every budget kept its promise.
func (r LoadReport) Kept() bool {
	for _, b := range r.Budgets {
		if !b.Kept() {
			return false
		}
	}
	return true
}

// Load drives a shifting load through all regions until ctx ends or length has
// passed, and measures it.
func (d *Dev) Load(ctx context.Context, length time.Duration) LoadReport {
	start := time.Now()
	counters := make([]regionCounter, len(d.agents))
	var running sync.WaitGroup
	ctx, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	for i := range d.agents {
		running.Go(func() { d.drive(ctx, i, length, &counters[i]) })
	}
	running.Wait()
	report := LoadReport{Length: time.Since(start)}
	for i, a := range d.agents {
		report.Regions = append(report.Regions, regionCount(a, &counters[i], len(d.opt.Budgets)))
	}
	report.Budgets = d.meters.read(report.Length)
	return report
}

func regionCount(a *Agent, c *regionCounter, budgets int) RegionCount {
	out := RegionCount{
		Region: a.Region(), Demand: c.demand.Load(), Admitted: c.admitted.Load(),
		Denied: c.denied.Load(), Undecided: c.undecided.Load(),
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	// The region uses none that are not among dev's.
	all, _, _ := a.Runner().Wallets(ctx, budgets)
	for _, w := range all {
		for k := range w.Live {
			out.Held += w.Live[k]
			if w.Alive[k] {
				out.Leases++
			}
		}
	}
	return out
}

// drive sends one region's part of the load.
func (d *Dev) drive(ctx context.Context, region int, length time.Duration, c *regionCounter) {
	r := rand.New(rand.NewPCG(uint64(region), 1))
	start, last := time.Now(), time.Now()
	owed := make([]float64, len(d.opt.Budgets))
	slots := make(chan struct{}, maxInFlight)
	var running sync.WaitGroup
	defer running.Wait()
	tick := time.NewTicker(loadTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		part := d.part(region, now.Sub(start), length)
		for i := range d.opt.Budgets {
			b := &d.opt.Budgets[i]
			owed[i] += demandOf(b) * part * now.Sub(last).Seconds() * (0.5 + r.Float64())
			for ; owed[i] >= 1; owed[i]-- {
				select {
				case slots <- struct{}{}:
					running.Go(func() { d.check(d.agents[region], b, c); <-slots })
				default: // the machine is too slow to play this much
				}
			}
		}
		last = now
	}
}

// part is a region's share of the demand: each in turn is the hot one.
func (d *Dev) part(region int, since, length time.Duration) float64 {
	n := len(d.agents)
	if n == 1 {
		return 1
	}
	if hot := int(since * time.Duration(n) / length); hot%n == region {
		return hotPart
	}
	return (1 - hotPart) / float64(n-1)
}

// demandOf is what all regions together ask of a budget, in checks per second.
func demandOf(b *policy.Budget) float64 {
	if b.Contract.IsQuota() {
		return min(maxDemand, float64(b.Contract.Quota.N)/quotaSpend.Seconds())
	}
	return min(maxDemand, loadFactor*b.Contract.Rate.PerSecond())
}

func (d *Dev) check(a *Agent, b *policy.Budget, c *regionCounter) {
	c.demand.Add(1)
	answer, err := a.Check(context.Background(), agent.Check{Budgets: []string{b.Name}, Cost: 1})
	switch {
	case err == nil && answer.Outcome == agent.Allowed:
		c.admitted.Add(1)
	case err == nil && answer.Outcome == agent.Denied:
		c.denied.Add(1)
	default:
		c.undecided.Add(1)
	}
}
