//go:build mutants

package proof_test

import (
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// fate is where a mutant dies.
type fate struct {
	mutant mutant.Mutant
	name   string
	// ground makes the runs that it is hunted in; nil for those of random.
	ground func(seed uint64) sim.Options
	// alarms is set where the ledger's alarm counts as noticed: its clocks are
	// right, so that nothing else raises one.
	alarms bool
}

// racingAgents keep a wallet whose ledger answers late, and are then cut off
// for longer than it lives: an anchor that a second sender moves outlives the
// ledger's reclaim.
func racingAgents(seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 1))
	o := small(1, policy.Budget{Contract: perSecond(50, 90), TTL: second})
	o.Seed, o.Length, o.MaxAgents, o.RandomAgents = seed, 12*second, 4, true
	o.Topology.Declared = lease.Clocks{DriftPPM: 100, Quantum: 5 * ms}
	home := &o.Topology.Regions[0]
	home.Agents, home.Up, home.Down = 4, sim.Link{Delay: sim.Delay{Base: ms}}, sim.Link{Delay: sim.Delay{Base: 400 * ms}}
	everywhere(&o, sim.Bursty{States: []sim.BurstState{{PerSecond: 120, Mean: 200 * ms}, {PerSecond: 5, Mean: 600 * ms}}})
	for i := range 4 {
		at := time.Duration(1+3*i)*second + time.Duration(r.IntN(1000))*ms
		o.Faults = append(o.Faults, sim.Fault{Kind: sim.Partition, At: at, For: 1500 * ms})
	}
	return o
}

// frozenAhead has an agent that stands still in the take that brought it what
// it then spends slowly, while its neighbour keeps the store's clock going.
func frozenAhead(seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 2))
	o := small(1, policy.Budget{Contract: perSecond(5000, 5000), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Seed, o.Length, o.MaxAgents = seed, 17*second, 2
	o.Topology.Regions[0].Agents = 2
	o.Faults = []sim.Fault{{Kind: sim.FreezeInTake, At: 2900*ms + time.Duration(r.IntN(99))*ms, For: lease.LongestProcessDeadline + 3*second, Agent: 0}}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(2*second, 4900, false), phase(3050*ms, 60, false)}})
	return o
}

// cutOff is a region with all of a budget, which spends it as it comes; its
// share ends while it is cut off, and the next is asked for over a slow link.
// Meanwhile the pool mints.
func cutOff(seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 3))
	o := small(1, policy.Budget{Contract: perSecond(100, 1000), Strategy: policy.Static, ShareTTL: 3 * second})
	o.Budgets[0].Regions = allRegions(&o)
	o.Seed, o.Length = seed, 14*second
	o.Topology.Declared = lease.Clocks{DriftPPM: 100, Quantum: 5 * ms}
	at := 8*second + time.Duration(r.IntN(1000))*ms
	slow := sim.Link{Delay: sim.Delay{Base: time.Duration(300+r.IntN(300)) * ms}}
	o.Faults = []sim.Fault{
		{Kind: sim.Partition, At: at - 4500*ms, For: 4500 * ms},
		{Kind: sim.DegradeLinks, At: at - second, Link: slow},
	}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(0, 150, false), phase(at-3*second, 150, true), phase(at+2*second, 150, true)}})
	return o
}

// leapingStore is a store whose clock is stepped by seconds while its share is
// spent as it mints.
func leapingStore(seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 4))
	o := small(1, policy.Budget{Contract: perSecond(200, 500), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Seed, o.Length = seed, 8*second
	at := 3*second + time.Duration(r.IntN(3000))*ms
	o.Faults = []sim.Fault{{Kind: sim.StepStoreClock, At: at, Step: time.Duration(1+r.IntN(3)) * second, Region: "a"}}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(0, 300, true)}})
	return o
}

// takenAhead keeps tokens in processes all the time.
func takenAhead(seed uint64) sim.Options {
	o := small(1, policy.Budget{Contract: perSecond(5000, 400), Strategy: policy.Static})
	o.Budgets[0].Regions = allRegions(&o)
	o.Seed, o.Length = seed, 4*second
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(0, 4950, false)}})
	return o
}

