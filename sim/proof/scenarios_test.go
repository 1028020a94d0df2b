package proof_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// busy is a deployment that is busy enough for any fault to matter: three
// regions with round trips of 20, 80 and 200 ms, two agents each, two
// allocators, and a dynamic, a static and a quota budget under moving load.
func busy(faults ...sim.Fault) sim.Options {
	o := sim.Options{Seed: 7, Length: 24 * second, MaxAgents: 2, Faults: faults, Windows: []time.Duration{second, 5 * second}}
	o.Topology.Declared, o.Topology.Ledger.Allocators = lease.DefaultClocks(), 2
	for i, name := range []string{"us", "eu", "sa"} {
		up, down := sim.RTT([]time.Duration{20 * ms, 80 * ms, 200 * ms}[i])
		o.Topology.Regions = append(o.Topology.Regions, sim.Region{Name: name, Agents: 2, Up: up, Down: down})
	}
	o.Budgets = []policy.Budget{
		{Name: "t/dynamic", Contract: perSecond(300, 600), TTL: 3 * second, ShareTTL: 6 * second},
		{Name: "t/static", Contract: perSecond(300, 600), Strategy: policy.Static, ShareTTL: 5 * second, Regions: allRegions(&o)},
		{Name: "u/quota", Contract: policy.Contract{Quota: policy.Quota{N: 3000, Per: policy.Hour, Zone: "UTC"}}, TTL: 3 * second},
	}
	for b, total := range []float64{390, 390, 200} {
		for i, r := range o.Topology.Regions {
			o.Workloads = append(o.Workloads, sim.Workload{
				Name: fmt.Sprintf("%s/%d", r.Name, b), Region: r.Name, Budgets: []string{o.Budgets[b].Name},
				Pattern: sim.Hot{Total: total, Share: 0.8, Index: i, Regions: 3, Every: time.Duration(7+b) * second},
			})
		}
	}
	return o
}

// holds plays a scenario: its bound is the one of errorbound with what the
// scenario has declared, all invariants hold, every token above a contract has
// a declared cause, and the path that the scenario is about was reached. term
// is what its bound has beside drift and rounding; "" for nothing.
func holds(t *testing.T, o sim.Options, term errorbound.Name, reached func(*sim.Coverage) int64) *sim.Result {
	t.Helper()
	bounds, err := promise(&o)
	if err != nil {
		t.Fatal(err)
	}
	o.Bounds = bounds
	r, wrong := judge(o)
	for _, w := range wrong {
		t.Error(w)
	}
	if reached != nil && reached(&r.Coverage) == 0 {
		t.Errorf("the scenario's path was not reached: %+v", r.Coverage)
	}
	d := declared(&o)
	for i := range r.Budgets {
		b := &r.Budgets[i]
		list, err := versions(*budgetOf(&o, b.Name), &o, d.Deployment)
		if err != nil {
			t.Fatal(err)
		}
		w := worst(list, d, o.Length)
		t.Logf("%s: %d above the contract of %d promised, causes %v", b.Name, b.Any.Over, w.Total, b.Causes)
		for _, c := range w.Causes {
			switch c.Name {
			case term, errorbound.Drift, errorbound.Rounding, errorbound.Float:
			default:
				if c.Tokens > 0 {
					t.Errorf("%s: its bound has %d for %s", b.Name, c.Tokens, c.Name)
				}
			}
		}
	}
	return r
}

const when = 8 * second

func TestS01AllocatorKilled(t *testing.T) {
	o := busy()
	for i := range 160 {
		o.Faults = append(o.Faults, sim.Fault{Kind: sim.KillAllocator, At: second + time.Duration(i)*126*ms, For: 100 * ms, Allocator: i % 2})
	}
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.AllocatorKilled, c.ReplyLostAfterCommit) })
}

func TestS02AllocatorsRestartedWithManyLeases(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.KillAllocator, At: when, For: 2 * second, Allocator: -1})
	o.Length = 14 * second
	for i := range 100 {
		name := fmt.Sprintf("v/%d", i)
		o.Budgets = append(o.Budgets, policy.Budget{Name: name, Contract: perSecond(10, 20), TTL: 3 * second})
		for _, r := range o.Topology.Regions {
			o.Workloads = append(o.Workloads, sim.Workload{Name: r.Name + name, Region: r.Name, Budgets: []string{name}, Pattern: sim.Constant{PerSecond: 4}})
		}
	}
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.AllocatorKilled })
}

