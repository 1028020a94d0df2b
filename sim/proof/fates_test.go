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
	// elsewhere names the test that kills it, and why the simulator cannot;
	// empty where the simulator does.
	elsewhere string
	// ground makes the runs that it is hunted in; nil for those of random.
	ground func(seed uint64) sim.Options
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
	o.Seed, o.Length, o.MaxAgents = seed, 7*second, 2
	o.Topology.Regions[0].Agents = 2
	o.Faults = []sim.Fault{{Kind: sim.FreezeInTake, At: 2900*ms + time.Duration(r.IntN(99))*ms, For: 1900 * ms, Agent: 0}}
	everywhere(&o, sim.Phases{List: []sim.Phase{phase(2*second, 4900, false), phase(3050*ms, 60, false)}})
	return o
}

// fates has every mutant, in order.
var fates = []fate{
	{mutant.AnchorAtReply, "anchor at the reply", "", nil},
	{mutant.AnchorMovedOnRetry, "anchor moved on retry", "", racingAgents},
	{mutant.NoGuard, "no guard", "", nil},
	{mutant.ExtendedAtSend, "deadline extended at send", "", nil},
	{mutant.OtherSequenceExtends, "a reply of another sequence extends", "", nil},
	{mutant.InstallAdds, "install adds", "", nil},
	{mutant.InstallAnyIncarnation, "install without the incarnation", "", nil},
	{mutant.InstallCreatesRow, "install creates a missing row", "", nil},
	{mutant.ReplayGrantsAgain, "replayed sequence granted again", "", nil},
	{mutant.OlderSequenceProcessed, "older sequence processed", "", nil},
	{mutant.ReturnCreditedPerDelivery, "returned credited per delivery", "", nil},
	{mutant.ReturnReportedFirst, "returned reported first", "", nil},
	{mutant.UsedCountsTaken, "used counts what was taken", "regionstore/storetest TestMutantsDie: a wallet that counts what is taken twice starves, and admits nothing too much", nil},
	{mutant.CloseNotFenced, "close not fenced", "", nil},
	{mutant.NoReplicationID, "no replication id check", "", nil},
	{mutant.EndedRevived, "an ended lease revived", "", nil},
	{mutant.ExpiryCredits, "expiry credits the rest", "", nil},
	{mutant.LateTotalsCredited, "late totals credited", "", nil},
	{mutant.CeilingIgnoresOutstanding, "ceiling ignores outstanding", "", nil},
	{mutant.ShorterTTLReclaimsEarlier, "shorter ttl reclaims earlier", "", nil},
	{mutant.ProcessDeadlineAtReply, "process deadline at the reply", "", frozenAhead},
	{mutant.UseRepeated, "use or give back repeated", "", nil},
	{mutant.UseOnNewRow, "use or give back on a new row", "regionstore/storetest TestMutantsDie: random runs seldom bring its parts together", nil},
	{mutant.ShareExpiryRefunds, "a share's expiry refunds", "", nil},
	{mutant.RegrantedEarly, "regranted before the old one ended", "", nil},
	{mutant.MintFromAnchor, "minting from the anchor", "regionstore/storetest TestMutantsDie: random runs seldom bring its parts together", nil},
	{mutant.XAboveR, "x above r", "", nil},
	{mutant.RecallCountedAtSend, "recall counted at send", "", nil},
	{mutant.ShrinkReturns, "shrinking returns tokens", "", nil},
	{mutant.NotAfterStepped, "not_after from the stepped clock", "regionstore/storetest TestMutantsDie: random runs seldom bring its parts together", nil},
	{mutant.InitialAddedAgain, "n0 added by a repeated install", "", nil},
}
