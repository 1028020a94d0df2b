package scenario

import (
	"strings"
	"time"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// Expectation is a threshold that runs must keep.
type Expectation struct {
	Measure Measure
	// Budget and Region narrow what is measured; "" for all.
	Budget, Region string
	// Window is that of over-admission, 0 for any.
	Window time.Duration
	// Strategy is whose runs are asked; sim.AsWritten for the file's own.
	Strategy sim.Strategy
	// Mean asks it of the mean over the runs, else of each.
	Mean bool
	// AtLeast and AtMost are limits in the measure's unit; nil for none.
	AtLeast, AtMost *float64
	// Line is where it stands in its file.
	File string
	Line int
}

// Text is the expectation in words.
func (e Expectation) Text() string {
	var b strings.Builder
	b.WriteString(e.Measure.Label())
	if e.Window > 0 {
		b.WriteString(" in " + policy.FormatDuration(e.Window))
	}
	if e.Budget != "" {
		b.WriteString(" of " + e.Budget)
	}
	if e.Region != "" {
		b.WriteString(" in " + e.Region)
	}
	if e.AtLeast != nil {
		b.WriteString(" at least " + e.Measure.Format(*e.AtLeast))
	}
	if e.AtMost != nil {
		b.WriteString(" at most " + e.Measure.Format(*e.AtMost))
	}
	if e.Mean {
		b.WriteString(" on average")
	}
	return b.String()
}

// Value is what a run has to be compared with the limits.
func (e Expectation) Value(r *sim.Result) float64 {
	return e.Measure.Of(r, Where{Budget: e.Budget, Region: e.Region, Window: e.Window})
}

// Kept reports whether a value is within the limits. What is not a number
// never is.
func (e Expectation) Kept(value float64) bool {
	return (e.AtLeast == nil || value >= *e.AtLeast) && (e.AtMost == nil || value <= *e.AtMost)
}

// For reports whether the runs of a strategy are asked, native being the
// scenario's own.
func (e Expectation) For(strategy, native sim.Strategy) bool {
	if e.Strategy != sim.AsWritten {
		return strategy == e.Strategy || strategy == sim.AsWritten && native == e.Strategy
	}
	return strategy == sim.AsWritten || strategy == native
}

func (r *reader) expectations(s *yamlfile.Scope, m yamlfile.Fields) {
	for i, n := range s.List(m, "expect") {
		field := indexed("expect", i)
		f, ok := r.Mapping(n, field, "measure", "budget", "region", "window", "strategy", "of", "at_least", "at_most")
		if !ok {
			continue
		}
		e := Expectation{File: r.Origin(n), Line: n.Line, Region: r.oneRegion(s, f, "region")}
		if !f.Has("measure") {
			r.Fail(n, field+".measure", "is missing")
			continue
		}
		var err error
		if e.Measure, err = ParseMeasure(s.Text(f, "measure")); err != nil {
			r.Fail(f.Nodes["measure"], field+".measure", "%v", err)
			continue
		}
		if e.Region != "" && !e.Measure.regional() {
			r.Fail(f.Nodes["region"], field+".region", "%s is not measured by region", e.Measure)
		}
		r.about(s, f, &e)
		limit := func(key string) *float64 {
			if !f.Has(key) {
				return nil
			}
			v := yamlfile.Parsed(s, f, key, e.Measure.Parse)
			return &v
		}
		e.AtLeast, e.AtMost = limit("at_least"), limit("at_most")
		if e.AtLeast == nil && e.AtMost == nil {
			r.Fail(n, field, "needs at_least or at_most")
		}
		r.scenario.Expect = append(r.scenario.Expect, e)
	}
}

func (r *reader) about(s *yamlfile.Scope, f yamlfile.Fields, e *Expectation) {
	if e.Budget = s.Text(f, "budget"); e.Budget != "" && len(r.scenario.budgets) > 0 {
		found := false
		for _, b := range r.scenario.budgets {
			found = found || b.Name == e.Budget
		}
		if !found {
			r.Fail(f.Nodes["budget"], f.Path+".budget", "is %q, which is no budget of the scenario", yamlfile.Clip(e.Budget))
		}
	}
	if f.Has("strategy") {
		e.Strategy = yamlfile.Parsed(s, f, "strategy", ParseStrategy)
	}
	switch of := s.Text(f, "of"); of {
	case "", "each":
	case "mean":
		e.Mean = true
	default:
		r.Fail(f.Nodes["of"], f.Path+".of", "is %q, must be each or mean", yamlfile.Clip(of))
	}
	if !f.Has("window") {
		return
	}
	e.Window = yamlfile.Parsed(s, f, "window", span(time.Millisecond, longest))
	if e.Measure != OverAdmission && e.Measure != OfBound && e.Measure != Promised {
		r.Fail(f.Nodes["window"], f.Path+".window", "means nothing for %s", e.Measure)
	}
	for _, w := range r.scenario.options.Windows {
		if w == e.Window {
			return
		}
	}
	r.Fail(f.Nodes["window"], f.Path+".window", "is %s, which is not among the windows of the scenario", policy.FormatDuration(e.Window))
}
