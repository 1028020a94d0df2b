package report

import (
	"fmt"
	"html/template"
	"slices"
	"strconv"
	"time"

	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/scenario"
)

// part is one section: a scenario, or all points of a sweep of one.
type part struct {
	ID, Title, Question, File, Mode string
	Number                          int
	Badge                           badge
	Thresholds                      table
	// Sweep is set for a sweep, whose Scatter is the number of its chart.
	Sweep   *table
	Scatter string

	Strategies []string
	// Shown is the strategy whose charts are shown at first.
	Shown   int
	Charts  []chart
	Omitted string

	Measures, Windows, Causes, Regions, Marks, Violations table
}

type badge struct{ Class, Text string }

// table is a table of texts; the columns from Numbers on hold numbers.
type table struct {
	Caption string
	Header  []string
	Numbers []int
	Rows    [][]any
	Empty   string
}

// Number reports whether a column has numbers.
func (t table) Number(column int) bool { return slices.Contains(t.Numbers, column) }

// Cell is a cell's content.
func (t table) Cell(v any) any { return v }

// chart is a budget's charts.
type chart struct {
	Number           int
	Budget, Contract string
	Regions          []string
	Table            table
}

// arrange makes sections, and the numbers that their charts draw.
func arrange(r *batch.Report) ([]part, data) {
	var parts []part
	var d data
	for i := 0; i < len(r.Scenarios); {
		s := r.Scenarios[i]
		points := 1
		for len(s.Sweep) > 0 && i+points < len(r.Scenarios) && r.Scenarios[i+points].File == s.File {
			points++
		}
		p := part{
			ID: "s" + strconv.Itoa(len(parts)+1), Title: s.Title, Question: s.Question, File: s.File, Mode: mode(s), Number: len(d.Scenarios),
		}
		if len(s.Sweep) > 0 {
			p.swept(r.Scenarios[i:i+points], &d)
		} else {
			p.scenario(s, &d)
		}
		parts = append(parts, p)
		i += points
	}
	return parts, d
}

func mode(s batch.Scenario) string {
	text := policy.FormatDuration(s.Length) + " request by request"
	if s.Step > 0 {
		text = policy.FormatDuration(s.Length) + " in bulk steps of " + policy.FormatDuration(s.Step)
	}
	if len(s.Outcomes) > 0 {
		text += ", " + plural(len(s.Outcomes[0].Runs), "run")
	}
	return text
}

func verdicts(all []batch.Verdict) badge {
	failed := 0
	for _, v := range all {
		if !v.Kept {
			failed++
		}
	}
	switch {
	case len(all) == 0:
		return badge{"none", "no thresholds"}
	case failed > 0:
		return badge{"failed", fmt.Sprintf("%d of %d thresholds not kept", failed, len(all))}
	}
	return badge{"kept", plural(len(all), "threshold") + " kept"}
}

func badgeHTML(kept bool) template.HTML {
	if kept {
		return `<span class="badge kept">kept</span>`
	}
	return `<span class="badge failed">not kept</span>`
}

func (p *part) scenario(s batch.Scenario, d *data) {
	p.Badge = verdicts(s.Thresholds)
	for _, v := range s.Thresholds {
		seed := "mean"
		if v.Seed != 0 {
			seed = strconv.FormatUint(v.Seed, 10)
		}
		p.Thresholds.Rows = append(p.Thresholds.Rows, []any{v.Text, badgeHTML(v.Kept), v.Shown, seed, shown(v.Strategy, s.Native)})
	}
	p.Thresholds.Header, p.Thresholds.Numbers = []string{"Threshold", "", "Worst run has", "Seed", "Strategy"}, []int{2, 3}
	for _, o := range s.Outcomes {
		p.Strategies = append(p.Strategies, shown(o.Strategy, s.Native))
	}
	p.Shown = max(0, slices.Index(p.Strategies, s.Native))
	p.measures(s)
	p.tables(s)
	p.charts(s, d)
}

func shown(strategy, native string) string {
	if strategy == scenario.StrategyName(sim.AsWritten) {
		return native
	}
	return strategy
}

func (p *part) measures(s batch.Scenario) {
	t := table{Header: []string{"Measure"}}
	if len(s.Outcomes) > 0 && len(s.Outcomes[0].Runs) > 1 {
		t.Caption = "Means over the runs, with half of their 95 % confidence intervals"
	}
	for i, name := range p.Strategies {
		t.Header = append(t.Header, name)
		t.Numbers = append(t.Numbers, i+1)
	}
	for _, m := range scenario.Measures() {
		row := []any{m.Label()}
		for _, o := range s.Outcomes {
			row = append(row, interval(o, m))
		}
		t.Rows = append(t.Rows, row)
	}
	p.Measures = t
}

func interval(o batch.Outcome, m scenario.Measure) string {
	e := o.Of(m)
	text := m.Format(float64(e.Mean))
	if half := m.Format(float64(e.High - e.Mean)); len(o.Runs) > 1 && half != m.Format(0) && half != "-" {
		text += " ± " + half
	}
	return text
}

// mostBudgets is how many budgets get charts and rows of their own.
const mostBudgets = 4

