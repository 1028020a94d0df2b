package file

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// reader reads one budget and remembers where each of its fields stands.
type reader struct {
	*parser
	root *yaml.Node
	at   map[string]*yaml.Node
}

// budget reads, checks and keeps one budget.
func (p *parser) budget(field string, n *yaml.Node) {
	r := &reader{parser: p, root: resolve(n), at: map[string]*yaml.Node{}}
	before := len(p.problems)
	m, ok := p.mapping(n, field, "name", "match", "limit", "strategy", "over_admission", "regions",
		"lease", "on_failure", "on_store_loss", "wait")
	if !ok {
		return
	}
	b := r.read(m)
	p.unique(b.Name, r)
	if len(p.problems) > before {
		return
	}
	normal, err := b.Normalize(p.deployment)
	for _, e := range policy.AllErrors(err) {
		p.fail(r.place(e.Field), e.Field, "%s", e.Reason)
	}
	p.budgets = append(p.budgets, normal)
}

func (r *reader) read(m fields) policy.Budget {
	var b policy.Budget
	if m.nodes["name"] == nil {
		r.fail(r.root, "name", "is missing")
	}
	b.Name = r.text(m, "", "name")
	b.Match = r.match(m)
	b.Contract = r.limit(m)
	b.Strategy = policy.Strategy(r.text(m, "", "strategy"))
	b.OverAdmission = r.overAdmission(m)
	b.Regions = r.regions(m)
	if l, ok := r.inner(m, "", "lease", "ttl", "share_ttl"); ok {
		b.TTL = r.lifetime(l, "lease", "ttl")
		b.ShareTTL = r.lifetime(l, "lease", "share_ttl")
	}
	if f, ok := r.inner(m, "", "on_failure", "mode", "rate", "burst"); ok {
		b.OnFailure = policy.Failure{
			Mode:  policy.FailureMode(r.text(f, "on_failure", "mode")),
			Rate:  r.rate(f, "on_failure", "rate"),
			Burst: r.tokens(f, "on_failure", "burst"),
		}
	}
	b.OnStoreLoss = policy.OnStoreLoss(r.text(m, "", "on_store_loss"))
	b.Wait = r.duration(m, "", "wait")
	return b
}

// unique refuses a name that was given before, naming both places.
func (p *parser) unique(name string, r *reader) {
	if name == "" {
		return
	}
	n := r.place("name")
	if first, ok := p.places[name]; ok {
		p.fail(n, "name", "%q was given before, at %s", clip(name), first)
		return
	}
	p.places[name] = fmt.Sprintf("%s:%d:%d", p.file, n.Line, n.Column)
}

// place finds the node of a field path, or of the nearest part of the budget
// that was written.
func (r *reader) place(field string) *yaml.Node {
	for field != "" {
		if n := r.at[field]; n != nil {
			return n
		}
		cut := max(strings.LastIndexByte(field, '.'), strings.LastIndexByte(field, '['))
		field = field[:max(cut, 0)]
	}
	return r.root
}

// value returns the resolved node of a field, remembering its place; nil when
// it is absent or null.
func (r *reader) value(m fields, parent, key string) (*yaml.Node, string) {
	full := join(parent, key)
	n := m.nodes[key]
	if n == nil {
		return nil, full
	}
	r.at[full] = n
	n = resolve(n)
	if isNull(n) {
		r.fail(m.nodes[key], full, "has no value")
		return nil, full
	}
	return n, full
}

// scalar returns a field's text as written, and false when it has none.
func (r *reader) scalar(m fields, parent, key string) (s, full string, ok bool) {
	n, full := r.value(m, parent, key)
	if n == nil {
		return "", full, false
	}
	if n.Kind != yaml.ScalarNode {
		r.fail(m.nodes[key], full, "must be a single value, not %s", kindOf(n))
		return "", full, false
	}
	return n.Value, full, true
}

func (r *reader) text(m fields, parent, key string) string {
	s, full, ok := r.scalar(m, parent, key)
	if ok && s == "" {
		r.fail(m.nodes[key], full, "must not be empty")
	}
	return s
}

// parsed reads a scalar with one of policy's parsers.
func parsed[T any](r *reader, m fields, parent, key string, parse func(string) (T, error)) T {
	var zero T
	s, full, ok := r.scalar(m, parent, key)
	if !ok {
		return zero
	}
	v, err := parse(s)
	if err != nil {
		r.fail(m.nodes[key], full, "%v", err)
	}
	return v
}

func (r *reader) rate(m fields, parent, key string) lease.Rate {
	return parsed(r, m, parent, key, policy.ParseRate)
}

