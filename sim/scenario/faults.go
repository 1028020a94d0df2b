package scenario

import (
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/sim"
)

type yamlNode = *yaml.Node

// takes lists which fields a kind of fault has beside at and kind. Those with
// a * it must have.
var takes = map[sim.Kind][]string{
	sim.CutRequests:        {"for", "region"},
	sim.CutReplies:         {"for", "region"},
	sim.Partition:          {"for", "region"},
	sim.DegradeLinks:       {"for", "region", "*link"},
	sim.LoseReplies:        {"for", "region", "*probability"},
	sim.KillAgent:          {"for", "region", "agent"},
	sim.StopAgent:          {"for", "region", "agent"},
	sim.PauseAgent:         {"*for", "region", "agent"},
	sim.SuspendAgent:       {"*for", "region", "agent"},
	sim.FreezeInTake:       {"*for", "region", "agent"},
	sim.FreezeInDecision:   {"*for", "region", "agent"},
	sim.KillAllocator:      {"for", "allocator"},
	sim.PauseAllocator:     {"*for", "allocator"},
	sim.DatabaseDown:       {"for"},
	sim.UnknownCommits:     {"for", "*probability"},
	sim.DatabaseFailover:   {"for", "lag", "step"},
	sim.StoreRestart:       {"region"},
	sim.StoreRestore:       {"region", "*lag"},
	sim.StoreFailover:      {"region", "lag", "isolated"},
	sim.LoseRow:            {"region", "budget"},
	sim.StoreStall:         {"*for", "region"},
	sim.StoreUnknown:       {"for", "region", "*probability"},
	sim.StepStoreClock:     {"region", "*step"},
	sim.DriftStoreClock:    {"for", "region", "*drift_ppm"},
	sim.DriftAgentClock:    {"for", "region", "agent", "*drift_ppm"},
	sim.StepDatabaseClock:  {"*step"},
	sim.DriftDatabaseClock: {"for", "*drift_ppm"},
	sim.DriftAllocator:     {"for", "allocator", "*drift_ppm"},
}

var faultFields = []string{
	"at", "every", "until", "for", "kind", "region", "agent", "allocator", "budget", "lag", "isolated", "step", "drift_ppm",
	"probability", "link",
}

// maxFaults is the most faults of a scenario, repetitions included.
const maxFaults = 10_000

func (r *reader) faults(s *yamlfile.Scope, m yamlfile.Fields) {
	for i, n := range s.List(m, "faults") {
		field := indexed("faults", i)
		f, ok := r.Mapping(n, field, faultFields...)
		if !ok {
			continue
		}
		fault, ok := r.fault(s, f, n)
		if !ok {
			continue
		}
		all := r.repeat(s, f, fault)
		o := &r.scenario.options
		if len(o.Faults)+len(all) > maxFaults {
			r.Fail(n, field, "makes more than %d faults", maxFaults)
			return
		}
		o.Faults = append(o.Faults, all...)
		r.implied(m, fault)
	}
	slices.SortStableFunc(r.scenario.options.Faults, func(a, b sim.Fault) int { return int(a.At - b.At) })
}

func (r *reader) fault(s *yamlfile.Scope, f yamlfile.Fields, n yamlNode) (sim.Fault, bool) {
	before := len(r.Problems)
	fault := sim.Fault{Kind: sim.Kind(s.Text(f, "kind")), At: r.when(s, f, n), Agent: -1, Allocator: -1}
	known, ok := takes[fault.Kind]
	if !ok {
		r.unknownKind(f, n, string(fault.Kind))
		return fault, false
	}
	r.fits(f, n, fault.Kind, known)
	fault.For = yamlfile.Parsed(s, f, "for", span(0, longest))
	fault.Region = r.oneRegion(s, f, "region")
	r.index(s, f, &fault)
	fault.Budget = s.Text(f, "budget")
	fault.Lag = yamlfile.Parsed(s, f, "lag", span(0, time.Hour))
	fault.Isolated = yamlfile.Parsed(s, f, "isolated", span(0, time.Hour))
	fault.Step = yamlfile.Parsed(s, f, "step", span(-24*time.Hour, 24*time.Hour))
	fault.PPM = int64(yamlfile.Parsed(s, f, "drift_ppm", count(-900_000, 900_000)))
	fault.Probability = yamlfile.Parsed(s, f, "probability", portion)
	if f.Has("probability") && fault.Probability == 0 {
		r.Fail(f.Nodes["probability"], f.Path+".probability", "must be above 0")
	}
	if f.Has("link") {
		fault.Link = r.link(s, f, "link")
	}
	return fault, len(r.Problems) == before
}

