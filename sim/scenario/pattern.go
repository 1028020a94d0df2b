package scenario

import (
	"cmp"
	"errors"
	"io"
	"os"
	"slices"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/sim"
)

// patternKinds are the fields of a workload that say how many requests come;
// each workload has one of them.
var patternKinds = []string{"rate", "phases", "bursts", "diurnal", "flash", "hot", "hoarder", "lurker", "trace"}

// patternFields has also those that go with some of them.
var patternFields = append([]string{"from", "until", "cycle"}, patternKinds...)

// pattern reads how many requests come to the i-th of n regions.
func (r *reader) pattern(s *yamlfile.Scope, f yamlfile.Fields, n *yaml.Node, i, regions int) sim.Pattern {
	var kinds []string
	for _, kind := range patternKinds {
		if f.Has(kind) {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) != 1 {
		r.Fail(n, f.Path, "needs one of rate, phases, bursts, diurnal, flash, hot, hoarder, lurker and trace, has %d", len(kinds))
		return nil
	}
	for key, kind := range map[string]string{"from": "rate", "until": "rate", "cycle": "phases"} {
		if f.Has(key) && kind != kinds[0] {
			r.Fail(f.Nodes[key], f.Path+"."+key, "goes with %s, not with %s", kind, kinds[0])
		}
	}
	switch kinds[0] {
	case "rate":
		return r.constant(s, f)
	case "phases":
		return r.phases(s, f)
	case "bursts":
		return r.bursts(s, f)
	case "diurnal":
		return r.diurnal(s, f)
	case "flash":
		return r.flash(s, f)
	case "hot":
		return r.hot(s, f, i, regions)
	case "hoarder":
		return r.hoarder(s, f)
	case "lurker":
		return r.lurker(s, f)
	}
	return r.trace(s, f, i)
}

func (r *reader) constant(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	c := sim.Constant{
		PerSecond: yamlfile.Parsed(s, f, "rate", perSecond),
		From:      yamlfile.Parsed(s, f, "from", span(0, longest)), Until: yamlfile.Parsed(s, f, "until", span(0, longest)),
	}
	if f.Has("until") && c.Until <= c.From {
		r.Fail(f.Nodes["until"], f.Path+".until", "is not after %s", formatSpan(c.From))
	}
	return c
}

func (r *reader) phases(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	p := sim.Phases{Cycle: yamlfile.Parsed(s, f, "cycle", span(time.Millisecond, longest))}
	for i, n := range s.List(f, "phases") {
		field := indexed(f.Path+".phases", i)
		in, ok := r.Mapping(n, field, "at", "rate", "at_once")
		if !ok {
			continue
		}
		phase := sim.Phase{
			At:        yamlfile.Parsed(s, in, "at", span(0, longest)),
			PerSecond: yamlfile.Parsed(s, in, "rate", perSecond),
			AtOnce:    int64(yamlfile.Parsed(s, in, "at_once", count(0, maxAtOnce))),
		}
		if k := len(p.List); k > 0 && phase.At <= p.List[k-1].At {
			r.Fail(n, field+".at", "is %s, not after the phase before", formatSpan(phase.At))
		}
		if p.Cycle > 0 && phase.At >= p.Cycle {
			r.Fail(n, field+".at", "is %s, after the cycle of %s", formatSpan(phase.At), formatSpan(p.Cycle))
		}
		p.List = append(p.List, phase)
	}
	if len(p.List) == 0 {
		r.Fail(f.Nodes["phases"], f.Path+".phases", "must not be empty")
	}
	return p
}

// maxAtOnce is the most requests at one instant.
const maxAtOnce = 10_000_000

func (r *reader) bursts(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	var b sim.Bursty
	for i, n := range s.List(f, "bursts") {
		field := indexed(f.Path+".bursts", i)
		in, ok := r.Mapping(n, field, "rate", "mean")
		if !ok {
			continue
		}
		if !in.Has("mean") {
			r.Fail(n, field+".mean", "is missing: how long the state lasts on average")
		}
		b.States = append(b.States, sim.BurstState{
			PerSecond: yamlfile.Parsed(s, in, "rate", perSecond), Mean: yamlfile.Parsed(s, in, "mean", span(time.Millisecond, longest)),
		})
	}
	if len(b.States) < 2 {
		r.Fail(f.Nodes["bursts"], f.Path+".bursts", "needs two states or more")
	}
	return b
}

func (r *reader) diurnal(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	in, ok := s.Inner(f, "diurnal", "mean", "swing", "peak_at", "shift")
	if !ok {
		return nil
	}
	r.need(in, f.Nodes["diurnal"], "mean", "swing")
	const day = 24 * time.Hour
	epoch := time.Duration(r.scenario.options.Epoch) * time.Microsecond
	if epoch == 0 {
		epoch = 8 * time.Hour // the simulator's default start, of the day
	}
	return sim.Diurnal{
		Mean:   yamlfile.Parsed(s, in, "mean", someRate),
		Swing:  yamlfile.Parsed(s, in, "swing", portion),
		PeakAt: yamlfile.Parsed(s, in, "peak_at", span(0, day)),
		Shift:  yamlfile.Parsed(s, in, "shift", span(-day, day)),
		Begin:  epoch % day,
	}
}

func (r *reader) flash(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	in, ok := s.Inner(f, "flash", "base", "peak", "at", "rise", "hold", "fall")
	if !ok {
		return nil
	}
	r.need(in, f.Nodes["flash"], "base", "peak", "at", "hold")
	when := func(key string) time.Duration { return yamlfile.Parsed(s, in, key, span(0, longest)) }
	return sim.Flash{
		Base: yamlfile.Parsed(s, in, "base", perSecond), Peak: yamlfile.Parsed(s, in, "peak", someRate),
		At: when("at"), Rise: when("rise"), Hold: when("hold"), Fall: when("fall"),
	}
}

func (r *reader) hot(s *yamlfile.Scope, f yamlfile.Fields, i, regions int) sim.Pattern {
	in, ok := s.Inner(f, "hot", "total", "share", "every")
	if !ok {
		return nil
	}
	r.need(in, f.Nodes["hot"], "total", "share", "every")
	if regions < 2 {
		r.Fail(f.Nodes["hot"], in.Path, "needs two regions or more to move between: write regions: all")
		return nil
	}
	return sim.Hot{
		Total: yamlfile.Parsed(s, in, "total", someRate), Share: yamlfile.Parsed(s, in, "share", portion),
		Index: i, Regions: regions, Every: yamlfile.Parsed(s, in, "every", span(time.Millisecond, longest)),
	}
}

func (r *reader) hoarder(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	in, ok := s.Inner(f, "hoarder", "quiet", "first", "every")
	if !ok {
		return nil
	}
	return sim.Hoarder{
		Quiet: yamlfile.Parsed(s, in, "quiet", perSecond),
		First: yamlfile.Parsed(s, in, "first", span(0, longest)), Every: yamlfile.Parsed(s, in, "every", span(time.Millisecond, longest)),
	}
}

func (r *reader) lurker(s *yamlfile.Scope, f yamlfile.Fields) sim.Pattern {
	in, ok := s.Inner(f, "lurker", "quiet", "look", "rest", "part")
	if !ok {
		return nil
	}
	r.need(in, f.Nodes["lurker"], "look", "part")
	return sim.Lurker{
		Quiet: yamlfile.Parsed(s, in, "quiet", perSecond), Part: yamlfile.Parsed(s, in, "part", portion),
		Look: yamlfile.Parsed(s, in, "look", span(time.Millisecond, longest)), Rest: yamlfile.Parsed(s, in, "rest", span(0, longest)),
	}
}

// trace replays a file of time and count. Regions after the first replay it
// shifted by shift_each, so that one file stands for several time zones.
func (r *reader) trace(s *yamlfile.Scope, f yamlfile.Fields, i int) sim.Pattern {
	in, ok := s.Inner(f, "trace", "file", "shift", "shift_each", "scale", "mean", "faster", "cycle")
	if !ok {
		return nil
	}
	r.need(in, f.Nodes["trace"], "file")
	const most = 366 * 24 * time.Hour
	p := sim.Replay{
		Shift: yamlfile.Parsed(s, in, "shift", span(-most, most)), Scale: yamlfile.Parsed(s, in, "scale", ratio),
		Faster: yamlfile.Parsed(s, in, "faster", ratio), Cycle: yamlfile.Parsed(s, in, "cycle", truth),
	}
	p.Shift += time.Duration(i) * yamlfile.Parsed(s, in, "shift_each", span(-most, most))
	path := s.Text(in, "file")
	if path == "" {
		return nil
	}
	p.Bins = r.bins(in, beside(r.Origin(in.Nodes["file"]), path))
	if len(p.Bins) < 2 {
		return nil
	}
	sum, length := 0.0, traceLength(p.Bins)
	for _, b := range p.Bins {
		sum += b.Count
	}
	mean := sum / length.Seconds()
	if in.Has("mean") {
		if in.Has("scale") {
			r.Fail(in.Nodes["mean"], in.Path+".mean", "and scale say the same: write one of them")
		}
		if sum == 0 {
			r.Fail(in.Nodes["mean"], in.Path+".mean", "cannot be reached: every count of the trace is 0")
			return nil
		}
		p.Scale = yamlfile.Parsed(s, in, "mean", someRate) / mean
		if p.Faster > 0 {
			p.Scale /= p.Faster
		}
	}
	if peak := peakOf(p); peak > maxRate {
		r.Fail(in.Nodes["file"], in.Path, "has up to %.0f requests a second, at most %.0f are allowed", peak, float64(maxRate))
	}
	return p
}

func traceLength(bins []sim.Bin) time.Duration {
	n := len(bins)
	return bins[n-1].At + (bins[n-1].At - bins[n-2].At) - bins[0].At
}

// peakOf is the most requests per second that a replay has.
func peakOf(p sim.Replay) float64 {
	most := 0.0
	for i, b := range p.Bins {
		end := p.Bins[0].At + traceLength(p.Bins)
		if i+1 < len(p.Bins) {
			end = p.Bins[i+1].At
		}
		most = max(most, b.Count/(end-b.At).Seconds())
	}
	if p.Scale > 0 {
		most *= p.Scale
	}
	if p.Faster > 0 {
		most *= p.Faster
	}
	return most
}

// maxTrace is the largest trace, in bytes.
const maxTrace = 64 << 20

// bins reads a trace once, however many regions replay it.
func (r *reader) bins(in yamlfile.Fields, path string) []sim.Bin {
	if bins, ok := r.traces[path]; ok {
		return bins
	}
	bins, problem := readTrace(path)
	if problem != nil {
		if problem.File == "" {
			*problem = r.At(in.Nodes["file"], in.Path+".file", "%s", problem.Reason)
		}
		r.Problems = append(r.Problems, *problem)
	}
	if r.traces == nil {
		r.traces = map[string][]sim.Bin{}
	}
	r.traces[path] = bins
	return bins
}

// readTrace returns a problem without a file where the trace could not be
// opened.
func readTrace(path string) ([]sim.Bin, *yamlfile.Problem) {
	f, err := os.Open(path)
	if err != nil {
		return nil, &yamlfile.Problem{Reason: err.Error()}
	}
	defer func() { _ = f.Close() }()
	limited := &io.LimitedReader{R: f, N: maxTrace + 1}
	bins, err := sim.ReadTrace(path, limited)
	if limited.N == 0 {
		return nil, &yamlfile.Problem{File: path, Reason: "is larger than 64 MB"}
	}
	if e, ok := errors.AsType[*sim.TraceError](err); ok {
		return nil, &yamlfile.Problem{File: e.Name, Line: e.Line, Column: 1, Reason: e.Reason}
	}
	if err != nil {
		return nil, &yamlfile.Problem{File: path, Reason: err.Error()}
	}
	ordered := slices.IsSortedFunc(bins, func(a, b sim.Bin) int { return cmp.Compare(a.At, b.At) })
	if !ordered || bins[len(bins)-1].At > 10*longest {
		return nil, &yamlfile.Problem{File: path, Reason: "goes over more than ten years"}
	}
	return bins, nil
}

// need asks for fields.
func (r *reader) need(f yamlfile.Fields, n *yaml.Node, keys ...string) {
	for _, key := range keys {
		if !f.Has(key) {
			r.Fail(n, f.Path+"."+key, "is missing")
		}
	}
}