func (r *reader) tokens(m fields, parent, key string) lease.Tokens {
	return parsed(r, m, parent, key, policy.ParseTokens)
}

func (r *reader) duration(m fields, parent, key string) time.Duration {
	return parsed(r, m, parent, key, policy.ParseDuration)
}

// lifetime is a duration that must not be 0, which would silently become the
// default.
func (r *reader) lifetime(m fields, parent, key string) time.Duration {
	return parsed(r, m, parent, key, func(s string) (time.Duration, error) {
		d, err := policy.ParseDuration(s)
		if err == nil && d == 0 {
			err = fmt.Errorf("must be above 0; leave it out for the default")
		}
		return d, err
	})
}

// inner reads a field that is a mapping; false when it is absent or unsound.
func (r *reader) inner(m fields, parent, key string, known ...string) (fields, bool) {
	n, full := r.value(m, parent, key)
	if n == nil {
		return fields{}, false
	}
	return r.mapping(n, full, known...)
}

func (r *reader) match(m fields) map[string]string {
	pairs, ok := r.inner(m, "", "match")
	if !ok || len(pairs.keys) == 0 {
		return nil
	}
	match := make(map[string]string, len(pairs.keys))
	for _, k := range pairs.keys {
		match[k] = r.text(pairs, "match", k)
	}
	return match
}

func (r *reader) limit(m fields) policy.Contract {
	var c policy.Contract
	if m.nodes["limit"] == nil {
		r.fail(r.root, "limit", "is missing: write {rate: 100/s, burst: 100} or {quota: 1000, per: day}")
		return c
	}
	l, ok := r.inner(m, "", "limit", "rate", "burst", "quota", "per", "zone")
	if !ok {
		return c
	}
	has := func(key string) bool { return l.nodes[key] != nil }
	need := func(key, with string) {
		if !has(key) {
			r.fail(m.at["limit"], "limit."+key, "is missing with %s", with)
		}
	}
	bucket, quota := has("rate") || has("burst"), has("quota") || has("per") || has("zone")
	switch {
	case bucket && quota:
		r.fail(m.at["limit"], "limit", "is either a rate with a burst or a quota per window, not both")
	case quota:
		need("quota", "a window")
		need("per", "a quota")
	default:
		need("rate", "a burst")
		need("burst", "a rate")
	}
	c.Rate, c.Burst = r.rate(l, "limit", "rate"), r.tokens(l, "limit", "burst")
	c.Quota.N = r.tokens(l, "limit", "quota")
	c.Quota.Per = policy.Period(r.text(l, "limit", "per"))
	c.Quota.Zone = r.text(l, "limit", "zone")
	return c
}

func (r *reader) overAdmission(m fields) policy.OverAdmission {
	var o policy.OverAdmission
	f, ok := r.inner(m, "", "over_admission", "tokens", "percent", "within")
	if !ok {
		return o
	}
	if f.nodes["within"] != nil && f.nodes["percent"] == nil {
		r.fail(f.at["within"], "over_admission.percent", "is missing with a window")
	}
	o.Tokens = r.tokens(f, "over_admission", "tokens")
	o.MilliPercent = parsed(r, f, "over_admission", "percent", policy.ParsePercent)
	o.Within = r.lifetime(f, "over_admission", "within")
	return o
}

func (r *reader) regions(m fields) []policy.Region {
	f, ok := r.inner(m, "", "regions")
	if !ok {
		return nil
	}
	regions := make([]policy.Region, 0, len(f.keys))
	for _, name := range f.keys {
		regions = append(regions, r.region(f, name))
	}
	return regions
}

func (r *reader) region(m fields, name string) policy.Region {
	region := policy.Region{Name: name}
	full := policy.Field("regions", name)
	r.at[full] = m.at[name]
	f, ok := r.mapping(m.nodes[name], full, "weight", "floor", "reserve")
	if !ok {
		return region
	}
	region.Weight = parsed(r, f, full, "weight", parseWeight)
	region.Floor = r.rate(f, full, "floor")
	if reserve, ok := r.inner(f, full, "reserve", "rate", "burst"); ok {
		inner := full + ".reserve"
		region.Reserve.Rate = r.rate(reserve, inner, "rate")
		region.Reserve.Burst = r.tokens(reserve, inner, "burst")
		if len(reserve.keys) == 0 {
			r.fail(f.at["reserve"], inner, "needs a rate and a burst")
		}
	}
	return region
}

func parseWeight(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 1 || n > policy.MaxWeight {
		return 0, fmt.Errorf("%q is not a weight, a whole number from 1 to %d", clip(s), policy.MaxWeight)
	}
	return n, nil
}