func TestS03AllocatorStoppedInATransaction(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.PauseAllocator, At: when, For: 7 * second}), "", func(c *sim.Coverage) int64 { return min(c.AllocatorPaused, c.LateReply) })
}

func TestS04DatabaseKilledAndRestarted(t *testing.T) {
	holds(t, busy(
		sim.Fault{Kind: sim.UnknownCommits, At: when - second, For: second},
		sim.Fault{Kind: sim.DatabaseDown, At: when, For: 3 * second}), "", func(c *sim.Coverage) int64 { return min(c.FailedCommit, c.UnknownCommit) })
}

func TestS05SynchronousStandbyPromoted(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.DatabaseFailover, At: when}), "", func(c *sim.Coverage) int64 { return c.LedgerFailover })
}

func TestS06LaggingStandbyPromoted(t *testing.T) {
	for _, lag := range []time.Duration{50 * ms, 500 * ms, 2 * second} {
		holds(t, busy(sim.Fault{Kind: sim.DatabaseFailover, At: when, Lag: lag}), errorbound.LedgerLoss, func(c *sim.Coverage) int64 { return c.LedgerLostCommits })
	}
}

func TestS09CommitsLostInACrash(t *testing.T) {
	holds(t, busy(
		sim.Fault{Kind: sim.DatabaseDown, At: when - 100*ms, For: second},
		sim.Fault{Kind: sim.DatabaseFailover, At: when, Lag: 600 * ms}), errorbound.LedgerLoss, func(c *sim.Coverage) int64 { return c.LedgerLostCommits })
}

func TestS10CommitsOfUnknownOutcome(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.UnknownCommits, At: second, Probability: 0.3}), "", func(c *sim.Coverage) int64 { return min(c.UnknownCommit, c.ReplayedSequence) })
}

func TestS11LedgerReadOnly(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.DatabaseDown, At: when, For: 10 * second})
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.FailedCommit })
	locally(&o)
	holds(t, o, errorbound.LocalStores, func(c *sim.Coverage) int64 { return c.LocalStore })
}

func locally(o *sim.Options) {
	for i := range o.Budgets {
		o.Budgets[i].OnFailure = localAllowance(20, 40)
	}
}

func TestS12LimitLoweredWhileARegionIsCutOff(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.Partition, At: when - second, For: 9 * second, Region: "us"})
	less := o.Budgets[1]
	less.Contract = perSecond(60, 60)
	o.Changes = []sim.Change{{At: when, Apply: []policy.Budget{less}}}
	holds(t, o, errorbound.LimitCut, func(c *sim.Coverage) int64 { return c.PolicyChanged })
}

func TestS13LimitRaisedAndRolledBack(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.DegradeLinks, At: second, Link: badLink()})
	more, again := o.Budgets[0], o.Budgets[0]
	more.Contract = perSecond(600, 900)
	o.Changes = []sim.Change{
		{At: 6 * second, Apply: []policy.Budget{more}}, {At: 6100 * ms, Apply: []policy.Budget{more}}, {At: 14 * second, Apply: []policy.Budget{again}},
	}
	holds(t, o, errorbound.LimitCut, func(c *sim.Coverage) int64 { return c.PolicyChanged })
}

func badLink() sim.Link {
	return sim.Link{Delay: sim.Delay{Base: 50 * ms, Uniform: 300 * ms}, Loss: 0.1, Duplicate: 0.2, Reorder: 0.1, ReorderBy: second}
}

func TestS14LedgerClocksDriftAsDeclared(t *testing.T) {
	for _, ppm := range []int64{-1000, 1000} {
		o := busy()
		o.Topology.Ledger.Database.DriftPPM, o.Topology.Ledger.Allocator.DriftPPM = ppm, ppm
		holds(t, o, "", nil)
	}
}

// A database's clock that runs away is held by the allocators' own: it mints no
// more than they allow, and moving the governed offset is the alarm.
func TestS15DatabaseClockRunsAway(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.DriftDatabaseClock, At: second, PPM: 500_000}), "", func(c *sim.Coverage) int64 { return c.ClockMoved })
}

