package file

import (
	"fmt"
	"strconv"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/policy"
)

// List reads budgets for others than budget files.
type List struct {
	*yamlfile.Reader
	Deployment policy.Deployment
	// Complete may change a budget before it is checked; may be nil.
	Complete func(policy.Budget) policy.Budget
	// places has where each name was first given.
	places map[string]string
}

// reader reads one budget.
type reader struct{ *yamlfile.Scope }

type fields = yamlfile.Fields

// Budget reads and checks one budget, which problems call field. It returns it
// as written and completed, and normalized; false when it has a fault.
func (p *List) Budget(field string, n *yaml.Node) (raw, normal policy.Budget, ok bool) {
	r := &reader{p.Scope(n)}
	before := len(p.Problems)
	m, ok := p.Mapping(n, field, "name", "match", "limit", "strategy", "over_admission", "regions",
		"lease", "on_failure", "on_store_loss", "wait")
	if !ok {
		return raw, normal, false
	}
	m.Path = ""
	raw = r.read(m)
	p.unique(raw.Name, r)
	if len(p.Problems) > before {
		return raw, normal, false
	}
	if p.Complete != nil {
		raw = p.Complete(raw)
	}
	normal, err := raw.Normalize(p.Deployment)
	for _, e := range policy.AllErrors(err) {
		p.Fail(r.Place(e.Field), e.Field, "%s", e.Reason)
	}
	return raw, normal, err == nil
}

func (r *reader) read(m fields) policy.Budget {
	var b policy.Budget
	if m.Nodes["name"] == nil {
		r.Fail(r.Root, "name", "is missing")
	}
	b.Name = r.Text(m, "name")
	b.Match = r.match(m)
	b.Contract = r.limit(m)
	b.Strategy = policy.Strategy(r.Text(m, "strategy"))
	b.OverAdmission = r.overAdmission(m)
	b.Regions = r.regions(m)
	if l, ok := r.Inner(m, "lease", "ttl", "share_ttl"); ok {
		b.TTL = r.Lifetime(l, "ttl")
		b.ShareTTL = r.Lifetime(l, "share_ttl")
	}
	if f, ok := r.Inner(m, "on_failure", "mode", "rate", "burst"); ok {
		b.OnFailure = policy.Failure{
			Mode:  policy.FailureMode(r.Text(f, "mode")),
			Rate:  r.Rate(f, "rate"),
			Burst: r.Tokens(f, "burst"),
		}
	}
	b.OnStoreLoss = policy.OnStoreLoss(r.Text(m, "on_store_loss"))
	b.Wait = r.Duration(m, "wait")
	return b
}

// unique refuses a name that was given before, naming both places.
func (p *List) unique(name string, r *reader) {
	if name == "" {
		return
	}
	n := r.Place("name")
	if first, ok := p.places[name]; ok {
		p.Fail(n, "name", "%q was given before, at %s", yamlfile.Clip(name), first)
		return
	}
	if p.places == nil {
		p.places = map[string]string{}
	}
	p.places[name] = fmt.Sprintf("%s:%d:%d", p.Origin(n), n.Line, n.Column)
}

func (r *reader) match(m fields) map[string]string {
	pairs, ok := r.Inner(m, "match")
	if !ok || len(pairs.Keys) == 0 {
		return nil
	}
	match := make(map[string]string, len(pairs.Keys))
	for _, k := range pairs.Keys {
		match[k] = r.Text(pairs, k)
	}
	return match
}

func (r *reader) limit(m fields) policy.Contract {
	var c policy.Contract
	if m.Nodes["limit"] == nil {
		r.Fail(r.Root, "limit", "is missing: write {rate: 100/s, burst: 100} or {quota: 1000, per: day}")
		return c
	}
	l, ok := r.Inner(m, "limit", "rate", "burst", "quota", "per", "zone")
	if !ok {
		return c
	}
	has := func(key string) bool { return l.Nodes[key] != nil }
	need := func(key, with string) {
		if !has(key) {
			r.Fail(m.At["limit"], "limit."+key, "is missing with %s", with)
		}
	}
	bucket, quota := has("rate") || has("burst"), has("quota") || has("per") || has("zone")
	switch {
	case bucket && quota:
		r.Fail(m.At["limit"], "limit", "is either a rate with a burst or a quota per window, not both")
	case quota:
		need("quota", "a window")
		need("per", "a quota")
	default:
		need("rate", "a burst")
		need("burst", "a rate")
	}
	c.Rate, c.Burst = r.Rate(l, "rate"), r.Tokens(l, "burst")
	c.Quota.N = r.Tokens(l, "quota")
	c.Quota.Per = policy.Period(r.Text(l, "per"))
	c.Quota.Zone = r.Text(l, "zone")
	return c
}

func (r *reader) overAdmission(m fields) policy.OverAdmission {
	var o policy.OverAdmission
	f, ok := r.Inner(m, "over_admission", "tokens", "percent", "within")
	if !ok {
		return o
	}
	if f.Nodes["within"] != nil && f.Nodes["percent"] == nil {
		r.Fail(f.At["within"], "over_admission.percent", "is missing with a window")
	}
	o.Tokens = r.Tokens(f, "tokens")
	o.MilliPercent = yamlfile.Parsed(r.Scope, f, "percent", policy.ParsePercent)
	o.Within = r.Lifetime(f, "within")
	return o
}

func (r *reader) regions(m fields) []policy.Region {
	f, ok := r.Inner(m, "regions")
	if !ok {
		return nil
	}
	regions := make([]policy.Region, 0, len(f.Keys))
	for _, name := range f.Keys {
		regions = append(regions, r.region(f, name))
	}
	return regions
}

func (r *reader) region(m fields, name string) policy.Region {
	region := policy.Region{Name: name}
	full := policy.Field("regions", name)
	r.Mark(full, m.At[name])
	f, ok := r.Mapping(m.Nodes[name], full, "weight", "floor", "reserve")
	if !ok {
		return region
	}
	region.Weight = yamlfile.Parsed(r.Scope, f, "weight", parseWeight)
	region.Floor = r.Rate(f, "floor")
	if reserve, ok := r.Inner(f, "reserve", "rate", "burst"); ok {
		inner := full + ".reserve"
		region.Reserve.Rate = r.Rate(reserve, "rate")
		region.Reserve.Burst = r.Tokens(reserve, "burst")
		if len(reserve.Keys) == 0 {
			r.Fail(f.At["reserve"], inner, "needs a rate and a burst")
		}
	}
	return region
}

func parseWeight(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > policy.MaxWeight {
		return 0, fmt.Errorf("%q is not a weight, a whole number from 1 to %d", yamlfile.Clip(s), policy.MaxWeight)
	}
	return n, nil
}
