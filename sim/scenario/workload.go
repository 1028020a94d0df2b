package scenario

import (
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// maxStreams is the most streams of requests: workloads times their budgets.
const maxStreams = 100_000

func (r *reader) workloads(s *yamlfile.Scope, m yamlfile.Fields) {
	if !m.Has("workloads") {
		r.Fail(s.Root, "workloads", "are missing")
		return
	}
	names := map[string]string{}
	for i, n := range s.List(m, "workloads") {
		field := indexed("workloads", i)
		f, ok := r.Mapping(n, field, append([]string{
			"name", "region", "regions", "budget", "budgets", "all", "zipf", "arrivals", "cost", "deadline",
		}, patternFields...)...)
		if !ok {
			continue
		}
		name := s.Text(f, "name")
		if name == "" {
			name = strconv.Itoa(i + 1)
		}
		if first, ok := names[name]; ok {
			r.Fail(n, field+".name", "%q was given before, at %s", yamlfile.Clip(name), first)
		}
		names[name] = r.Origin(n) + ":" + strconv.Itoa(n.Line)
		r.workload(s, f, n, name)
	}
	if len(r.scenario.options.Workloads) == 0 && len(r.Problems) == 0 {
		r.Fail(m.Nodes["workloads"], "workloads", "must not be empty")
	}
}

// workload adds one stream per region.
func (r *reader) workload(s *yamlfile.Scope, f yamlfile.Fields, n *yaml.Node, name string) {
	w := sim.Workload{
		Name: name, Budgets: r.asked(s, f, n),
		All:  yamlfile.Parsed(s, f, "all", truth),
		Zipf: yamlfile.Parsed(s, f, "zipf", number(0, 5)),
		Cost: r.cost(s, f), Deadline: yamlfile.Parsed(s, f, "deadline", span(time.Microsecond, time.Minute)),
	}
	switch arrivals := s.Text(f, "arrivals"); arrivals {
	case "", "poisson":
	case "even":
		w.Even = true
	default:
		r.Fail(f.Nodes["arrivals"], f.Path+".arrivals", "is %q, must be poisson or even", yamlfile.Clip(arrivals))
	}
	if w.All && w.Zipf > 0 {
		r.Fail(f.Nodes["zipf"], f.Path+".zipf", "chooses one of the budgets, where all asks for all of them")
	}
	regions := r.where(s, f, n)
	for i, region := range regions {
		one := w
		one.Region = region
		if len(regions) > 1 {
			one.Name = name + "@" + region
		}
		one.Pattern = r.pattern(s, f, n, i, len(regions))
		r.scenario.options.Workloads = append(r.scenario.options.Workloads, one)
	}
}

// where lists a workload's regions.
func (r *reader) where(s *yamlfile.Scope, f yamlfile.Fields, n *yaml.Node) []string {
	if f.Has("region") == f.Has("regions") {
		r.Fail(n, f.Path+".region", "is needed: a region, or regions, a list of them or all")
		return nil
	}
	if f.Has("region") {
		return []string{r.oneRegion(s, f, "region")}
	}
	if list := yamlfile.Resolve(f.Nodes["regions"]); list.Kind == yaml.ScalarNode && list.Value == "all" {
		return r.scenario.Regions()
	}
	var names []string
	for i, item := range s.List(f, "regions") {
		name := yamlfile.Resolve(item).Value
		if r.knownRegion(item, indexed(f.Path+".regions", i), name) == nil {
			continue
		}
		if slices.Contains(names, name) {
			r.Fail(item, indexed(f.Path+".regions", i), "is named twice")
		}
		names = append(names, name)
	}
	return names
}

// asked lists the budgets that requests ask for: a name, or a pattern with *,
// or a list of either.
func (r *reader) asked(s *yamlfile.Scope, f yamlfile.Fields, n *yaml.Node) []string {
	var patterns []*yaml.Node
	switch {
	case f.Has("budget") == f.Has("budgets"):
		r.Fail(n, f.Path+".budget", "is needed: a budget, or budgets, a list of them")
		return nil
	case f.Has("budget"):
		patterns = []*yaml.Node{f.Nodes["budget"]}
	default:
		patterns = s.List(f, "budgets")
	}
	var names []string
	for _, p := range patterns {
		text := yamlfile.Resolve(p).Value
		found := r.matching(text)
		if len(found) == 0 && len(r.scenario.budgets) > 0 {
			r.Fail(p, f.Path+".budget", "is %q, which matches no budget of the scenario", yamlfile.Clip(text))
		}
		for _, name := range found {
			if !slices.Contains(names, name) || len(found) == 1 {
				names = append(names, name)
			}
		}
	}
	if len(names) > maxStreams {
		r.Fail(n, f.Path+".budgets", "are %d, at most %d are allowed", len(names), maxStreams)
		return nil
	}
	return names
}

func (r *reader) cost(s *yamlfile.Scope, f yamlfile.Fields) sim.Cost {
	var c sim.Cost
	n := f.Nodes["cost"]
	if n == nil {
		return c
	}
	if yamlfile.Resolve(n).Kind == yaml.ScalarNode {
		c.Fixed = lease.Tokens(yamlfile.Parsed(s, f, "cost", count(1, maxCost)))
		return c
	}
	in, ok := s.Inner(f, "cost", "choices", "median", "sigma", "most")
	if !ok {
		return c
	}
	if in.Has("choices") == in.Has("median") {
		r.Fail(n, in.Path, "is a number, or has choices, or a median with sigma and most")
		return c
	}
	if in.Has("choices") {
		c.Choices = r.choices(s, in)
		return c
	}
	c.Median = lease.Tokens(yamlfile.Parsed(s, in, "median", count(1, maxCost)))
	c.Sigma = yamlfile.Parsed(s, in, "sigma", number(0, 5))
	c.Most = lease.Tokens(yamlfile.Parsed(s, in, "most", count(1, maxCost)))
	if c.Most < c.Median {
		r.Fail(n, in.Path+".most", "must be at least the median")
	}
	return c
}

// maxCost is the largest cost of a request.
const maxCost = 1 << 40

// choices reads {cost: weight, …}.
func (r *reader) choices(s *yamlfile.Scope, f yamlfile.Fields) []sim.CostChoice {
	in, ok := s.Inner(f, "choices")
	if !ok {
		return nil
	}
	var all []sim.CostChoice
	for _, key := range in.Keys {
		cost, err := count(1, maxCost)(key)
		if err != nil {
			r.Fail(in.At[key], in.Path, "%v", err)
		}
		weight := yamlfile.Parsed(s, in, key, count(1, 1_000_000))
		all = append(all, sim.CostChoice{Cost: lease.Tokens(cost), Weight: int64(weight)})
	}
	if len(all) == 0 {
		r.Fail(f.Nodes["choices"], in.Path, "must not be empty: write {cost: weight, …}")
	}
	return all
}

// ratio parses a factor such as 1.5.
func ratio(text string) (float64, error) { return number(1e-6, 1e6)(text) }

func formatSpan(d time.Duration) string { return policy.FormatDuration(d) }