func TestS16DatabaseClockSteps(t *testing.T) {
	for _, step := range []time.Duration{5 * second, -5 * second} {
		holds(t, busy(sim.Fault{Kind: sim.StepDatabaseClock, At: when, Step: step}), errorbound.WindowEdge, func(c *sim.Coverage) int64 { return min(c.ClockStepped, c.ClockMoved) })
	}
}

func TestS17PrimariesWithDifferentClocks(t *testing.T) {
	for _, step := range []time.Duration{2 * second, -2 * second} {
		holds(t, busy(sim.Fault{Kind: sim.DatabaseFailover, At: when, Step: step}), errorbound.WindowEdge, func(c *sim.Coverage) int64 { return min(c.LedgerFailover, c.ClockMoved) })
	}
}

func TestS18AgentClocks(t *testing.T) {
	for _, ppm := range []int64{-1000, 1000} {
		o := busy()
		for i := range o.Topology.Regions {
			o.Topology.Regions[i].Agent = sim.Clock{Offset: time.Duration(i-1) * time.Minute, DriftPPM: ppm}
		}
		holds(t, o, "", nil)
	}
}

func TestS19StoreClockStepsBack(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StepStoreClock, At: when, Step: -500 * ms}, sim.Fault{Kind: sim.Partition, At: when - second, For: 9 * second, Region: "us"})
	o.Topology.Declared.BackStep = 500 * ms
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.ClockStepped, c.Expired) })
}

// A share that is installed while its store's clock is behind mints from then
// on: once the clock is right again, an agent that saw neither step takes that
// for time that has passed.
func TestS19StoreClockStepsBackAndForth(t *testing.T) {
	o := backAndForth()
	r := holds(t, o, errorbound.StoreStep, func(c *sim.Coverage) int64 { return min(c.ClockStepped, c.RowLost) })
	if over := r.Budgets[0].Any.Over; over < 300 {
		t.Errorf("%d above the contract; the step mints 500", over)
	}
	// The agent that was there meanwhile sees the second step.
	o.Faults = o.Faults[:3]
	if r := holds(t, o, errorbound.StoreStep, nil); r.Budgets[0].Any.Over > 0 {
		t.Errorf("%d above the contract", r.Budgets[0].Any.Over)
	}
}

func backAndForth() sim.Options {
	o := small(1, policy.Budget{Contract: perSecond(1000, 2000), Strategy: policy.Static})
	o.Topology.Declared = lease.Clocks{DriftPPM: 100, BackStep: 500 * ms, Quantum: 5 * ms}
	o.Topology.Regions[0].Agents, o.MaxAgents = 2, 2
	o.Budgets[0].Regions = allRegions(&o)
	o.Length = 6 * second
	o.Faults = []sim.Fault{
		{Kind: sim.StepStoreClock, At: 4 * second, Step: -500 * ms},
		{Kind: sim.LoseRow, At: 4*second + ms},
		{Kind: sim.StepStoreClock, At: 4500 * ms, Step: 500 * ms},
		{Kind: sim.PauseAgent, At: 4*second - ms, For: 503 * ms, Agent: 1},
		{Kind: sim.KillAgent, At: 4499 * ms, Agent: 0},
	}
	everywhere(&o, sim.Phases{List: []sim.Phase{
		phase(0, 100, false), {At: 3900 * ms, AtOnce: 3000, PerSecond: 2000}, phase(3990*ms, 50, false), phase(4505*ms, 4000, false), phase(5*second, 0, false),
	}})
	return o
}

func TestS20AgentStoppedForLongerThanALease(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.PauseAgent, At: when, For: 6 * second, Agent: -1}), "", func(c *sim.Coverage) int64 { return min(c.AgentPaused, c.Expired) })
}

func TestS21AgentStoppedInATake(t *testing.T) {
	for _, span := range []time.Duration{1990 * ms, 2500 * ms, 5 * second} {
		holds(t, busy(sim.Fault{Kind: sim.FreezeInTake, At: when, For: span, Agent: -1}), "", func(c *sim.Coverage) int64 { return c.FrozenInTake })
		holds(t, busy(sim.Fault{Kind: sim.FreezeInDecision, At: when, For: span, Agent: -1}), "", func(c *sim.Coverage) int64 {
			if span < lease.ProcessDeadline {
				return c.FrozenInDecision // it may still be in time
			}
			return min(c.FrozenInDecision, c.Discarded)
		})
	}
}

