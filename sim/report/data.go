package report

import (
	"fmt"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
)

// data is what the page's script draws. Times are in seconds, amounts in
// tokens per point.
type data struct {
	Scenarios []course `json:"scenarios"`
	Sweeps    [][]dot  `json:"sweeps"`
}

type course struct {
	Length  float64      `json:"length"`
	Marks   []mark       `json:"marks"`
	Budgets []budgetData `json:"budgets"`
}

type mark struct {
	At    float64 `json:"at"`
	Until float64 `json:"until"`
	Text  string  `json:"text"`
}

type budgetData struct {
	Name  string `json:"name"`
	Views []view `json:"views"`
}

// view is a budget's course with one strategy.
type view struct {
	Name    string         `json:"name"`
	Every   float64        `json:"every"`
	Offered []lease.Tokens `json:"offered"`
	// Admitted, Ideal, Allowed as in sim.Series; Most is what a point may have
	// at most: rate, burst and promised excess.
	Admitted []lease.Tokens `json:"admitted"`
	Ideal    []lease.Tokens `json:"ideal"`
	Allowed  []lease.Tokens `json:"allowed"`
	Most     []lease.Tokens `json:"most"`
	Regions  []regionView   `json:"regions"`
}

type regionView struct {
	Name     string         `json:"name"`
	Offered  []lease.Tokens `json:"offered"`
	Admitted []lease.Tokens `json:"admitted"`
	Ideal    []lease.Tokens `json:"ideal"`
	Leases   []held         `json:"leases"`
}

// held is what a region holds of one kind of lease; null where it has none.
type held struct {
	Kind string          `json:"kind"`
	Held []*lease.Tokens `json:"held"`
}

// dot is one point of a sweep.
type dot struct {
	Name   string       `json:"name"`
	X      batch.Number `json:"x"`
	Y      batch.Number `json:"y"`
	Pareto bool         `json:"pareto"`
}

// charts adds the courses of the leading budgets.
func (p *part) charts(s batch.Scenario, d *data) {
	c := course{Length: s.Length.Seconds(), Marks: []mark{}, Budgets: []budgetData{}}
	if len(s.Outcomes) == 0 {
		d.Scenarios = append(d.Scenarios, c)
		return
	}
	first := s.Outcomes[0].Runs[0]
	for _, m := range first.Marks {
		until := m.Until
		if until > s.Length {
			until = s.Length
		}
		c.Marks = append(c.Marks, mark{m.At.Seconds(), until.Seconds(), m.Text})
	}
	for _, b := range leading(first) {
		p.course(s, b, &c)
	}
	if more := len(first.Budgets) - mostBudgets; more > 0 && len(p.Charts) > 0 {
		p.Omitted = fmt.Sprintf("The %d budgets with the most demand are shown; %d more are in the measures.", mostBudgets, more)
	}
	d.Scenarios = append(d.Scenarios, c)
}

func (p *part) course(s batch.Scenario, b *sim.BudgetResult, c *course) {
	out := budgetData{Name: b.Name}
	allowed, burst := contract(s, b.Name)
	for i, o := range s.Outcomes {
		for k := range o.Runs[0].Budgets {
			same := &o.Runs[0].Budgets[k]
			if same.Name == b.Name && same.Series != nil {
				out.Views = append(out.Views, viewOf(same.Series, p.Strategies[i], allowed, burst))
			}
		}
	}
	if len(out.Views) != len(s.Outcomes) {
		return // runs without series
	}
	own := chart{Number: len(c.Budgets), Budget: b.Name, Contract: b.Contract}
	for _, r := range b.Regions {
		own.Regions = append(own.Regions, r.Name)
	}
	own.Table = courseTable(out.Views[p.Shown])
	p.Charts = append(p.Charts, own)
	c.Budgets = append(c.Budgets, out)
}

// contract finds what the contract allowed over time: yardsticks do not note
// it.
func contract(s batch.Scenario, name string) (allowed, burst []lease.Tokens) {
	for _, o := range s.Outcomes {
		for _, b := range o.Runs[0].Budgets {
			if b.Name == name && b.Series != nil && slices.Max(b.Series.Burst) > 0 {
				return b.Series.Allowed, b.Series.Burst
			}
		}
	}
	return nil, nil
}

func viewOf(s *sim.Series, name string, allowed, burst []lease.Tokens) view {
	v := view{
		Name: name, Every: s.Every.Seconds(), Offered: s.Offered, Admitted: s.Admitted, Ideal: s.Ideal,
		Allowed: allowed, Most: []lease.Tokens{}, Regions: []regionView{},
	}
	if allowed == nil {
		v.Allowed = []lease.Tokens{}
	}
	for i := range burst {
		v.Most = append(v.Most, allowed[i]+burst[i]+s.Bound)
	}
	for _, r := range s.Regions {
		one := regionView{Name: r.Name, Offered: r.Offered, Admitted: r.Admitted, Ideal: r.Ideal, Leases: []held{}}
		for k, kind := range [...]string{"reserve", "paced", "lump"} {
			one.Leases = append(one.Leases, held{kind, alive(r.Held[k], r.Alive[k])})
		}
		v.Regions = append(v.Regions, one)
	}
	return v
}

func alive(tokens []lease.Tokens, live []bool) []*lease.Tokens {
	out := make([]*lease.Tokens, len(tokens))
	for i := range tokens {
		if live[i] {
			out[i] = &tokens[i]
		}
	}
	return out
}

// tableRows is how many rows a chart has as a table.
const tableRows = 24

// courseTable is a chart in numbers, in tokens a second.
func courseTable(v view) table {
	t := table{
		Caption: "Tokens a second with strategy " + v.Name, Header: []string{"From", "Demand", "Admitted", "Ideal"}, Numbers: []int{1, 2, 3},
	}
	for _, r := range v.Regions {
		t.Numbers = append(t.Numbers, len(t.Header))
		t.Header = append(t.Header, "Admitted in "+r.Name)
	}
	step := (len(v.Offered) + tableRows - 1) / tableRows
	for from := 0; from < len(v.Offered); from += step {
		to := min(from+step, len(v.Offered))
		mean := func(list []lease.Tokens) any {
			sum := lease.Tokens(0)
			for _, n := range list[from:to] {
				sum += n
			}
			return fmt.Sprintf("%.4g", float64(sum)/(v.Every*float64(to-from)))
		}
		row := []any{policy.FormatDuration(time.Duration(v.Every*float64(from)*1e3) * time.Millisecond), mean(v.Offered), mean(v.Admitted), mean(v.Ideal)}
		for _, r := range v.Regions {
			row = append(row, mean(r.Admitted))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}
