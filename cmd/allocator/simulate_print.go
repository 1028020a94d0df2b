package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/scenario"
)

func printReport(w io.Writer, format cli.Format, out *batch.Report, env environment) error {
	if format == cli.CSV {
		return writeCSV(w, out)
	}
	return cli.Print(w, format, out, func(w io.Writer) error {
		p := reportPrinter{w: w, paint: painter{on: cli.Colour(w, env.lookup)}}
		return p.all(out)
	})
}

// reportPrinter writes a report as tables.
type reportPrinter struct {
	w     io.Writer
	paint painter
}

func (p reportPrinter) all(out *batch.Report) error {
	for i := 0; i < len(out.Scenarios); {
		s := out.Scenarios[i]
		points := 1
		for i+points < len(out.Scenarios) && out.Scenarios[i+points].File == s.File && len(s.Sweep) > 0 {
			points++
		}
		p.head(s)
		var err error
		if len(s.Sweep) > 0 {
			err = p.sweep(out.Scenarios[i : i+points])
		} else {
			err = p.scenario(s)
		}
		if err != nil {
			return err
		}
		i += points
		fmt.Fprintln(p.w)
	}
	return nil
}

func (p reportPrinter) head(s batch.Scenario) {
	fmt.Fprintf(p.w, "%s\n", cli.Printable(s.Title))
	for line := range strings.Lines(strings.TrimSpace(s.Question)) {
		fmt.Fprintf(p.w, "  %s\n", cli.Printable(strings.TrimSpace(line)))
	}
	mode := "request by request"
	if s.Step > 0 {
		mode = "in bulk steps of " + policy.FormatDuration(s.Step)
	}
	runs := 0
	for _, o := range s.Outcomes {
		runs = max(runs, len(o.Runs))
	}
	fmt.Fprintf(p.w, "  %s: %s %s, %s\n\n", cli.Printable(s.File), policy.FormatDuration(s.Length), mode, plural(runs, "run"))
}

func plural(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + word + "s"
}

// scenario shows strategies side by side.
func (p reportPrinter) scenario(s batch.Scenario) error {
	header := []string{"Measure"}
	for _, o := range s.Outcomes {
		header = append(header, shownStrategy(o.Strategy, s.Native))
	}
	var rows [][]any
	for _, m := range scenario.Measures() {
		row := []any{m.Label()}
		for _, o := range s.Outcomes {
			row = append(row, interval(o, m))
		}
		rows = append(rows, row)
	}
	if err := cli.WriteTable(p.w, header, rows); err != nil {
		return err
	}
	if err := p.regions(s); err != nil {
		return err
	}
	return p.thresholds(s.Thresholds, s.Native)
}

func shownStrategy(name, native string) string {
	if name == "as_written" {
		return native
	}
	return name
}

// interval is a mean with half its confidence interval.
func interval(o batch.Outcome, m scenario.Measure) string {
	e := o.Of(m)
	text := m.Format(float64(e.Mean))
	if half := m.Format(float64(e.High - e.Mean)); len(o.Runs) > 1 && half != m.Format(0) && half != "-" {
		text += " ± " + half
	}
	return text
}

// mostBudgets is how many budgets are shown by region.
const mostBudgets = 5

// regions shows the first run of each strategy by budget and region.
func (p reportPrinter) regions(s batch.Scenario) error {
	var rows [][]any
	for _, o := range s.Outcomes {
		budgets := o.Runs[0].Budgets
		for i := range budgets[:min(len(budgets), mostBudgets)] {
			for _, r := range budgets[i].Regions {
				where := scenario.Where{Budget: budgets[i].Name, Region: r.Name}
				rows = append(rows, []any{
					shownStrategy(o.Strategy, s.Native), budgets[i].Name, r.Name, r.Offered, r.Admitted, int64(r.IdealTokens),
					shownOf(scenario.FalseDenials, o.Runs[0], where), shownOf(scenario.LongestDenied, o.Runs[0], where),
				})
			}
		}
	}
	fmt.Fprintln(p.w)
	return cli.WriteTable(p.w, []string{"Strategy", "Budget", "Region", "Offered", "Admitted", "Ideal tokens", "Falsely denied", "Longest denial"}, rows)
}