func TestS22StoreStoppedForLongerThanALease(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StoreStall, At: when, For: 7 * second, Region: "us"})
	o.Topology.StoreOutage = 7 * second
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.BreakerOpened, c.Expired) })
}

func TestS23SuspendedMachine(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.SuspendAgent, At: when, For: 5 * second, Region: "us", Agent: -1}), errorbound.Suspension, func(c *sim.Coverage) int64 { return c.AgentSuspended })
}

func TestS24GrantsComeTooLate(t *testing.T) {
	late := sim.Link{Delay: sim.Delay{Base: 100 * ms}, Reorder: 0.3, ReorderBy: 5 * second}
	holds(t, busy(sim.Fault{Kind: sim.DegradeLinks, At: 2 * second, For: 16 * second, Link: late}), "", func(c *sim.Coverage) int64 { return min(c.LateReply, c.Expired) })
}

func TestS25MessagesRepeatedAndReordered(t *testing.T) {
	link := sim.Link{Delay: sim.Delay{Base: 30 * ms}, Duplicate: 0.1, Reorder: 0.1, ReorderBy: 400 * ms}
	holds(t, busy(sim.Fault{Kind: sim.DegradeLinks, Link: link}), "", func(c *sim.Coverage) int64 {
		return min(c.Duplicated, c.Reordered, c.ReplayedSequence, c.OlderSequence)
	})
}

func TestS26TotalsComeAfterTheWriteOff(t *testing.T) {
	slow := sim.Link{Delay: sim.Delay{Base: 20 * ms}, Reorder: 0.5, ReorderBy: 6 * second}
	holds(t, busy(
		sim.Fault{Kind: sim.DegradeLinks, At: when, For: 2 * second, Link: slow},
		sim.Fault{Kind: sim.Partition, At: when + 2*second, For: 8 * second}), "", func(c *sim.Coverage) int64 { return c.LateTotals })
}

func TestS27OneWayPartitions(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.CutRequests, At: when, For: 6 * second, Region: "us"}), "", func(c *sim.Coverage) int64 { return c.Lost })
	holds(t, busy(sim.Fault{Kind: sim.CutReplies, At: when, For: 6 * second, Region: "us"}), "", func(c *sim.Coverage) int64 { return min(c.Lost, c.ReplayedSequence) })
}

func TestS28RegionCutOffForTwoLives(t *testing.T) {
	r := holds(t, busy(sim.Fault{Kind: sim.Partition, At: when, For: 6 * second, Region: "us"}), "", func(c *sim.Coverage) int64 { return c.Expired })
	if r.Budgets[0].Regions[0].Admitted == 0 {
		t.Error("the region never came back")
	}
}

// A region's local allowance is one bucket that no reconnection refills.
func TestS29FlappingLink(t *testing.T) {
	o := busy()
	locally(&o)
	for i := range 50 {
		o.Faults = append(o.Faults, sim.Fault{Kind: sim.Partition, At: 2*second + time.Duration(i)*400*ms, For: 300 * ms})
	}
	holds(t, o, errorbound.LocalStores, func(c *sim.Coverage) int64 { return c.LocalStore })
}

func TestS30AllRegionsCutOff(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.Partition, At: when, For: 9 * second})
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.Expired }) // fail closed
	static := o
	static.Budgets = append([]policy.Budget(nil), o.Budgets...)
	static.Budgets[0].Regions = allRegions(&o)
	for i := range static.Budgets[0].Regions { // fail static: a reserve for each
		static.Budgets[0].Regions[i].Reserve = policy.Reserve{Rate: lease.Rate{Tokens: 30, Per: second}, Burst: 60}
	}
	static.Budgets[0].ShareTTL = 20 * second
	holds(t, static, "", func(c *sim.Coverage) int64 { return c.Expired })
	locally(&o) // fail open
	holds(t, o, errorbound.LocalStores, func(c *sim.Coverage) int64 { return c.LocalStore })
}

func TestS31RequestsRetriedAndRestarted(t *testing.T) {
	holds(t, busy(
		sim.Fault{Kind: sim.LoseReplies, At: second, Probability: 0.6},
		sim.Fault{Kind: sim.StoreRestart, At: when, Region: "us"}), "", func(c *sim.Coverage) int64 { return min(c.ReplayedSequence, c.StoreRestarted) })
}

