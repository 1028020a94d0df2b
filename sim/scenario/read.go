package scenario

import (
	"fmt"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/policy/file"
	"github.com/ration-dev/ration/sim"
)

var topFields = []string{
	"version", "extends", "title", "question", "duration", "warmup", "epoch", "mode", "step", "seeds", "runs", "windows", "points",
	"strategies", "write_back", "check", "sync_every", "max_agents", "store_timeout", "random_agents",
	"topology", "budgets", "workloads", "changes", "faults", "expect",
}

// reader reads one scenario.
type reader struct {
	*yamlfile.Reader
	scenario *Scenario
	// nodes that later checks point at.
	durationAt *yaml.Node
	// traces were read, by path.
	traces map[string][]sim.Bin
}

// read reads the whole, and checks what depends on several parts once each is
// sound.
func (r *reader) read(root *yaml.Node) {
	m, ok := r.Mapping(root, "", topFields...)
	if !ok {
		return
	}
	s := r.Scope(root)
	r.header(s, m)
	r.pace(s, m)
	r.topology(s, m)
	r.faults(s, m)
	r.budgets(s, m)
	r.workloads(s, m)
	r.changes(s, m)
	r.expectations(s, m)
	if len(r.Problems) == 0 {
		r.size(s)
	}
	if len(r.Problems) == 0 {
		r.provable(s)
	}
}

func (r *reader) header(s *yamlfile.Scope, m yamlfile.Fields) {
	if !m.Has("version") {
		r.Fail(s.Root, "version", "is missing: write version: 1")
	} else if v := s.Text(m, "version"); v != "1" {
		r.Fail(m.Nodes["version"], "version", "is %q, this reads version 1", yamlfile.Clip(v))
	}
	sc := r.scenario
	sc.Title, sc.Question = s.Text(m, "title"), s.Text(m, "question")
	if sc.Title == "" {
		sc.Title = strings.TrimSuffix(filepath.Base(sc.File), filepath.Ext(sc.File))
	}
	r.seeds(s, m)
	sc.Strategies = []sim.Strategy{sim.AsWritten}
	if m.Has("strategies") {
		sc.Strategies = nil
		for i, n := range s.List(m, "strategies") {
			strategy, err := ParseStrategy(yamlfile.Resolve(n).Value)
			if err != nil {
				r.Fail(n, fmt.Sprintf("strategies[%d]", i), "%v", err)
			}
			sc.Strategies = append(sc.Strategies, strategy)
		}
		if len(sc.Strategies) == 0 {
			r.Fail(m.Nodes["strategies"], "strategies", "must not be empty")
		}
	}
}

// maxRuns is the most seeds of one scenario.
const maxRuns = 10_000

func (r *reader) seeds(s *yamlfile.Scope, m yamlfile.Fields) {
	sc := r.scenario
	if m.Has("seeds") && m.Has("runs") {
		r.Fail(m.Nodes["runs"], "runs", "and seeds say the same: write one of them")
		return
	}
	for i, n := range s.List(m, "seeds") {
		field := fmt.Sprintf("seeds[%d]", i)
		seed, err := strconv.ParseUint(yamlfile.Resolve(n).Value, 10, 63)
		if err != nil {
			r.Fail(n, field, "is %s, must be a whole number from 0", yamlfile.KindOf(yamlfile.Resolve(n)))
		}
		sc.Seeds = append(sc.Seeds, seed)
		if i == maxRuns {
			r.Fail(n, field, "is one too many, at most %d are allowed", maxRuns)
			break
		}
	}
	if m.Has("seeds") {
		if len(sc.Seeds) == 0 {
			r.Fail(m.Nodes["seeds"], "seeds", "must not be empty")
		}
		return
	}
	runs := 1
	if m.Has("runs") {
		runs = yamlfile.Parsed(s, m, "runs", count(1, maxRuns))
	}
	for i := range runs {
		sc.Seeds = append(sc.Seeds, uint64(i+1))
	}
}

const (
	longest   = 366 * 24 * time.Hour
	maxPoints = 20_000
	maxWindow = 32
)

