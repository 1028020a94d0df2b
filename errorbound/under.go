package errorbound

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Loss is one named way in which a budget admits less than one ideal bucket
// would, at its worst.
type Loss struct {
	Name string `json:"name" yaml:"name"`
	// Tokens that are not admitted or lie where nobody asks, of a throughput in
	// each period of the rate; 0 if the loss is one of time alone.
	Tokens lease.Tokens `json:"tokens" yaml:"tokens"`
	// For is how long it lasts; 0 for as long as its reason does.
	For time.Duration `json:"for" yaml:"for"`
	// Formula has the numbers filled in; Setting is what changes it.
	Formula string `json:"formula" yaml:"formula"`
	Setting string `json:"setting" yaml:"setting"`
}

// The losses, in the order of Under.
const (
	DeadRegion    = "region that dies"
	DeadProcess   = "process that dies"
	IdleParts     = "parts nobody uses"
	FalseDenials  = "false denials"
	Reporting     = "throughput lost to reporting"
	Rebalance     = "rebalance after a shift"
	ColdStart     = "first request in a region"
	StoreLost     = "store that is lost"
	AllocatorAway = "allocator away"
)

// The agent's and the planner's pace, which the losses rest on: how often a
// region looks whether it has something to say, what its own steps add to a
// round trip, how long a decision waits for its first lease, and how much of
// the ceiling may be on the way before the plan paces a region.
const (
	reportEvery = 100 * time.Millisecond
	decideTime  = 20 * time.Millisecond
	firstWait   = 50 * time.Millisecond
	// denialMemory is how long a process denies without asking again.
	denialMemory = 100 * time.Millisecond
	paceAbove    = 4 // percent, of what is spent in a round trip and nearby
	nearby       = 4 * time.Millisecond
	paceTiny     = 30 // percent, of what is spent until it is reported, below tinyBelow
	tinyBelow    = 7  // tokens of ceiling per region
	// longestPoll is how long the ledger holds a request that it cannot serve,
	// and longestPause how long a region waits before it tries again, with the
	// agents' jitter of a quarter.
	longestPoll  = 500 * time.Millisecond
	longestPause = 6250 * time.Millisecond
)

// Under lists what a normalized budget loses for its guarantee. Zero losses
// are listed too, with why.
func Under(b policy.Budget, d Deployment) ([]Loss, error) {
	m, err := check(b, d, time.Second)
	if err != nil {
		return nil, err
	}
	return []Loss{
		m.deadRegion(), m.deadProcess(), m.idleParts(), m.falseDenials(), m.reporting(),
		m.rebalance(), m.coldStart(), m.storeLost(), m.allocatorAway(),
	}, nil
}

func (m *model) dynamic() bool { return m.budget.Strategy == policy.Dynamic }

// deadRegion: what it held, and what its shares would have minted.
func (m *model) deadRegion() Loss {
	held, rate, ttl := m.largestPart()
	life := m.reclaimed(ttl)
	if reserve := m.largestReserve(); !reserve.Zero() {
		// Only the reserve stays for the longer life.
		short := m.reclaimed(m.budget.TTL)
		return Loss{
			Name: DeadRegion, Tokens: ceil(sum(whole(held), minted(rate, short), minted(reserve, life))), For: life,
			Formula: fmt.Sprintf("ceil(%d + %s·%s + %s·%s)", held, policy.FormatRate(rate), policy.FormatDuration(short),
				policy.FormatRate(reserve), policy.FormatDuration(life)),
			Setting: ttlSetting(true),
		}
	}
	return Loss{
		Name: DeadRegion, Tokens: ceil(sum(whole(held), minted(rate, life))), For: life,
		Formula: fmt.Sprintf("ceil(%d + %s·%s)", held, policy.FormatRate(rate), policy.FormatDuration(life)),
		Setting: ttlSetting(ttl == m.budget.ShareTTL),
	}
}

func (m *model) largestReserve() lease.Rate {
	var largest lease.Rate
	for _, r := range m.budget.Regions {
		largest = faster(largest, r.Reserve.Rate)
	}
	return largest
}

func ttlSetting(share bool) string {
	if share {
		return "lease.share_ttl: shorter strands less, and rides through shorter outages of the allocator"
	}
	return "lease.ttl: shorter strands less, and rides through shorter outages of the allocator"
}

