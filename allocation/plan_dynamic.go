package allocation

import (
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
)

// dynamicPlan is the plan of a dynamic bucket while it is being made.
type dynamicPlan struct {
	regions []regionView
	targets []Target
	// x is what each region gets of the rate beside its reserve: in tokens per
	// the pool's period, and in tokens per second.
	x       []lease.Tokens
	perSec  []float64
	sumX    float64
	active  int
	ceiling lease.Tokens // what the reserves leave of burst and float
	free    lease.Tokens // the pool's available tokens, at least 0
	// overload is demand of nearly the rate, or above it; scarce is that, or few
	// tokens left.
	overload, scarce bool
}

// planDynamic lets the rate and the tokens follow demand. Reserves are carved
// out first; a region that spends within a round trip gets a paced share; what
// inventory remains lies in lumps where it will be needed.
func planDynamic(regions []regionView, p *Pool) []Target {
	d := &dynamicPlan{
		regions: regions,
		targets: make([]Target, len(regions)),
		ceiling: p.Burst + p.Float,
		free:    max(0, p.Available),
	}
	rate := d.carveReserves(p)
	d.divideRate(p, rate)
	inventory := d.pace()
	if d.tiny() {
		d.sizeTinyLumps(inventory)
	} else {
		d.sizeLumps(inventory)
	}
	d.serveWaiting()
	d.divideShortage()
	return d.targets
}

// carveReserves plans the reserves, as far as the contract has room for them,
// and returns the rate that is left.
func (d *dynamicPlan) carveReserves(p *Pool) lease.Tokens {
	rate, burst := p.Rate.Tokens, p.Burst
	for i := range d.regions {
		r := &d.regions[i]
		share := Share{X: min(r.reserve.X, rate), Beta: min(r.reserve.Beta, burst)}
		d.targets[i] = Target{Region: r.name, Reserve: share, Lumps: true}
		if share.Beta <= 0 {
			d.targets[i].Reserve = Share{}
			continue
		}
		rate -= share.X
		burst -= share.Beta
		d.ceiling -= share.Beta
		r.demand = max(0, r.demand-perSecond(share.X, p))
	}
	return rate
}

// spareRate is how much more than its demand a region's share is planned to
// mint while the rate has room: what a share has spent beyond its demand comes
// back, and a cap that stays half empty would keep that room from the pool.
const spareRate = 1.1

// divideRate fills the regions' demands from the rate.
func (d *dynamicPlan) divideRate(p *Pool, rate lease.Tokens) {
	demand := 0.0
	for _, r := range d.regions {
		demand += r.demand
		if r.active {
			d.active++
		}
	}
	enough := 0.98 * perSecond(rate, p)
	spare := 1.0
	if demand > 0 {
		spare = max(1, min(spareRate, enough/demand))
	}
	claims := make([]claim, len(d.regions))
	for i, r := range d.regions {
		claims[i] = claim{key: r.name, floor: r.floor, weight: r.weight}
		claims[i].demand = wholeTokens(spare*r.demand*p.Rate.Per.Seconds(), rate)
	}
	d.x = waterfill(claims, rate)
	d.perSec = make([]float64, len(d.x))
	for i, x := range d.x {
		d.perSec[i] = perSecond(x, p)
		d.sumX += d.perSec[i]
	}
	d.overload = demand > enough
	d.scarce = d.overload || 10*d.free < d.ceiling
}

func perSecond(x lease.Tokens, p *Pool) float64 {
	return lease.Rate{Tokens: x, Per: p.Rate.Per}.PerSecond()
}

// tinyBelow is how many tokens of ceiling there are per region where they are
// divided one by one.
const tinyBelow = 7

func (d *dynamicPlan) tiny() bool { return d.ceiling < lease.Tokens(tinyBelow*d.active) }

// The part of the ceiling that may be on the way before regions are paced, on
// the way in and on the way out, and what the caps of paced shares take
// together: more of the ceiling the more of it is in flight, since lumps are
// the less good for it. A tiny ceiling has less room for caps, and is judged by
// all that is in flight.
const (
	paceAbove   = 0.04
	unpaceBelow = 0.026
	paceTiny    = 0.30
	pacedLeast  = 0.45
	pacedMore   = 0.20
	// nearby is added to round trips, so that a ceiling below a tenth of a second
	// of the rate is paced wherever its regions are.
	nearby = 4 * time.Millisecond
)

// keepPaced is the part of a cap that a region may keep full while others may
// lack rate: one whose demand is met would otherwise hold its cap full all the
// time, of a burst that a central bucket would have spent. What it keeps is for
// its own jumps. A region alone keeps all of it, for nobody lacks it, and so does
// one that gets no more than its floor, which is promised to it.
const keepPaced = 0.6

// pace plans the paced shares and returns the inventory they leave for lumps.
// A share takes only its cap, whatever the round trip, where a lump has to
// cover what is spent until the next one arrives, and what was spent and not
// yet reported fills the ceiling. Where little is on the way lumps do better:
// they follow demand that moves, caps take room from the burst, hold no large
// cost, and what they hold where nobody asks cannot be recalled.
func (d *dynamicPlan) pace() float64 {
	onTheWay, flight, roots := 0.0, 0.0, 0.0
	for i, r := range d.regions {
		onTheWay += d.perSec[i] * (r.rtt + nearby).Seconds()
		flight += d.inFlight(i)
		roots += math.Sqrt(d.perSec[i])
	}
	inventory := float64(d.ceiling)
	caps := pacedLeast*inventory + pacedMore*min(flight, inventory)
	for i, r := range d.regions {
		far, above, least := onTheWay, paceAbove, 1.0
		if r.paced {
			above, least = unpaceBelow, 0.7
		}
		if d.tiny() {
			far, above = flight, paceTiny
		}
		if far <= above*float64(d.ceiling) || d.inFlight(i) < least {
			continue
		}
		share := 0.5*math.Sqrt(d.perSec[i])/roots + 0.5/float64(max(1, d.active))
		beta := max(lease.Tokens(caps*share), r.waiting)
		beta = min(beta, d.ceiling)
		if beta < 1 {
			continue
		}
		d.targets[i].Paced = Share{X: settledX(r.x, d.x[i], d.perSec[i] >= r.demand), Beta: beta}
		if d.overload && d.active > 1 && d.x[i] > r.floor {
			d.targets[i].Paced.Keep = wholeTokens(keepPaced*float64(beta), beta)
		}
		inventory -= float64(beta)
	}
	return max(0, inventory)
}