func (r *reader) pace(s *yamlfile.Scope, m yamlfile.Fields) {
	o := &r.scenario.options
	r.durationAt = m.Nodes["duration"]
	if r.durationAt == nil {
		r.Fail(s.Root, "duration", "is missing: write how long is simulated, as in 10m")
	}
	o.Length = yamlfile.Parsed(s, m, "duration", span(time.Millisecond, longest))
	o.Warmup = yamlfile.Parsed(s, m, "warmup", span(0, longest))
	if o.Warmup >= o.Length && o.Length > 0 {
		r.Fail(m.Nodes["warmup"], "warmup", "is %s, not less than the duration", policy.FormatDuration(o.Warmup))
	}
	o.Epoch = yamlfile.Parsed(s, m, "epoch", epoch)
	mode := s.Text(m, "mode")
	switch mode {
	case "", "request":
		if m.Has("step") {
			r.Fail(m.At["step"], "step", "is only for mode: bulk")
		}
	case "bulk":
		o.Bulk = 100 * time.Millisecond
		if m.Has("step") {
			o.Bulk = yamlfile.Parsed(s, m, "step", span(time.Millisecond, time.Minute))
		}
	default:
		r.Fail(m.Nodes["mode"], "mode", "is %q, must be request or bulk", yamlfile.Clip(mode))
	}
	r.windows(s, m)
	o.Points = 600
	if m.Has("points") {
		o.Points = yamlfile.Parsed(s, m, "points", count(0, maxPoints))
	}
	o.WriteBack = yamlfile.Parsed(s, m, "write_back", span(time.Millisecond, time.Hour))
	o.SyncEvery = yamlfile.Parsed(s, m, "sync_every", span(time.Millisecond, time.Minute))
	if o.Bulk > 0 && !m.Has("sync_every") {
		o.SyncEvery = 2 * o.Bulk // quicker looks would see a step's demand as a jump
	}
	o.StoreTimeout = yamlfile.Parsed(s, m, "store_timeout", span(time.Microsecond, time.Minute))
	o.MaxAgents = yamlfile.Parsed(s, m, "max_agents", count(1, 1000))
	o.RandomAgents = yamlfile.Parsed(s, m, "random_agents", truth)
	o.Check = sim.CheckNone
	if m.Has("check") {
		o.Check = yamlfile.Parsed(s, m, "check", checks)
	}
}

func (r *reader) windows(s *yamlfile.Scope, m yamlfile.Fields) {
	o := &r.scenario.options
	o.Windows = []time.Duration{time.Second, 10 * time.Second, time.Minute}
	if !m.Has("windows") {
		return
	}
	o.Windows = nil
	list := s.List(m, "windows")
	if len(list) > maxWindow {
		r.Fail(m.Nodes["windows"], "windows", "are %d, at most %d are allowed", len(list), maxWindow)
		return
	}
	for i, n := range list {
		w, err := span(time.Millisecond, longest)(yamlfile.Resolve(n).Value)
		if err != nil {
			r.Fail(n, fmt.Sprintf("windows[%d]", i), "%v", err)
		}
		o.Windows = append(o.Windows, w)
	}
}

// budgets reads the list as a budget file has it, and repeats those that say
// so.
func (r *reader) budgets(s *yamlfile.Scope, m yamlfile.Fields) {
	if !m.Has("budgets") {
		r.Fail(s.Root, "budgets", "are missing")
		return
	}
	nodes := s.List(m, "budgets")
	r.scenario.budgets = r.budgetList("budgets", nodes)
	if len(nodes) == 0 && len(r.Problems) == 0 {
		r.Fail(m.Nodes["budgets"], "budgets", "must not be empty")
	}
}

// maxBudgets is the most budgets of a scenario.
const maxBudgets = sim.MaxBudgets