func (r *reader) unknownKind(f yamlfile.Fields, n yamlNode, kind string) {
	if !f.Has("kind") {
		r.Fail(n, f.Path+".kind", "is missing")
		return
	}
	var words []string
	for _, k := range sim.Kinds() {
		words = append(words, string(k))
	}
	r.Fail(f.Nodes["kind"], f.Path+".kind", "is %q, which is no kind of fault%s", yamlfile.Clip(kind), yamlfile.Suggestion(kind, words))
}

// fits refuses fields that the kind does not have, and asks for those it must.
func (r *reader) fits(f yamlfile.Fields, n yamlNode, kind sim.Kind, known []string) {
	for _, key := range f.Keys {
		switch key {
		case "at", "kind", "every", "until":
			continue
		}
		if !slices.Contains(known, key) && !slices.Contains(known, "*"+key) {
			r.Fail(f.At[key], f.Path+"."+key, "means nothing for %s", kind)
		}
	}
	for _, key := range known {
		if key[0] == '*' && !f.Has(key[1:]) {
			r.Fail(n, f.Path+"."+key[1:], "is missing with %s", kind)
		}
	}
}

// index reads which of the region's agents, or of the allocators, is meant;
// without a word, all of them.
func (r *reader) index(s *yamlfile.Scope, f yamlfile.Fields, fault *sim.Fault) {
	t := r.scenario.options.Topology
	if f.Has("agent") {
		fault.Agent = yamlfile.Parsed(s, f, "agent", count(0, maxAgents))
		for _, region := range t.Regions {
			if (fault.Region == "" || region.Name == fault.Region) && fault.Agent >= max(1, region.Agents) {
				r.Fail(f.Nodes["agent"], f.Path+".agent", "is %d, but region %s has %d, counted from 0", fault.Agent, region.Name, max(1, region.Agents))
				break
			}
		}
	}
	if f.Has("allocator") {
		fault.Allocator = yamlfile.Parsed(s, f, "allocator", count(0, 64))
		if has := max(1, t.Ledger.Allocators); fault.Allocator >= has {
			r.Fail(f.Nodes["allocator"], f.Path+".allocator", "is %d, but there are %d, counted from 0", fault.Allocator, has)
		}
	}
}

// repeat makes the fault happen again every so often.
func (r *reader) repeat(s *yamlfile.Scope, f yamlfile.Fields, fault sim.Fault) []sim.Fault {
	if !f.Has("every") {
		if f.Has("until") {
			r.Fail(f.Nodes["until"], f.Path+".until", "needs every")
		}
		return []sim.Fault{fault}
	}
	every := yamlfile.Parsed(s, f, "every", span(time.Millisecond, longest))
	until := r.scenario.options.Length
	if f.Has("until") {
		until = yamlfile.Parsed(s, f, "until", span(0, longest))
	}
	if every == 0 {
		return nil
	}
	var all []sim.Fault
	for ; fault.At <= until && len(all) <= maxFaults; fault.At += every {
		all = append(all, fault)
	}
	return all
}

// implied declares what a fault says of the stores, where the topology does
// not say it.
func (r *reader) implied(m yamlfile.Fields, f sim.Fault) {
	t := &r.scenario.options.Topology
	said := pairs(m.Nodes["topology"], 0)
	missing := func(key string) bool { return index(said, key) < 0 }
	switch f.Kind {
	case sim.StoreFailover:
		if missing("replicated_stores") {
			t.ReplicatedStores = true
		}
		if missing("store_isolation") {
			t.StoreIsolation = max(t.StoreIsolation, f.Isolated, time.Microsecond)
		}
	case sim.StoreStall, sim.StoreUnknown:
		if missing("store_outage") {
			t.StoreOutage = min(t.StoreOutage+f.For, 24*time.Hour)
		}
	}
}