func (p *part) tables(s batch.Scenario) {
	p.Windows = table{Header: []string{"Budget", "Strategy", "Window", "Most above", "Bound"}, Numbers: []int{2, 3, 4}, Empty: "No windows were measured."}
	p.Causes = table{Header: []string{"Cause", "Strategy", "Budget", "Tokens"}, Numbers: []int{3}, Empty: "No token went over the contract."}
	p.Regions = table{
		Caption: "The first run of each strategy", Numbers: []int{3, 4, 5, 6, 7},
		Header: []string{"Region", "Strategy", "Budget", "Offered", "Admitted tokens", "Ideal tokens", "Falsely denied", "Longest denial"},
	}
	p.Marks = table{Header: []string{"What", "At", "Until"}, Numbers: []int{1, 2}}
	p.Violations = table{Header: []string{"Invariant", "Strategy", "Budget", "At", "What"}, Numbers: []int{3}}
	for i, o := range s.Outcomes {
		name := p.Strategies[i]
		for _, r := range o.Runs {
			for _, v := range r.Found {
				p.Violations.Rows = append(p.Violations.Rows, []any{v.Invariant, name, v.Budget, instant(v.At), v.Detail})
			}
		}
		for _, b := range leading(o.Runs[0]) {
			p.budget(o.Runs[0], b, name)
		}
	}
	if len(s.Outcomes) > 0 {
		for _, m := range s.Outcomes[0].Runs[0].Marks {
			until := ""
			if m.Until > m.At {
				until = instant(m.Until)
			}
			p.Marks.Rows = append(p.Marks.Rows, []any{m.Text, instant(m.At), until})
		}
	}
}

func (p *part) budget(run *sim.Result, b *sim.BudgetResult, strategy string) {
	for _, w := range append(slices.Clone(b.Over), b.Any) {
		length, bound := policy.FormatDuration(w.W), strconv.FormatInt(int64(w.Bound), 10)
		if w.W == 0 {
			length = "any"
		}
		if w.Bound < 0 {
			bound = "none"
		}
		p.Windows.Rows = append(p.Windows.Rows, []any{b.Name, strategy, length, int64(w.Over), bound})
	}
	for _, c := range b.Causes {
		p.Causes.Rows = append(p.Causes.Rows, []any{string(c.Name), strategy, b.Name, int64(c.Tokens)})
	}
	for _, r := range b.Regions {
		where := scenario.Where{Budget: b.Name, Region: r.Name}
		p.Regions.Rows = append(p.Regions.Rows, []any{
			r.Name, strategy, b.Name, r.Offered, int64(r.AdmittedTokens), int64(r.IdealTokens),
			scenario.FalseDenials.Format(scenario.FalseDenials.Of(run, where)), scenario.LongestDenied.Format(scenario.LongestDenied.Of(run, where)),
		})
	}
}

// leading are the budgets with the most demand, in that order.
func leading(r *sim.Result) []*sim.BudgetResult {
	all := make([]*sim.BudgetResult, len(r.Budgets))
	for i := range r.Budgets {
		all[i] = &r.Budgets[i]
	}
	slices.SortStableFunc(all, func(a, b *sim.BudgetResult) int {
		switch {
		case a.OfferedTokens > b.OfferedTokens:
			return -1
		case a.OfferedTokens < b.OfferedTokens:
			return 1
		}
		return 0
	})
	return all[:min(len(all), mostBudgets)]
}

func instant(d time.Duration) string { return policy.FormatDuration(d.Round(time.Millisecond)) }

// swept shows the points of a sweep.
func (p *part) swept(points []batch.Scenario, d *data) {
	var all []batch.Verdict
	t := table{}
	for _, set := range points[0].Sweep {
		t.Header = append(t.Header, set.Field)
	}
	measures := []scenario.Measure{
		scenario.Utilisation, scenario.FalseDenials, scenario.RPCs, scenario.Promised, scenario.OverAdmission, scenario.LongestDenied,
	}
	t.Header = append(t.Header, "Strategy")
	for _, m := range measures {
		t.Numbers = append(t.Numbers, len(t.Header))
		t.Header = append(t.Header, m.Label())
	}
	t.Header = append(t.Header, "Pareto", "Thresholds")
	var dots []dot
	for _, s := range points {
		all = append(all, s.Thresholds...)
		for _, o := range s.Outcomes {
			var row []any
			name := ""
			for _, set := range s.Sweep {
				row = append(row, set.Value)
				name += set.Value + " "
			}
			strategy := shown(o.Strategy, s.Native)
			row = append(row, strategy)
			for _, m := range measures {
				row = append(row, interval(o, m))
			}
			best := ""
			if o.Pareto {
				best = "★ not beaten"
			}
			t.Rows = append(t.Rows, append(row, best, thresholdsOf(s, o.Strategy)))
			if len(s.Outcomes) > 1 {
				name += strategy
			}
			dots = append(dots, dot{
				Name: name, X: o.Of(scenario.RPCs).Mean, Y: 100 * o.Of(scenario.FalseDenials).Mean, Pareto: o.Pareto,
			})
		}
	}
	p.Badge, p.Sweep = verdicts(all), &t
	if len(dots) > 1 {
		p.Scatter = strconv.Itoa(len(d.Sweeps))
		d.Sweeps = append(d.Sweeps, dots)
	}
}

func thresholdsOf(s batch.Scenario, strategy string) string {
	var own []batch.Verdict
	for _, v := range s.Thresholds {
		if v.Strategy == strategy {
			own = append(own, v)
		}
	}
	if len(own) == 0 {
		return ""
	}
	return verdicts(own).Text
}