func (r *reader) budgetList(field string, nodes []*yaml.Node) []policy.Budget {
	regions := r.scenario.Regions()
	list := file.List{
		Reader: r.Reader, Deployment: deployment(r.scenario.options).Deployment,
		Complete: func(b policy.Budget) policy.Budget { return played(b, sim.AsWritten, regions) },
	}
	var all []policy.Budget
	for i, n := range nodes {
		at := fmt.Sprintf("%s[%d]", field, i)
		n, times := r.repeated(at, n)
		raw, _, ok := list.Budget(at, n)
		switch {
		case !ok:
		case len(all)+times > maxBudgets:
			r.Fail(n, at, "makes more than %d budgets", maxBudgets)
			return all
		case times == 1:
			all = append(all, raw)
		case !strings.Contains(raw.Name, "{n}"):
			r.Fail(n, at+".name", "must have {n}, where the number of each repetition goes")
		default:
			for k := range times {
				one := raw
				one.Name = strings.ReplaceAll(raw.Name, "{n}", strconv.Itoa(k+1))
				all = append(all, one)
			}
		}
	}
	return all
}

// repeated takes the repeat field from a budget.
func (r *reader) repeated(field string, n *yaml.Node) (*yaml.Node, int) {
	all := pairs(n, 0)
	at := index(all, "repeat")
	if at < 0 {
		return n, 1
	}
	value := yamlfile.Resolve(all[at+1])
	times, err := count(2, maxBudgets)(value.Value)
	if err != nil {
		r.Fail(value, field+".repeat", "%v", err)
		times = 1
	}
	out := (&merger{r.Reader}).like(yamlfile.Resolve(n))
	out.Content = append(append(out.Content, all[:at]...), all[at+2:]...)
	return out, times
}

// matching lists the budgets that a pattern means, in their order.
func (r *reader) matching(pattern string) []string {
	var names []string
	for _, b := range r.scenario.budgets {
		if ok, err := path.Match(pattern, b.Name); b.Name == pattern || err == nil && ok {
			names = append(names, b.Name)
		}
	}
	return names
}

func (r *reader) changes(s *yamlfile.Scope, m yamlfile.Fields) {
	last := time.Duration(-1)
	for i, n := range s.List(m, "changes") {
		field := fmt.Sprintf("changes[%d]", i)
		f, ok := r.Mapping(n, field, "at", "apply", "delete")
		if !ok {
			continue
		}
		c := change{at: r.when(s, f, n), node: n}
		if c.at < last {
			r.Fail(f.Nodes["at"], field+".at", "is before the change above it")
		}
		last = c.at
		c.apply = r.budgetList(field+".apply", s.List(f, "apply"))
		for _, name := range s.List(f, "delete") {
			c.delete = append(c.delete, yamlfile.Resolve(name).Value)
			if len(r.matching(yamlfile.Resolve(name).Value)) == 0 {
				r.Fail(name, field+".delete", "names %s, which is no budget of the scenario", yamlfile.KindOf(yamlfile.Resolve(name)))
			}
		}
		if len(c.apply)+len(c.delete) == 0 && len(r.Problems) == 0 {
			r.Fail(n, field, "changes nothing: give budgets to apply or names to delete")
		}
		r.scenario.changes = append(r.scenario.changes, c)
	}
}

// when reads an instant of the run.
func (r *reader) when(s *yamlfile.Scope, f yamlfile.Fields, n *yaml.Node) time.Duration {
	if !f.Has("at") {
		r.Fail(n, f.Path+".at", "is missing")
		return 0
	}
	at := yamlfile.Parsed(s, f, "at", span(0, longest))
	if length := r.scenario.options.Length; at > length && length > 0 {
		r.Fail(f.Nodes["at"], f.Path+".at", "is %s, after the end at %s", policy.FormatDuration(at), policy.FormatDuration(length))
	}
	return at
}

// provable checks that budgets are sound under each strategy that is asked
// for, so that no run has to find out.
func (r *reader) provable(s *yamlfile.Scope) {
	for _, strategy := range r.scenario.Strategies {
		if _, err := r.scenario.Options(strategy, 1); err != nil {
			r.Fail(s.Place("budgets"), "budgets", "cannot be played as %s: %v", StrategyName(strategy), err)
		}
	}
}

// Times of the simulated calendar.
var earliest, latest = time.Date(1990, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

func epoch(text string) (lease.Time, error) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return 0, fmt.Errorf("%q is not a time: write 2027-01-31T23:50:00Z", yamlfile.Clip(text))
	}
	if t.Before(earliest) || t.After(latest) {
		return 0, fmt.Errorf("%q must be between 1990 and 2200", text)
	}
	return lease.Time(t.UnixMicro()), nil
}