func shownOf(m scenario.Measure, r *sim.Result, w scenario.Where) string { return m.Format(m.Of(r, w)) }

func (p reportPrinter) thresholds(all []batch.Verdict, native string) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Fprintln(p.w)
	for _, v := range all {
		value := v.Shown
		if v.Seed != 0 {
			value += fmt.Sprintf(" with seed %d", v.Seed)
		}
		if v.Kept {
			p.paint.line(p.w, green, "kept    %s: %s", v.Text, value)
		} else {
			p.paint.line(p.w, red, "FAILED  %s: %s  (%s, %s)", v.Text, value, shownStrategy(v.Strategy, native), v.Place)
		}
	}
	return nil
}

// sweep shows the points of a grid, those that nothing beats with a *.
func (p reportPrinter) sweep(points []batch.Scenario) error {
	var header []string
	for _, set := range points[0].Sweep {
		header = append(header, set.Field)
	}
	measures := []scenario.Measure{
		scenario.Utilisation, scenario.FalseDenials, scenario.RPCs, scenario.Promised, scenario.OverAdmission, scenario.LongestDenied,
	}
	header = append(header, "Strategy", "Utilisation", "False denials", "RPCs per 1000", "Bound", "Over-admission", "Longest denial", "Pareto", "Thresholds")
	var rows [][]any
	for _, s := range points {
		for _, o := range s.Outcomes {
			var row []any
			for _, set := range s.Sweep {
				row = append(row, set.Value)
			}
			row = append(row, shownStrategy(o.Strategy, s.Native))
			for _, m := range measures {
				row = append(row, interval(o, m))
			}
			rows = append(rows, append(row, star(o.Pareto), keptOf(s.Thresholds, o.Strategy)))
		}
	}
	return cli.WriteTable(p.w, header, rows)
}

func star(on bool) string {
	if on {
		return "*"
	}
	return ""
}

// keptOf counts the thresholds that a strategy's runs kept.
func keptOf(all []batch.Verdict, strategy string) string {
	kept, asked := 0, 0
	for _, v := range all {
		if v.Strategy == strategy {
			asked++
			if v.Kept {
				kept++
			}
		}
	}
	if asked == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %d kept", kept, asked)
}

// writeCSV writes a row per run, and one per budget of each: parts as parts,
// times in seconds.
func writeCSV(w io.Writer, out *batch.Report) error {
	c := csv.NewWriter(w)
	var fields []string
	for _, s := range out.Scenarios {
		for _, set := range s.Sweep {
			if !slices.Contains(fields, set.Field) {
				fields = append(fields, set.Field)
			}
		}
	}
	header := append([]string{"file"}, fields...)
	header = append(header, "strategy", "seed", "budget")
	for _, m := range scenario.Measures() {
		header = append(header, string(m))
	}
	if err := c.Write(header); err != nil {
		return err
	}
	for _, s := range out.Scenarios {
		for _, o := range s.Outcomes {
			for _, r := range o.Runs {
				names := []string{""}
				for i := range r.Budgets {
					names = append(names, r.Budgets[i].Name)
				}
				for _, budget := range names {
					if err := c.Write(csvRow(s, fields, o.Strategy, r, budget)); err != nil {
						return err
					}
				}
			}
		}
	}
	c.Flush()
	return c.Error()
}

func csvRow(s batch.Scenario, fields []string, strategy string, r *sim.Result, budget string) []string {
	row := []string{s.File}
	for _, f := range fields {
		value := ""
		for _, set := range s.Sweep {
			if set.Field == f {
				value = set.Value
			}
		}
		row = append(row, value)
	}
	row = append(row, strategy, strconv.FormatUint(r.Seed, 10), budget)
	for _, m := range scenario.Measures() {
		v, text := m.Of(r, scenario.Where{Budget: budget}), ""
		if !math.IsNaN(v) {
			text = strconv.FormatFloat(v, 'g', -1, 64)
		}
		row = append(row, text)
	}
	return row
}
