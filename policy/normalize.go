package policy

import (
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Deployment is what a budget's float depends on beside the budget.
type Deployment struct {
	Clocks lease.Clocks
	// ReplicatedStores says that regions' stores fail over to replicas, so that
	// an isolated old primary may go on spending a share that was regranted.
	ReplicatedStores bool
	// StoreIsolation is how long an isolated old primary goes on accepting
	// writes after another was promoted; 0 if nothing bounds it.
	StoreIsolation time.Duration
	// StoreOutage is how long a region's store may be away from a process that
	// is to decide, all outages that one window touches taken together; 0 for
	// never. It bounds what processes admit of a local allowance by themselves.
	StoreOutage time.Duration
}

// DefaultDeployment has the default clocks and standalone stores.
func DefaultDeployment() Deployment { return Deployment{Clocks: lease.DefaultClocks()} }

// Bounds of lifetimes and waits.
const (
	MinTTL      = time.Second
	MaxTTL      = time.Hour
	MinShareTTL = 3 * time.Second
	MaxShareTTL = 24 * time.Hour
	MaxWait     = 300 * time.Millisecond

	defaultShareTTL = time.Hour
	// rideThrough is the shortest derived ttl: regions live through an
	// allocator's restart or a database's failover of that length.
	rideThrough = 10 * time.Second
	// longestTTL is the longest derived ttl: what a dead region holds is
	// stranded until its leases expire.
	longestTTL = time.Minute
)

// Normalize checks every field and returns the budget with its defaults
// filled in, its regions sorted and its float computed. The error is an Errors
// that names each offending field as a budget file writes it. It is
// idempotent, and does not look at Version and Deleted.
func (b Budget) Normalize(d Deployment) (Budget, error) {
	var f faults
	b.defaults()
	f.name("name", b.Name)
	f.match(b.Match)
	f.contract(&b)
	f.strategy(&b)
	f.regions(&b)
	f.lifetimes(&b)
	f.failure(&b)
	f.overAdmission(&b, d)
	// What follows compares fields with one another, which only makes sense
	// once each is sound.
	if f.err() == nil {
		f.parts(&b)
		f.reserves(&b)
		f.float(&b, d)
	}
	return b, f.err()
}

func (b *Budget) defaults() {
	c := &b.Contract
	c.Rate = canonical(c.Rate)
	if c.IsQuota() && c.Quota.Zone == "" {
		c.Quota.Zone = "UTC"
	}
	if b.Strategy == "" {
		b.Strategy = Dynamic
	}
	if b.OnFailure.Mode == "" {
		b.OnFailure.Mode = Deny
	}
	b.OnFailure.Rate = canonical(b.OnFailure.Rate)
	if b.OnStoreLoss == "" {
		b.OnStoreLoss = Regrant
	}
	if b.TTL == 0 {
		b.TTL = b.derivedTTL()
	}
	if b.ShareTTL == 0 {
		b.ShareTTL = defaultShareTTL
	}
	if len(b.Match) == 0 {
		b.Match = nil
	}
	if len(b.Regions) == 0 {
		b.Regions = nil
		return
	}
	b.Regions = slices.Clone(b.Regions)
	slices.SortFunc(b.Regions, func(x, y Region) int { return strings.Compare(x.Name, y.Name) })
	for i := range b.Regions {
		r := &b.Regions[i]
		r.Floor, r.Reserve.Rate = canonical(r.Floor), canonical(r.Reserve.Rate)
	}
}

// derivedTTL is 3·tau, tau being the time that a full bucket lasts at its
// rate, since lumps are sized to last about that long; at least rideThrough
// and at most longestTTL. A quota's is the longest: a lease of it that is
// written off is not minted again.
func (b *Budget) derivedTTL() time.Duration {
	c := b.Contract
	if c.IsQuota() || c.Rate.Zero() {
		return longestTTL
	}
	full, ok := c.Rate.TimeFor(max(c.Burst, 0), 0)
	if !ok || full > longestTTL/3 {
		return longestTTL
	}
	return max(rideThrough, (3 * full).Truncate(time.Second))
}

func (f *faults) match(match map[string]string) {
	if len(match) > MaxMatch {
		f.add("match", "has %d descriptors, at most %d are allowed", len(match), MaxMatch)
		return
	}
	for _, key := range sortedKeys(match) {
		if why := CheckName(key); why != "" {
			f.add(Field("match", key), "the key %s", why)
		}
		f.name(Field("match", key), match[key])
	}
}

func (f *faults) contract(b *Budget) {
	c := b.Contract
	if !c.IsQuota() {
		f.rate("limit.rate", c.Rate)
		f.tokens("limit.burst", c.Burst)
		if c.Quota.N != 0 || c.Quota.Zone != "" {
			f.add("limit.per", "must say hour, day, week, month or year for a quota")
		}
		return
	}
	if c.Rate != (lease.Rate{}) || c.Burst != 0 {
		f.add("limit", "is either a rate with a burst or a quota per window, not both")
	}
	f.tokens("limit.quota", c.Quota.N)
	switch c.Quota.Per {
	case Hour, Day, Week, Month, Year:
	default:
		f.add("limit.per", "is %q, must be hour, day, week, month or year", c.Quota.Per)
	}
	if _, err := Location(c.Quota.Zone); err != nil {
		f.add("limit.zone", "%v", err)
	}
}

func (f *faults) strategy(b *Budget) {
	switch b.Strategy {
	case Dynamic:
	case Static, Independent:
		if len(b.Regions) == 0 {
			f.add("regions", "must be named with strategy %s, which gives each its part beforehand", b.Strategy)
		}
	default:
		f.add("strategy", "is %q, must be static, independent or dynamic", b.Strategy)
	}
}

func (f *faults) regions(b *Budget) {
	if len(b.Regions) > MaxRegions {
		f.add("regions", "has %d regions, at most %d are allowed", len(b.Regions), MaxRegions)
		return
	}
	equal := b.equalParts()
	for i, r := range b.Regions {
		if why := CheckName(r.Name); why != "" {
			f.add(Field("regions", r.Name), "the name %s", why)
		}
		if i > 0 && b.Regions[i-1].Name == r.Name {
			f.add(Field("regions", r.Name), "is named twice")
		}
		field := Field("regions", r.Name, "weight")
		switch {
		case r.Weight < 0 || r.Weight > MaxWeight:
			f.add(field, "is %d, must be 1 to %d", r.Weight, MaxWeight)
		case r.Weight == 0 && !equal:
			f.add(field, "is missing: give every region a weight, or none for equal parts")
		}
		f.guarantees(b, r)
	}
}

// guarantees checks a region's floor and reserve alone.
func (f *faults) guarantees(b *Budget, r Region) {
	f.rate(Field("regions", r.Name, "floor"), r.Floor)
	f.rate(Field("regions", r.Name, "reserve", "rate"), r.Reserve.Rate)
	f.tokens(Field("regions", r.Name, "reserve", "burst"), r.Reserve.Burst)
	for _, g := range []struct {
		name string
		set  bool
	}{{"floor", r.Floor != (lease.Rate{})}, {"reserve", r.Reserve != (Reserve{})}} {
		field := Field("regions", r.Name, g.name)
		switch {
		case !g.set:
		case b.Strategy != Dynamic:
			f.add(field, "is only for strategy dynamic: %s gives every region its part already", b.Strategy)
		case b.Contract.IsQuota():
			f.add(field, "is only for a rate: a quota has none to guarantee")
		}
	}
	if r.Reserve != (Reserve{}) && (r.Reserve.Rate.Zero() || r.Reserve.Burst <= 0) {
		f.add(Field("regions", r.Name, "reserve"), "needs a rate and a burst above 0: a share can hold no more than its burst")
	}
}

func (f *faults) lifetimes(b *Budget) {
	f.within("lease.ttl", b.TTL, MinTTL, MaxTTL)
	f.within("lease.share_ttl", b.ShareTTL, MinShareTTL, MaxShareTTL)
	f.within("wait", b.Wait, 0, MaxWait)
	if b.OnStoreLoss != Regrant && b.OnStoreLoss != Wait {
		f.add("on_store_loss", "is %q, must be regrant or wait", b.OnStoreLoss)
	}
}

func (f *faults) within(field string, d, low, high time.Duration) {
	switch {
	case d < low || d > high:
		f.add(field, "is %s, must be %s to %s", FormatDuration(d), FormatDuration(low), FormatDuration(high))
	case d%time.Microsecond != 0:
		f.add(field, "is %s, must be whole microseconds", d)
	}
}

func (f *faults) failure(b *Budget) {
	local := b.OnFailure
	f.rate("on_failure.rate", local.Rate)
	f.tokens("on_failure.burst", local.Burst)
	switch local.Mode {
	case Deny:
		if local.Rate != (lease.Rate{}) || local.Burst != 0 {
			f.add("on_failure", "has an allowance, which mode deny never uses: write mode allow_local")
		}
	case AllowLocal:
		if local.Burst == 0 {
			f.add("on_failure.burst", "must be above 0 with mode allow_local, which could never admit anything without")
		}
	default:
		f.add("on_failure.mode", "is %q, must be deny or allow_local", local.Mode)
	}
}

func (f *faults) overAdmission(b *Budget, d Deployment) {
	o := b.OverAdmission
	f.tokens("over_admission.tokens", o.Tokens)
	if o == (OverAdmission{}) {
		return
	}
	switch {
	case b.Contract.IsQuota():
		f.add("over_admission", "is not for quotas: they are never exceeded")
	case b.Strategy == Independent:
		f.add("over_admission", "is not for strategy independent, which lets every region have the whole limit")
	case o.Tokens != 0 && (o.MilliPercent != 0 || o.Within != 0):
		f.add("over_admission", "is either tokens or a percent within a window, not both")
	case o.MilliPercent < 0 || o.MilliPercent > 100_000:
		f.add("over_admission.percent", "is %s, must be 0 to 100", FormatPercent(o.MilliPercent))
	case o.MilliPercent != 0 && o.Within == 0:
		f.add("over_admission.within", "is missing: a percentage needs the window it is counted in, as in 2s")
	case o.Within != 0:
		f.within("over_admission.within", o.Within, time.Millisecond, lease.MaxPeriod)
	}
	if o.Within != 0 && b.OnFailure.Mode == AllowLocal && len(b.Regions) == 0 {
		f.add("regions", "must be named, so that their local allowances can be counted in the percentage")
	}
	if o.Within != 0 && d.ReplicatedStores && b.OnStoreLoss == Regrant && len(b.Regions) == 0 {
		f.add("regions", "must be named, so that what their isolated old primaries may spend can be counted in the percentage; or choose on_store_loss: wait")
	}
	if d.StoreIsolation < 0 || d.StoreOutage < 0 {
		f.add("over_admission.percent", "cannot be computed with a negative isolation or outage of stores")
	}
	if o.Within != 0 && (d.Clocks.DriftPPM < 0 || d.Clocks.DriftPPM > 500_000) {
		f.add("over_admission.percent", "cannot be computed with a clock drift of %d ppm, must be 0 to 500000", d.Clocks.DriftPPM)
	}
}

// parts refuses weights under which a region would hold nothing of a limit
// that is not nothing.
func (f *faults) parts(b *Budget) {
	c := b.Contract
	if b.Strategy == Independent {
		whole := max(c.Burst, c.Rate.Tokens, c.Quota.N)
		if times(whole, len(b.Regions)) > lease.MaxTokens {
			f.add("limit", "times %d regions is above %d tokens", len(b.Regions), lease.MaxTokens)
		}
	}
	if b.Strategy != Static {
		return
	}
	for i, r := range b.Regions {
		field := Field("regions", r.Name, "weight")
		why := func(what string, whole lease.Tokens) {
			f.add(field, "gives the region 0 of the %s: %d/%d of %d rounds down to 0", what, b.weight(i), b.weights(), whole)
		}
		fine := c.Rate.Fine()
		switch {
		case c.IsQuota():
			if c.Quota.N > 0 && b.Part(i, c.Quota.N) == 0 {
				why("quota", c.Quota.N)
			}
		case c.Burst > 0 && b.Part(i, c.Burst) == 0:
			why("burst", c.Burst)
		case !c.Rate.Zero() && b.Part(i, fine.Tokens) == 0:
			why("rate", fine.Tokens)
		}
	}
}

// reserves refuses guarantees that together exceed the limit.
func (f *faults) reserves(b *Budget) {
	var reserved, floors big.Rat
	var bursts lease.Tokens
	for _, r := range b.Regions {
		reserved.Add(&reserved, perSecond(r.Reserve.Rate))
		floors.Add(&floors, perSecond(r.Floor))
		bursts += r.Reserve.Burst // at most MaxRegions times MaxTokens, inside int64
	}
	rate := perSecond(b.Contract.Rate)
	if reserved.Cmp(rate) > 0 {
		f.add("regions", "reserve %s tokens per second together, the limit has %s", decimal(&reserved), decimal(rate))
	}
	if bursts > b.Contract.Burst {
		f.add("regions", "reserve bursts of %d together, the limit has %d", bursts, b.Contract.Burst)
	}
	if floors.Cmp(rate) > 0 {
		f.add("regions", "have floors of %s tokens per second together, the limit has %s", decimal(&floors), decimal(rate))
	}
}

// decimal writes a number with up to six places after the point.
func decimal(r *big.Rat) string {
	return strings.TrimRight(strings.TrimRight(r.FloatString(6), "0"), ".")
}

// Overdrawn begins the reason for refusing a percentage that is read well, but
// that drift, rounding and surcharges exceed: a promise that cannot be kept.
const Overdrawn = "leaves less than nothing"

// float computes Float from what the owner wrote.
func (f *faults) float(b *Budget, d Deployment) {
	b.Float = b.OverAdmission.Tokens
	field := "over_admission.tokens"
	if b.OverAdmission.Within != 0 {
		field = "over_admission.percent"
		c := b.ceiling(d)
		if c.Float < 0 {
			f.add(field, "%s within %s: %s%s", Overdrawn, FormatDuration(b.OverAdmission.Within), c, advice(c))
			return
		}
		b.Float = c.Float
	}
	if b.Contract.Burst > lease.MaxTokens-b.Float {
		f.add(field, "and the burst together are above %d tokens", lease.MaxTokens)
	}
}

// advice names what the owner could change about the largest term.
func advice(c Ceiling) string {
	largest := slices.MaxFunc(c.Terms, func(x, y Term) int { return int(max(-1, min(1, x.Tokens-y.Tokens))) })
	switch {
	case strings.HasPrefix(largest.Name, "local"):
		return "; lower the local allowance, or choose on_failure: {mode: deny}"
	case strings.HasPrefix(largest.Name, "shares"):
		return "; choose on_store_loss: wait"
	}
	return "; accept more, or write {tokens: 0}"
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