func TestS33LaggingReplicaPromoted(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.StoreFailover, At: when, Lag: second}), "", func(c *sim.Coverage) int64 { return min(c.VoidRow, c.Regranted) })
}

func TestS35IsolatedOldPrimary(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StoreFailover, At: when, Lag: 100 * ms, Isolated: 5 * second})
	o.Topology.ReplicatedStores, o.Topology.StoreIsolation = true, 5*second
	holds(t, o, errorbound.RegrantedShare, func(c *sim.Coverage) int64 { return min(c.StoreFailedOver, c.Regranted) })
	for i := range o.Budgets {
		o.Budgets[i].OnStoreLoss = policy.Wait
	}
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.StoreFailedOver })
}

// A replaced primary cannot tell whether its row was lost or it was replaced:
// it asks for the new one's share, and the new one for that, again and again.
// So the share that the ledger has taken back may be either's.
func TestS35PrimariesAskForEachOthersShares(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StoreFailover, At: when, Lag: when, Isolated: 5 * second, Region: "us"})
	o.Topology.ReplicatedStores, o.Topology.StoreIsolation = true, 5*second
	o.Budgets[0].Contract = perSecond(300, 30) // paced
	r := holds(t, o, errorbound.RegrantedShare, nil)
	if n := r.Coverage.Regranted; n < 6 {
		t.Errorf("%d shares were regranted: that is no duel", n)
	}
}

func TestS36StoreRestartsEmptyWithInstallsUnderWay(t *testing.T) {
	holds(t, busy(
		sim.Fault{Kind: sim.DegradeLinks, Link: badLink()},
		sim.Fault{Kind: sim.StoreRestart, At: when}, sim.Fault{Kind: sim.StoreRestart, At: when + second}), "", func(c *sim.Coverage) int64 { return c.StoreRestarted })
}

func TestS37StoreRestartsFromASnapshot(t *testing.T) {
	for _, lag := range []time.Duration{second, 7 * second} {
		holds(t, busy(sim.Fault{Kind: sim.StoreRestore, At: when, Lag: lag}), "", func(c *sim.Coverage) int64 { return min(c.StoreRestored, c.VoidRow) })
	}
}

func TestS38RowsEvicted(t *testing.T) {
	o := busy()
	for i := range 10 {
		o.Faults = append(o.Faults, sim.Fault{Kind: sim.LoseRow, At: 3*second + time.Duration(i)*1700*ms, Budget: o.Budgets[i%3].Name})
	}
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.RowLost })
}

func TestS40ReplicationIDChanges(t *testing.T) {
	holds(t, busy(sim.Fault{Kind: sim.StoreFailover, At: when}), "", func(c *sim.Coverage) int64 { return c.VoidRow })
}

func TestS41StoreUnreachableWhilePrefetchIsSpent(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StoreStall, At: when, For: 2500 * ms})
	o.Topology.StoreOutage = 2500 * ms
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.BreakerOpened, c.Prefetched) })
}

func TestS42AgentsKilled(t *testing.T) {
	o := busy()
	for i := range 30 {
		o.Faults = append(o.Faults, sim.Fault{Kind: sim.KillAgent, At: 2*second + time.Duration(i)*613*ms, For: 300 * ms, Agent: i%3 - 1})
	}
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.AgentKilled, c.ResumedSequence) })
}

func TestS43AgentsRaceOverOneLease(t *testing.T) {
	o := busy(sim.Fault{Kind: sim.StoreUnknown, At: second, Probability: 0.1})
	for i := range o.Topology.Regions {
		o.Topology.Regions[i].Agents = 3
	}
	o.RandomAgents, o.MaxAgents, o.Topology.StoreOutage = true, 3, o.Length
	holds(t, o, "", func(c *sim.Coverage) int64 { return min(c.ResumedSequence, c.StaleInstall) })
}

