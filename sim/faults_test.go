package sim

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// faulty is a deployment that is busy enough for any fault to matter.
func faulty(seed uint64, faults ...Fault) Options {
	t := threeRegions(2)
	t.Ledger.Allocators = 2
	return Options{
		Seed: seed, Length: 30 * time.Second, Topology: t,
		Budgets: []policy.Budget{
			{Name: "t/dynamic", Contract: perSecond(300, 600), TTL: 3 * time.Second, ShareTTL: 6 * time.Second},
			{Name: "t/static", Contract: perSecond(300, 600), Strategy: policy.Static, ShareTTL: 5 * time.Second, Regions: equalParts()},
			{Name: "t/quota", Contract: policy.Contract{Quota: policy.Quota{N: 3000, Per: policy.Hour, Zone: "UTC"}}, TTL: 3 * time.Second},
		},
		Workloads: append(append(hotLoad("t/dynamic", 390, 7*time.Second), hotLoad("t/static", 390, 9*time.Second)...),
			hotLoad("t/quota", 200, 8*time.Second)...),
		Windows: []time.Duration{time.Second},
		Bounds: map[string]Bound{
			"t/dynamic": zero(0), "t/static": zero(0), "t/quota": zero(-1),
		},
		Faults: faults,
	}
}

func equalParts() []policy.Region {
	return []policy.Region{{Name: "eu"}, {Name: "sa"}, {Name: "us"}}
}

// named gives workloads distinct names.
func named(o Options) Options {
	for i := range o.Workloads {
		o.Workloads[i].Name = o.Workloads[i].Region + "/" + o.Workloads[i].Budgets[0]
	}
	return o
}

// Each fault by itself, with no term in the bound: nothing is admitted above
// the contract, whatever happens.
func TestFaultsThatCostNothing(t *testing.T) {
	at := 8 * time.Second
	slow := Link{Delay: Delay{Base: 50 * time.Millisecond, Uniform: 300 * time.Millisecond}, Loss: 0.1, Duplicate: 0.2, Reorder: 0.1, ReorderBy: time.Second}
	for _, c := range []struct {
		fault   Fault
		reached func(*Coverage) int64
	}{
		{Fault{Kind: CutRequests, At: at, For: 6 * time.Second, Region: "us"}, func(c *Coverage) int64 { return c.Lost }},
		{Fault{Kind: CutReplies, At: at, For: 6 * time.Second}, func(c *Coverage) int64 { return min(c.Lost, c.ReplayedSequence) }},
		{Fault{Kind: Partition, At: at, For: 9 * time.Second, Region: "us"}, func(c *Coverage) int64 { return c.Expired }},
		{Fault{Kind: DegradeLinks, At: 2 * time.Second, Link: slow}, func(c *Coverage) int64 { return min(c.Duplicated, c.Reordered, c.OlderSequence) }},
		{Fault{Kind: LoseReplies, At: 2 * time.Second, Probability: 0.3}, func(c *Coverage) int64 { return c.ReplayedSequence }},
		{Fault{Kind: KillAgent, At: at, For: time.Second, Region: "us", Agent: -1}, func(c *Coverage) int64 { return c.AgentKilled }},
		{Fault{Kind: StopAgent, At: at, For: 8 * time.Second, Region: "us", Agent: -1}, func(c *Coverage) int64 { return c.ClosedLease }},
		{Fault{Kind: PauseAgent, At: at, For: 4 * time.Second, Region: "us"}, func(c *Coverage) int64 { return c.AgentPaused }},
		{Fault{Kind: FreezeInTake, At: at, For: 1990 * time.Millisecond, Region: "us"}, func(c *Coverage) int64 { return c.FrozenInTake }},
		{Fault{Kind: FreezeInDecision, At: at, For: 8500 * time.Millisecond, Region: "us"}, func(c *Coverage) int64 { return min(c.FrozenInDecision, c.Discarded) }},
		{Fault{Kind: KillAllocator, At: at, For: 3 * time.Second, Allocator: -1}, func(c *Coverage) int64 { return c.AllocatorKilled }},
		{Fault{Kind: PauseAllocator, At: at, For: 7 * time.Second, Allocator: 0}, func(c *Coverage) int64 { return c.AllocatorPaused }},
		{Fault{Kind: DatabaseDown, At: at, For: 5 * time.Second}, func(c *Coverage) int64 { return c.FailedCommit }},
		{Fault{Kind: UnknownCommits, At: 2 * time.Second, Probability: 0.3}, func(c *Coverage) int64 { return c.UnknownCommit }},
		{Fault{Kind: DatabaseFailover, At: at, Step: 2 * time.Second}, func(c *Coverage) int64 { return min(c.LedgerFailover, c.ClockMoved) }},
		{Fault{Kind: StoreRestart, At: at, Region: "us"}, func(c *Coverage) int64 { return c.StoreRestarted }},
		{Fault{Kind: StoreRestore, At: at, Lag: 3 * time.Second, Region: "us"}, func(c *Coverage) int64 { return min(c.StoreRestored, c.VoidRow) }},
		{Fault{Kind: StoreFailover, At: at, Lag: time.Second, Region: "us"}, func(c *Coverage) int64 { return min(c.VoidRow, c.Regranted) }},
		{Fault{Kind: LoseRow, At: at}, func(c *Coverage) int64 { return c.RowLost }},
		{Fault{Kind: StoreStall, At: at, For: 4 * time.Second, Region: "us"}, func(c *Coverage) int64 { return c.BreakerOpened }},
		{Fault{Kind: StoreUnknown, At: 2 * time.Second, Probability: 0.2}, func(c *Coverage) int64 { return min(c.StoreUnknown, c.LateTake) }},
		{Fault{Kind: StepStoreClock, At: at, Step: -250 * time.Millisecond}, func(c *Coverage) int64 { return c.ClockStepped }},
		{Fault{Kind: StepStoreClock, At: at, Step: 20 * time.Second}, func(c *Coverage) int64 { return c.ClockStepped }},
		{Fault{Kind: StepDatabaseClock, At: at, Step: 30 * time.Second}, func(c *Coverage) int64 { return c.ClockMoved }},
		{Fault{Kind: StepDatabaseClock, At: at, Step: -30 * time.Second}, func(c *Coverage) int64 { return c.ClockStepped }},
	} {
		t.Run(c.fault.String(), func(t *testing.T) {
			r := run(t, named(faulty(3, c.fault)))
			if c.reached(&r.Coverage) == 0 {
				t.Errorf("the fault's path was not reached: %+v", r.Coverage)
			}
		})
	}
}

// Clocks that are as wrong as the deployment declares cost their drift, and
// no more.
func TestDeclaredDrift(t *testing.T) {
	o := named(faulty(5))
	o.Topology.Ledger.Database.DriftPPM = 1000
	o.Topology.Ledger.Allocator.DriftPPM = -1000
	for i := range o.Topology.Regions {
		o.Topology.Regions[i].Store.DriftPPM = []int64{1000, -1000, 1000}[i]
		o.Topology.Regions[i].Agent.DriftPPM = []int64{-1000, 1000, 1000}[i]
	}
	drift := lease.Tokens(300*30/1000) + 1
	o.Bounds["t/dynamic"], o.Bounds["t/static"] = zero(drift), zero(drift)
	r := run(t, o)
	for _, b := range r.Budgets {
		t.Logf("%s: over %d, causes %v", b.Name, b.Any.Over, b.Causes)
	}
}