// largestPart is what the region with the most may hold, and for how long.
func (m *model) largestPart() (held lease.Tokens, rate lease.Rate, ttl time.Duration) {
	switch {
	case m.quota && m.budget.Strategy != policy.Dynamic:
		return max(1, m.burst/100), lease.Rate{}, m.budget.TTL // pieces of a hundredth
	case m.dynamic() || m.budget.Strategy == policy.Independent:
		ttl = m.budget.TTL
		if m.hasStanding() {
			ttl = max(ttl, m.budget.ShareTTL)
		}
		return ceil(m.heldByOne()), m.rate, ttl
	}
	fine := m.rate.Fine()
	rate.Per = fine.Per
	for i := range m.budget.Regions {
		held = max(held, m.budget.Part(i, m.burst))
		rate.Tokens = max(rate.Tokens, m.budget.Part(i, fine.Tokens))
	}
	return held, rate, m.budget.ShareTTL
}

// deadProcess: what a process held is counted with what others took after it, as
// long as what was taken before it still counts. So it may take two lives of the
// longest hold until all of that has aged out.
func (m *model) deadProcess() Loss {
	held, why := m.prefetch()
	life := 2 * m.reclaimed(lease.LongestProcessDeadline)
	return Loss{
		Name: DeadProcess, Tokens: held, For: life,
		Formula: fmt.Sprintf("%d, %s", held, why),
		Setting: "none: a process takes ahead what it uses in 20 ms, or a small part of the contract",
	}
}

// idleParts: with all demand in the smallest part, the others' lie idle.
func (m *model) idleParts() Loss {
	l := Loss{Name: IdleParts, Setting: "strategy " + string(m.budget.Strategy) + " lets one region have the whole contract"}
	if m.budget.Strategy != policy.Static {
		l.Formula = "0"
		return l
	}
	l.Setting = "strategy dynamic, or weights that follow demand"
	smallest := m.burst
	for i := range m.budget.Regions {
		smallest = min(smallest, m.budget.Part(i, m.burst))
	}
	l.Tokens = m.burst - smallest
	l.Formula = fmt.Sprintf("%d - %d of %d, and of the rate in the same proportion, while all demand is in the smallest part", m.burst, smallest, m.burst)
	return l
}

// falseDenials: an ideal bucket's level is ahead of what can be spent by what
// has been spent and not reported, less the float. A region reports once a tenth
// of the ceiling is unreported in all of them, unless a report is under way
// already: that may take one pace, a round trip with the ledger's long poll, and
// the way of the next report.
func (m *model) falseDenials() Loss {
	l := Loss{Name: FalseDenials, Formula: "0"}
	switch {
	case m.quota:
		l.Setting = "a quota refuses no refill; tokens in another region are recalled within the rebalance time"
		return l
	case !m.dynamic():
		l.Setting = "a share holds its cap only, reported or not; see the parts nobody uses"
		return l
	}
	unsaid := ceil(m.ceiling)
	l.Formula = fmt.Sprintf("max(0, min(%d, %d) - %d), as much as regions may spend before they report it", m.burst, unsaid, m.budget.Float)
	if spend := m.deploy.SpendRate; !spend.Zero() {
		fly := longer(m.deploy.RTT+m.deploy.RTT/2, reportEvery+longestPoll)
		out := sum(new(big.Rat).Quo(m.ceiling, whole(10)), scale(minted(spend, fly), int64(m.regions)))
		unsaid = min(unsaid, ceil(out))
		l.Formula = fmt.Sprintf("max(0, min(%d, %d/10 + %s) - %d)", m.burst, ceil(m.ceiling),
			each(m.regions, "%s·%s", policy.FormatRate(spend), policy.FormatDuration(fly)), m.budget.Float)
	}
	l.Tokens = max(0, min(unsaid, m.burst)-m.budget.Float)
	l.Setting = fmt.Sprintf("over_admission: {tokens: %d} makes it 0; regions that spend more slowly make it less", min(unsaid, m.burst))
	return l
}

// kind is what the plan uses where the whole rate is in the farthest region.
func (m *model) kind() string {
	switch {
	case !m.quota && !m.dynamic():
		return "shares"
	case m.quota:
		return "lumps"
	}
	if scale(minted(m.rate, m.underWay()), 100).Cmp(scale(m.ceiling, m.paceAbove())) > 0 {
		return "paced shares"
	}
	return "lumps"
}