func TestS44RollingRestart(t *testing.T) {
	o := busy()
	for i := range 2 {
		for k, r := range o.Topology.Regions {
			o.Faults = append(o.Faults, sim.Fault{Kind: sim.StopAgent, At: 4*second + time.Duration(3*i+k)*2*second, For: second, Region: r.Name, Agent: i})
		}
	}
	r := holds(t, o, "", func(c *sim.Coverage) int64 { return c.AgentStopped })
	calm := holds(t, busy(), "", nil)
	if rate, without := r.Budgets[0].FalseDenialRate(), calm.Budgets[0].FalseDenialRate(); rate > without+0.1 {
		t.Errorf("%.3f of all requests were denied falsely, %.3f without restarts", rate, without)
	}
}

func TestS46DemandShiftsAndAHoarderDumps(t *testing.T) {
	o := busy()
	o.Budgets[0].OverAdmission.Tokens = 100
	o.Workloads[2].Pattern = sim.Hoarder{Quiet: 30, First: 5 * second, Every: 3 * second}
	r := holds(t, o, "", nil)
	if b := r.Budgets[1]; b.Moves == 0 {
		t.Error("no demand moved")
	}
}

func TestS47RetryStorm(t *testing.T) {
	o := busy()
	o.Workloads[0].Pattern = sim.Flash{Base: 100, Peak: 1500, At: when, Rise: 100 * ms, Hold: 3 * second, Fall: second}
	r := holds(t, o, "", nil)
	for _, region := range r.Budgets[0].Regions {
		if region.Admitted == 0 {
			t.Errorf("%s starves", region.Name)
		}
	}
}

// What all regions spend at one instant is the float's bound, nearly attained.
func TestS48SynchronousDump(t *testing.T) {
	o := attackFloat()
	o.Windows = []time.Duration{second / 2}
	r := holds(t, o, "", nil)
	if over := r.Budgets[0].Any.Over; over < 900 {
		t.Errorf("%d above the contract, of a float of 1000", over)
	}
}

func TestS49LargeCostsAndAQuotaWithoutRate(t *testing.T) {
	o := busy()
	for i := range o.Workloads {
		o.Workloads[i].Cost = sim.Cost{Choices: []sim.CostChoice{{Cost: 1, Weight: 3}, {Cost: 150, Weight: 1}, {Cost: 590, Weight: 1}}}
	}
	o.Length = 40 * second
	o.Budgets = append(o.Budgets, policy.Budget{Name: "t/once", Contract: perSecond(0, 700), TTL: 3 * second})
	load := sim.Workload{Region: "us", Budgets: []string{"t/once"}, Pattern: sim.Constant{PerSecond: 100}}
	for _, load.Region = range []string{"us", "eu"} {
		load.Name = "once/" + load.Region
		o.Workloads = append(o.Workloads, load)
	}
	r := holds(t, o, "", nil)
	if b := r.Budgets[3]; b.AdmittedTokens > 700 {
		t.Errorf("%d of 700 tokens admitted", b.AdmittedTokens)
	}
}

// Everything at once: the seed's number is the scenario's.
func TestS50Everything(t *testing.T) {
	if _, wrong := play(50); len(wrong) > 0 {
		t.Error(wrong)
	}
}

// Answers to takes that come when their decisions are long over bring tokens
// that others may spend until the time that counts from before they were asked
// for. Seen to catch: that time counted from the answer.
func TestAnswersToTakesComeLate(t *testing.T) {
	o := small(1, policy.Budget{Contract: perSecond(5000, 5000), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Length, o.MaxAgents = 17*second, 2
	o.Topology.Regions[0].Agents = 2
	o.Faults = []sim.Fault{{Kind: sim.StoreUnknown, At: 2500 * ms, For: 500 * ms, Probability: 0.5}}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(2*second, 4900, false), phase(3050*ms, 60, false)}})
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.LateTake })
}

// Of refills whose answers are lost nobody spends what they brought, and what they
// told counts once.
func TestRefillsAreLost(t *testing.T) {
	o := small(1, policy.Budget{Contract: perSecond(5000, 5000), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Length, o.MaxAgents = 60*second, 2
	o.Topology.Regions[0].Agents = 2
	o.Faults = []sim.Fault{
		{Kind: sim.StoreUnknown, At: 8 * second, For: 40 * second, Probability: 0.3},
		{Kind: sim.KillAgent, At: 20 * second, For: second},
		{Kind: sim.StoreRestart, At: 30 * second},
	}
	everywhere(&o, sim.Constant{PerSecond: 6})
	holds(t, o, "", func(c *sim.Coverage) int64 { return c.LostRefill })
}
