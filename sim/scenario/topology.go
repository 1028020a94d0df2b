package scenario

import (
	"fmt"
	"time"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

const (
	maxRegions = sim.MaxRegions
	maxAgents  = sim.MaxAgents
	maxDelay   = time.Minute
)

func (r *reader) topology(s *yamlfile.Scope, m yamlfile.Fields) {
	if !m.Has("topology") {
		r.Fail(s.Root, "topology", "is missing")
		return
	}
	f, ok := s.Inner(m, "topology", "regions", "allocators", "commit", "clocks", "declared",
		"replicated_stores", "store_isolation", "store_outage")
	if !ok {
		return
	}
	t := &r.scenario.options.Topology
	r.regions(s, f, t)
	t.Ledger.Allocators = yamlfile.Parsed(s, f, "allocators", count(1, 64))
	t.Ledger.Commit = r.latency(s, f, "commit")
	if c, ok := s.Inner(f, "clocks", "database", "allocators"); ok {
		t.Ledger.Database = r.clock(s, c, "database")
		t.Ledger.Allocator = r.clock(s, c, "allocators")
	}
	r.declared(s, f, t)
	t.ReplicatedStores = yamlfile.Parsed(s, f, "replicated_stores", truth)
	t.StoreIsolation = yamlfile.Parsed(s, f, "store_isolation", span(0, time.Hour))
	t.StoreOutage = yamlfile.Parsed(s, f, "store_outage", span(0, 24*time.Hour))
}

func (r *reader) regions(s *yamlfile.Scope, f yamlfile.Fields, t *sim.Topology) {
	if !f.Has("regions") {
		r.Fail(s.Place("topology"), "topology.regions", "is missing")
		return
	}
	list, ok := s.Inner(f, "regions")
	if !ok {
		return
	}
	if len(list.Keys) == 0 || len(list.Keys) > maxRegions {
		r.Fail(f.Nodes["regions"], list.Path, "has %d regions, must be 1 to %d", len(list.Keys), maxRegions)
		return
	}
	for _, name := range list.Keys {
		if why := policy.CheckName(name); why != "" {
			r.Fail(list.At[name], list.Path, "has a name that %s", why)
		}
		t.Regions = append(t.Regions, r.region(s, list, name))
	}
}

func (r *reader) region(s *yamlfile.Scope, list yamlfile.Fields, name string) sim.Region {
	region := sim.Region{Name: name}
	f, ok := r.Mapping(list.Nodes[name], yamlfile.Join(list.Path, name), "rtt", "up", "down", "agents", "store_latency", "store_clock", "agent_clocks")
	if !ok {
		return region
	}
	region.Agents = yamlfile.Parsed(s, f, "agents", count(1, maxAgents))
	region.Up, region.Down = sim.RTT(yamlfile.Parsed(s, f, "rtt", span(0, maxDelay)))
	if f.Has("rtt") && f.Has("up") {
		r.Fail(f.Nodes["rtt"], f.Path+".rtt", "is a round trip, beside the two ways of one: write either rtt or up and down")
	}
	if f.Has("down") && !f.Has("up") {
		r.Fail(f.Nodes["down"], f.Path+".down", "needs up")
	}
	if f.Has("up") {
		region.Up = r.link(s, f, "up")
		region.Down = region.Up
	}
	if f.Has("down") {
		region.Down = r.link(s, f, "down")
	}
	region.StoreLatency = r.latency(s, f, "store_latency")
	region.Store = r.clock(s, f, "store_clock")
	region.Agent = r.clock(s, f, "agent_clocks")
	return region
}

// latency reads a duration whose 0 means none, where the simulator takes a
// default for what is not said.
func (r *reader) latency(s *yamlfile.Scope, f yamlfile.Fields, key string) time.Duration {
	d := yamlfile.Parsed(s, f, key, span(0, maxDelay))
	if f.Has(key) && d == 0 {
		return -1
	}
	return d
}

func (r *reader) clock(s *yamlfile.Scope, f yamlfile.Fields, key string) sim.Clock {
	c, ok := s.Inner(f, key, "offset", "drift_ppm")
	if !ok {
		return sim.Clock{}
	}
	return sim.Clock{
		Offset:   yamlfile.Parsed(s, c, "offset", span(-24*time.Hour, 24*time.Hour)),
		DriftPPM: int64(yamlfile.Parsed(s, c, "drift_ppm", count(-900_000, 900_000))),
	}
}

func (r *reader) declared(s *yamlfile.Scope, f yamlfile.Fields, t *sim.Topology) {
	c, ok := s.Inner(f, "declared", "drift_ppm", "back_step", "quantum")
	if !ok {
		return
	}
	t.Declared = lease.DefaultClocks()
	if c.Has("drift_ppm") {
		t.Declared.DriftPPM = int64(yamlfile.Parsed(s, c, "drift_ppm", count(0, 500_000)))
	}
	if c.Has("back_step") {
		t.Declared.BackStep = yamlfile.Parsed(s, c, "back_step", span(0, time.Hour))
	}
	if c.Has("quantum") {
		t.Declared.Quantum = yamlfile.Parsed(s, c, "quantum", span(0, time.Hour))
	}
}

var linkFields = []string{"delay", "uniform", "jitter", "lognormal", "sigma", "loss", "duplicate", "reorder", "reorder_by"}

// link reads one direction of a network. jitter is the mean of an exponential
// part.
func (r *reader) link(s *yamlfile.Scope, f yamlfile.Fields, key string) sim.Link {
	l, ok := s.Inner(f, key, linkFields...)
	if !ok {
		return sim.Link{}
	}
	delay := func(key string) time.Duration { return yamlfile.Parsed(s, l, key, span(0, maxDelay)) }
	link := sim.Link{
		Delay: sim.Delay{
			Base: delay("delay"), Uniform: delay("uniform"), Exponential: delay("jitter"),
			Lognormal: delay("lognormal"), Sigma: yamlfile.Parsed(s, l, "sigma", number(0, 5)),
		},
		Loss:      yamlfile.Parsed(s, l, "loss", portion),
		Duplicate: yamlfile.Parsed(s, l, "duplicate", portion),
		Reorder:   yamlfile.Parsed(s, l, "reorder", portion),
		ReorderBy: delay("reorder_by"),
	}
	if l.Has("sigma") && !l.Has("lognormal") {
		r.Fail(l.Nodes["sigma"], l.Path+".sigma", "needs lognormal, the median delay")
	}
	if link.Reorder > 0 && link.ReorderBy == 0 {
		r.Fail(l.Nodes["reorder"], l.Path+".reorder", "needs reorder_by, how long a message is held back")
	}
	return link
}

// oneRegion reads the name of a region of the topology; "" when it is absent.
func (r *reader) oneRegion(s *yamlfile.Scope, f yamlfile.Fields, key string) string {
	name := s.Text(f, key)
	if name == "" {
		return ""
	}
	r.knownRegion(f.Nodes[key], yamlfile.Join(f.Path, key), name)
	return name
}

func (r *reader) knownRegion(n yamlNode, field, name string) *sim.Region {
	regions := r.scenario.options.Topology.Regions
	for i := range regions {
		if regions[i].Name == name {
			return &regions[i]
		}
	}
	if len(regions) > 0 { // else the topology was at fault
		r.Fail(n, field, "is %q, which is no region of the topology%s", yamlfile.Clip(name), yamlfile.Suggestion(name, r.scenario.Regions()))
	}
	return nil
}

func indexed(field string, i int) string { return fmt.Sprintf("%s[%d]", field, i) }