// underWay and paceAbove are the plan's measure of distance: tokens spent in
// that time, as part of the ceiling in percent, above which it paces.
func (m *model) underWay() time.Duration {
	if m.tiny() {
		return longer(m.deploy.RTT, reportEvery)
	}
	return longer(m.deploy.RTT, nearby)
}

func (m *model) paceAbove() int64 {
	if m.tiny() {
		return paceTiny
	}
	return paceAbove
}

// tiny reports whether the plan divides the ceiling token by token.
func (m *model) tiny() bool {
	return m.ceiling.Cmp(whole(lease.Tokens(tinyBelow*m.regions))) < 0
}

// reporting: with lumps the full rate needs room for what is spent until it is
// reported and replaced; a share holds its cap however long that takes.
func (m *model) reporting() Loss {
	l := Loss{Name: Reporting, Formula: "0", Setting: "shares hold their caps, whatever the round trip"}
	h := longer(m.deploy.RTT, reportEvery)
	switch m.kind() {
	case "lumps":
		l.Setting = "the plan keeps lumps within the ceiling"
		if m.quota {
			return l
		}
		way := m.underWay()
		l.Formula = fmt.Sprintf("0: on the way are %s·%s = %d, at most %d %% of %d",
			m.rateText(), policy.FormatDuration(way), ceil(minted(m.rate, way)), m.paceAbove(), ceil(m.ceiling))
	case "paced shares":
		lumps := "less"
		if fly := minted(m.rate, h); fly.Cmp(m.ceiling) > 0 {
			lumps = fmt.Sprintf("at most %s %%", new(big.Rat).Quo(scale(m.ceiling, 100), fly).FloatString(1))
		}
		l.Formula = fmt.Sprintf("0 with the paced shares that the plan uses; lumps would carry %s of %s, as %d of %d are in flight",
			lumps, m.rateText(), ceil(minted(m.rate, h)), ceil(m.ceiling))
	}
	if m.dynamic() && m.tiny() && !m.rate.Zero() && m.ceiling.Sign() > 0 {
		return m.reportingTiny()
	}
	return l
}

// reportingTiny: whole tokens lie where nobody asks, one in each other region,
// and the pool is full that much too early: of the arrivals that are worst for
// that, a bucket's capacity at once whenever it is full, so much of the capacity
// is lost each time. And a token fills the ceiling from its grant until its use
// is reported, which may have to wait for an answer that is under way.
func (m *model) reportingTiny() Loss {
	parked := least(m.ceiling, whole(lease.Tokens(m.regions-1)))
	free := new(big.Rat).Sub(m.ceiling, parked)
	turn := longer(2*m.deploy.RTT, reportEvery+longestPoll)
	full := minted(m.rate, m.rate.Per)
	kept := new(big.Rat).Quo(new(big.Rat).Mul(full, free), m.ceiling)
	turns := new(big.Rat).Mul(free, big.NewRat(int64(m.rate.Per), int64(turn)))
	lost := new(big.Rat).Sub(full, least(kept, turns))
	return Loss{
		Name: Reporting, Tokens: ceil(lost),
		Formula: fmt.Sprintf("of each %s ceil(%d - min(%d·%d/%d, %d·%s/%s)): a ceiling below %d tokens a region parks up to %d where nobody asks",
			policy.FormatDuration(m.rate.Per), floor(full), floor(full), floor(free), floor(m.ceiling), floor(free),
			policy.FormatDuration(m.rate.Per), policy.FormatDuration(turn), tinyBelow, floor(parked)),
		Setting: "wait: a decision may wait for a token from afar; or a larger burst",
	}
}

// rebalance: detect, in as long as arrivals are counted for that, wait for the
// answer that is under way, ask, and wait until a donor has been told and has
// acknowledged; a process remembers its last denial for a while.
func (m *model) rebalance() Loss {
	l := Loss{Name: Rebalance}
	switch m.budget.Strategy {
	case policy.Static:
		l.Formula, l.Setting = "never: parts are fixed", "strategy dynamic"
		return l
	case policy.Independent:
		l.Formula, l.Setting = "0: every region has the whole contract", "strategy independent needs none"
		return l
	}
	l.For = longer(3*reportEvery+denialMemory, 3*m.deploy.RTT)
	dead := m.reclaimed(m.budget.TTL)
	l.Tokens = ceil(minted(m.rate, l.For))
	l.Formula = fmt.Sprintf("3·%s + %s + 3·%s, %s after a donor's death",
		policy.FormatDuration(reportEvery), policy.FormatDuration(denialMemory), policy.FormatDuration(m.deploy.RTT), policy.FormatDuration(dead))
	l.Setting = "a region's floor or reserve, and lease.ttl for dead donors"
	return l
}