// inFlight is what region i spends between two reports and a round trip.
func (d *dynamicPlan) inFlight(i int) float64 {
	return d.perSec[i] * (d.regions[i].rtt + reportEvery).Seconds()
}

// settledX keeps a share as it is while the plan differs by less than a
// twentieth: each change costs messages, and the pool's own minting makes up for
// the difference. Where the pool has nothing, a region whose demand could be met
// stays short of what its share is short of: one that is met is raised from a
// fiftieth on. The others are not: a fiftieth of a large share is much of a small
// one, which would have to wait until the large one is cut again.
func settledX(counted, planned lease.Tokens, met bool) lease.Tokens {
	short := planned / 20
	if met {
		short = planned / 50
	}
	if counted > 0 && counted-planned <= planned/20 && planned-counted <= short {
		return counted
	}
	return planned
}

// need is what a region spends until tokens that it asks for now arrive, with
// the noise of its arrivals.
func (d *dynamicPlan) need(i int) float64 {
	f := d.perSec[i] * (d.regions[i].rtt + 2*reportEvery + decideTime).Seconds()
	return f + 2*math.Sqrt(f) + 1
}

// sizeLumps gives lump regions what they have in flight, and at least what a
// caller there waits for. Of the rest, half is
// spread by share while tokens are scarce; else most of it, half of that
// evenly, so that tokens lie in the regions before they are asked for.
func (d *dynamicPlan) sizeLumps(inventory float64) {
	needs := make([]float64, len(d.regions))
	rest := inventory
	for i := range d.regions {
		if d.targets[i].Paced.Beta > 0 {
			continue
		}
		needs[i] = float64(d.regions[i].waiting)
		if d.perSec[i] > 0 {
			needs[i] = max(needs[i], d.need(i))
		}
		needs[i] = min(needs[i], inventory)
		rest -= needs[i]
	}
	rest = max(0, rest)
	for i, r := range d.regions {
		if !r.active {
			continue
		}
		target := needs[i] + rest*d.spread(i)
		d.setLump(i, target, needs[i])
	}
}

// spread is region i's part of the inventory that nobody has in flight.
func (d *dynamicPlan) spread(i int) float64 {
	byShare := 0.0
	if d.sumX > 0 {
		byShare = d.perSec[i] / d.sumX
	}
	if d.scarce {
		return 0.5 * byShare
	}
	return 0.8 * (0.5*byShare + 0.5/float64(d.active))
}

func (d *dynamicPlan) setLump(i int, target, need float64) {
	t := &d.targets[i]
	t.Lump = lease.Tokens(min(target, float64(d.ceiling)))
	t.Keep = t.Lump
	if d.regions[i].idle() {
		return
	}
	t.Push = t.Lump
	if d.scarce {
		t.Keep = max(t.Keep, wholeTokens(need, d.ceiling))
		return
	}
	t.Keep = wholeTokens(max(1.5*need, 1.25*target), d.ceiling)
}

// sizeTinyLumps divides a ceiling of few tokens whole, by demand: fractions
// parked where nobody asks would fill it, so what lies above is recalled. Where
// decisions may wait for as long as a token takes to come, none is parked at all:
// whoever asks gets it from the pool.
func (d *dynamicPlan) sizeTinyLumps(inventory float64) {
	claims := make([]claim, len(d.regions))
	total := lease.Tokens(inventory)
	for i, r := range d.regions {
		claims[i] = claim{key: r.name, weight: 1, demand: r.waiting, floor: r.waiting}
		if d.sumX > 0 && d.perSec[i] > 0 && !r.onDemand {
			claims[i].demand = total
			claims[i].weight = demandWeight(d.perSec[i], d.sumX)
		}
	}
	for i, n := range waterfill(claims, total) {
		t := &d.targets[i]
		t.Lump, t.Push, t.Keep = n, n, n
		t.OnDemand = d.regions[i].onDemand
	}
}

// serveWaiting lets every region that has a caller waiting hold what that
// caller needs.
func (d *dynamicPlan) serveWaiting() {
	for i, r := range d.regions {
		t := &d.targets[i]
		t.Lump = min(max(t.Lump, r.waiting), max(0, d.ceiling))
		t.Keep = max(t.Keep, t.Lump)
		if t.OnDemand {
			t.Keep = 0
		}
	}
}

// divideShortage bounds single grants when the pool cannot fill what all lack,
// so that who asks first does not take everything.
func (d *dynamicPlan) divideShortage() {
	lack, lacking := lease.Tokens(0), 0.0
	for i, r := range d.regions {
		if short := d.targets[i].Lump - r.lump; short > 0 && r.active {
			lack += short
			lacking += d.perSec[i]
		}
	}
	if lack <= d.free || lacking <= 0 {
		return
	}
	for i, r := range d.regions {
		piece := lease.Tokens(float64(d.free) * d.perSec[i] / lacking)
		d.targets[i].Piece = max(1, piece, r.waiting)
	}
}
