package allocation

import (
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// PoolContract returns the contract that a budget's pool carries: the rate in
// the fine unit in which shares are counted (zero for a quota), the burst (a
// quota's N), and the float. A pool of an independent budget carries the
// contract of all its regions together. A deleted budget is a limit of 0; its
// rate keeps its unit, so that what is still leased stays counted.
func PoolContract(b policy.Budget) (rate lease.Rate, burst, float lease.Tokens) {
	times := lease.Tokens(1)
	if b.Strategy == policy.Independent {
		times = lease.Tokens(max(1, len(b.Regions)))
	}
	if b.Contract.IsQuota() {
		if b.Deleted {
			return lease.Rate{}, 0, 0
		}
		return lease.Rate{}, saturatingMul(b.Contract.Quota.N, times), 0
	}
	rate = b.Contract.Rate
	rate.Tokens = saturatingMul(rate.Tokens, times)
	rate = rate.Fine()
	if b.Deleted {
		return lease.Rate{Per: rate.Per}, 0, 0
	}
	return rate, saturatingMul(b.Contract.Burst, times), b.Float
}

// saturatingMul returns a·b, at most lease.MaxTokens. Both are >= 0.
func saturatingMul(a, b lease.Tokens) lease.Tokens {
	if a > 0 && b > lease.MaxTokens/a {
		return lease.MaxTokens
	}
	return a * b
}

// Plan says what each region should hold of the pool p at the time now, sorted
// by region. It is pure; what it lists is a goal, which the ledger approaches
// as far as the pool has room. A region that is not listed should hold nothing.
// Plan reads the paced flag of the regions' rows as hysteresis: the caller
// remembers there what was planned.
func Plan(s *State, p *Pool, now lease.Time) []Target {
	regions := planned(s, p, now)
	switch {
	case s.Budget.Strategy == policy.Dynamic && p.Rate.Zero():
		// Tokens that nothing replaces, be it a quota or a bucket without a rate.
		return planDynamicQuota(regions, p)
	case s.Budget.Contract.IsQuota():
		return planFixedQuota(s.Budget, regions, p)
	case s.Budget.Strategy == policy.Dynamic:
		return planDynamic(regions, p)
	}
	return planFixed(s.Budget, regions, p)
}

// reportEvery is how often a region looks whether it has something to say,
// and decideTime what its own steps add to a round trip.
const (
	reportEvery = 100 * time.Millisecond
	decideTime  = 20 * time.Millisecond
)

// Bounds on the round trip that a region's report may plead.
const (
	unknownRTT = 100 * time.Millisecond
	longestRTT = 2 * time.Second
)

// regionView is what the planner knows about one region.
type regionView struct {
	name   string
	weight int64
	// floor and reserve are in the pool's unit.
	floor   lease.Tokens
	reserve Share
	// demand is in tokens per second, faded by the region's silence; active is
	// false once it has been silent for too long to count at all.
	demand        float64
	active        bool
	waiting, want lease.Tokens
	rtt           time.Duration
	// onDemand: a decision there may wait for longer than a token takes to come.
	onDemand bool
	paced    bool
	// granted is what a quota's window has granted to the region.
	granted lease.Tokens
	// x is its paced share as counted, lump its unspent lump tokens.
	x, lump lease.Tokens
}

// idle regions are given tokens when they ask, not before.
func (v regionView) idle() bool {
	return v.demand == 0 && v.waiting == 0 && v.want == 0
}

// planned lists the regions that the budget names, or, where it names none,
// those that it has heard from.
func planned(s *State, p *Pool, now lease.Time) []regionView {
	views := make([]regionView, 0, max(len(s.Budget.Regions), len(s.Regions)))
	for _, r := range s.Budget.Regions {
		views = append(views, regionView{
			name:   r.Name,
			weight: max(1, r.Weight),
			floor:  r.Floor.In(p.Rate.Per, false).Tokens,
			reserve: Share{
				X:    r.Reserve.Rate.In(p.Rate.Per, false).Tokens,
				Beta: r.Reserve.Burst,
			},
		})
	}
	if len(views) == 0 {
		for _, r := range s.Regions {
			views = append(views, regionView{name: r.Name, weight: 1})
		}
	}
	for i := range views {
		views[i].rtt = unknownRTT
	}
	rest := views
	for i := range s.Regions {
		var v *regionView
		if v, rest = viewOf(rest, s.Regions[i].Name); v != nil {
			heard(v, &s.Regions[i], p, s.Budget.TTL, now)
		}
	}
	for i := range views {
		views[i].onDemand = s.Budget.Wait >= views[i].rtt+decideTime
	}
	rest = views
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Ending == Open && l.Window == p.Start {
			var v *regionView
			v, rest = viewOf(rest, l.Region)
			counted(v, l)
		}
	}
	return views
}

// viewOf finds a region among views sorted by name, nil if it is not planned,
// and returns with it those among which no earlier name has to be looked for.
func viewOf(views []regionView, name string) (*regionView, []regionView) {
	for i := range views {
		if v := &views[i]; v.name >= name {
			if v.name == name {
				return v, views[i:]
			}
			return nil, views[i:]
		}
	}
	return nil, nil
}

// counted adds what the ledger counts in an unended lease.
func counted(v *regionView, l *Lease) {
	switch {
	case v == nil:
	case l.Kind == lease.Paced:
		v.x += l.X
	case l.Kind == lease.Lump:
		v.lump += l.Hold
	}
}

// heard adds what the region has said.
func heard(v *regionView, r *Region, p *Pool, ttl time.Duration, now lease.Time) {
	weight := freshness(now.Sub(r.SeenAt), ttl)
	v.active = weight > 0
	v.demand = weight * finite(r.Demand)
	v.paced = r.Paced
	if v.active {
		v.waiting, v.want = max(0, r.Waiting), max(0, r.Want)
		// Whoever waits wants something, whatever its estimate says.
		v.demand = max(v.demand, weight*float64(v.waiting))
	}
	if r.RTT > 0 {
		v.rtt = min(r.RTT, longestRTT)
	}
	if r.Window == p.Start {
		v.granted = r.WindowGranted
	}
}

// freshness is how much of what a region said still counts after a silence:
// all of it for as long as a healthy region may be silent, then less and
// less, and nothing after four times that.
func freshness(silence, ttl time.Duration) float64 {
	full := max(3*time.Second, ttl)
	if silence <= full {
		return 1
	}
	return max(0, 1-float64(silence-full)/float64(3*full))
}

// finite returns d as a usable estimate: 0 for what is not a number >= 0, and
// at most MaxTokens.
func finite(d float64) float64 {
	if !(d > 0) {
		return 0
	}
	return min(d, float64(lease.MaxTokens))
}

// demandWeight is a region's weight in a division by demand, at least 1.
func demandWeight(demand, all float64) int64 {
	const fine = 1e6
	if !(demand < all) {
		return fine
	}
	return max(1, int64(fine*demand/all))
}

// wholeTokens rounds an amount up to tokens, at most limit.
func wholeTokens(amount float64, limit lease.Tokens) lease.Tokens {
	if !(amount > 0) {
		return 0
	}
	if amount >= float64(limit) {
		return limit
	}
	return min(limit, lease.Tokens(math.Ceil(amount)))
}