func (m *model) coldStart() Loss {
	l := Loss{Name: ColdStart, Formula: "0: shares are acquired at start", Setting: "shares are there before the first request"}
	if !m.quota && !m.dynamic() {
		return l
	}
	trip := longer(m.deploy.RTT, decideTime)
	l.For, l.Setting = trip, "reserve: a share that is there at the start; or wait"
	patience := max(firstWait, m.budget.Wait)
	if trip <= patience {
		l.Formula = fmt.Sprintf("0: a decision waits %s, and %s is enough", policy.FormatDuration(patience), policy.FormatDuration(trip))
		return l
	}
	l.Tokens = ceil(minted(m.rate, trip))
	if m.quota {
		l.Formula = fmt.Sprintf("the demand of %s: a decision waits %s", policy.FormatDuration(trip), policy.FormatDuration(patience))
		return l
	}
	l.Formula = fmt.Sprintf("%s·(%s + %s), where demand is the whole rate: a decision waits %s",
		m.rateText(), policy.FormatDuration(m.deploy.RTT), policy.FormatDuration(decideTime), policy.FormatDuration(patience))
	return l
}

// storeLost: the balance is gone, and a share comes back empty.
func (m *model) storeLost() Loss {
	held, rate, _ := m.largestPart()
	l := Loss{Name: StoreLost, Tokens: held, For: longer(m.deploy.RTT, reportEvery+decideTime+denialMemory)}
	l.Formula = fmt.Sprintf("%d, a new lease after %s", held, policy.FormatDuration(l.For))
	l.Setting = "on_store_loss: regrant is the quicker way already"
	if m.hasStanding() && m.budget.OnStoreLoss == policy.Wait {
		l.For = m.reclaimed(m.budget.ShareTTL)
		l.Tokens = ceil(sum(whole(held), minted(rate, l.For)))
		l.Formula = fmt.Sprintf("ceil(%d + %s·%s), until the old share has expired", held, policy.FormatRate(rate), policy.FormatDuration(l.For))
		l.Setting = "on_store_loss: regrant, or a shorter lease.share_ttl"
	}
	return l
}

// allocatorAway: regions live on their shares until these die, and on what
// else they hold.
func (m *model) allocatorAway() Loss {
	l := Loss{Name: AllocatorAway, For: m.deploy.Outage, Formula: "0", Setting: "no outage of the allocator is declared"}
	if m.deploy.Outage == 0 {
		return l
	}
	l.Setting = "reserve: a share that outlives the outage; lease.ttl and lease.share_ttl longer than it"
	if m.quota {
		l.Formula = "what regions do not hold, until the allocator is back"
		l.Tokens = m.burst
		return l
	}
	// A region tries again after pauses that double, so the last of them is not
	// much longer than the outage, whatever their jitter.
	back := longer(min(2*min(m.deploy.Outage, longestPause), longestPause), m.deploy.RTT+decideTime)
	l.For = longer(m.deploy.Outage, back)
	standing := min(l.For, max(0, m.budget.ShareTTL-m.deploy.RTT))
	kept := m.reservedWithin(standing)
	lost := new(big.Rat).Sub(minted(m.rate, l.For), kept)
	l.Tokens = max(0, ceil(lost))
	l.Formula = fmt.Sprintf("%s·(%s + %s until all is back) less %d that standing shares mint in %s", m.rateText(),
		policy.FormatDuration(m.deploy.Outage), policy.FormatDuration(back), floor(kept), policy.FormatDuration(standing))
	return l
}

// heartbeat is how often a region in use reports when nothing else makes it.
func (m *model) heartbeat() time.Duration {
	beat := m.budget.TTL / 3
	if !m.rate.Zero() {
		beat = min(beat, timeFor(m.rate, 1))
	}
	return max(beat, time.Second)
}