// lateSettlement has a process that stands still with what it used of a lump,
// which it then tells to a row that another life of the store opened: by then
// the ledger has written that lump off, and the new one's tokens lie ahead in a
// neighbour that stands still.
func lateSettlement(seed uint64) sim.Options {
	r := rand.New(rand.NewPCG(seed, 5))
	o := small(1, policy.Budget{Contract: perSecond(10_000, 5000), TTL: second})
	o.Seed, o.Length, o.MaxAgents = seed, 6*second, 2
	o.Topology.Declared = lease.Clocks{DriftPPM: 100, Quantum: 5 * ms}
	o.Topology.Regions[0].Agents = 2
	at := 2*second + time.Duration(r.IntN(1000))*ms
	wakes := at + 1200*ms
	o.Faults = []sim.Fault{
		{Kind: sim.PauseAgent, At: at, For: wakes - at, Agent: 0},
		{Kind: sim.StoreRestart, At: at + 5*ms, Region: "a"},
		{Kind: sim.PauseAgent, At: wakes - 10*ms, For: 1500 * ms, Agent: 1},
	}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(0, 8000, false), phase(wakes-5*ms, 0, false), phase(wakes+second, 8000, true)}})
	return o
}

// fates has every mutant, in order.
var fates = []fate{
	{mutant.AnchorAtReply, "anchor at the reply", nil, false},
	{mutant.AnchorMovedOnRetry, "anchor moved on retry", racingAgents, false},
	{mutant.NoGuard, "no guard", nil, false},
	{mutant.ExtendedAtSend, "deadline extended at send", nil, false},
	{mutant.OtherSequenceExtends, "a reply of another sequence extends", nil, false},
	{mutant.InstallAdds, "install adds", nil, false},
	{mutant.InstallAnyIncarnation, "install without the incarnation", nil, false},
	{mutant.InstallCreatesRow, "install creates a missing row", nil, false},
	{mutant.ReplayGrantsAgain, "replayed sequence granted again", nil, false},
	{mutant.OlderSequenceProcessed, "older sequence processed", nil, false},
	{mutant.ReturnCreditedPerDelivery, "returned credited per delivery", nil, false},
	{mutant.ReturnReportedFirst, "returned reported first", nil, false},
	{mutant.UsedCountsTaken, "used counts what was taken", takenAhead, true},
	{mutant.CloseNotFenced, "close not fenced", nil, false},
	{mutant.NoReplicationID, "no replication id check", nil, false},
	{mutant.EndedRevived, "an ended lease revived", nil, false},
	{mutant.ExpiryCredits, "expiry credits the rest", nil, false},
	{mutant.LateTotalsCredited, "late totals credited", nil, false},
	{mutant.CeilingIgnoresOutstanding, "ceiling ignores outstanding", nil, false},
	{mutant.ShorterTTLReclaimsEarlier, "shorter ttl reclaims earlier", nil, false},
	{mutant.ProcessDeadlineAtReply, "process deadline at the reply", frozenAhead, false},
	{mutant.UseRepeated, "use or give back repeated", nil, false},
	{mutant.UseOnNewRow, "use or give back on a new row", lateSettlement, false},
	{mutant.ShareExpiryRefunds, "a share's expiry refunds", nil, false},
	{mutant.RegrantedEarly, "regranted before the old one ended", nil, false},
	{mutant.MintFromAnchor, "minting from the anchor", cutOff, false},
	{mutant.XAboveR, "x above r", nil, false},
	{mutant.RecallCountedAtSend, "recall counted at send", nil, false},
	{mutant.ShrinkReturns, "shrinking returns tokens", nil, false},
	{mutant.NotAfterStepped, "not_after from the stepped clock", leapingStore, false},
	{mutant.InitialAddedAgain, "n0 added by a repeated install", nil, false},
}
