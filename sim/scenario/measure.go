package scenario

import (
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// Measure names one number of a result.
type Measure string

// The measures. Of several budgets, parts are of their sum and everything
// else is the worst budget's.
const (
	Utilisation    Measure = "utilisation"
	FalseDenials   Measure = "false_denials"
	Denied         Measure = "denied"
	Unavailable    Measure = "unavailable"
	OverAdmission  Measure = "over_admission"
	OfBound        Measure = "of_bound"
	Lifetime       Measure = "lifetime_over_admission"
	LifetimeBound  Measure = "of_lifetime_bound"
	RPCs           Measure = "rpcs_per_1000"
	Rebalance      Measure = "rebalance_mean"
	RebalanceWorst Measure = "rebalance_worst"
	Unbalanced     Measure = "unbalanced"
	LongestDenied  Measure = "longest_denied"
	Stranded       Measure = "stranded_mean"
	StrandedMost   Measure = "stranded_most"
	HeldMost       Measure = "held_most"
	Jain           Measure = "jain"
	Local          Measure = "local_tokens"
	Admitted       Measure = "admitted_tokens"
	Unexplained    Measure = "unexplained"
	Violations     Measure = "violations"
	Promised       Measure = "bound"
)

// unit is what a measure counts.
type unit int

const (
	ratioUnit   unit = iota // a part of the whole, written in percent
	tokenUnit               // tokens, or a count
	secondsUnit             // seconds
	numberUnit              // a plain number
)

// Where narrows what is measured; its zero value is everything.
type Where struct {
	Budget, Region string
	// Window is that of over-admission, 0 for any.
	Window time.Duration
}

type definition struct {
	measure Measure
	label   string
	unit    unit
	// better is 1 where more is better, -1 where less is, 0 where neither.
	better int
	// tally measures requests, of anything that has a Tally; else budget
	// measures one budget and the worst counts; else whole measures the run.
	tally  func(sim.Tally) float64
	budget func(*sim.BudgetResult, Where) float64
	whole  func(*sim.Result) float64
}

func definitions() []definition {
	return []definition{
		{Utilisation, "utilisation", ratioUnit, 1, sim.Tally.Utilisation, nil, nil},
		{FalseDenials, "false denials", ratioUnit, -1, sim.Tally.FalseDenialRate, nil, nil},
		{Denied, "denied", ratioUnit, 0, func(t sim.Tally) float64 { return part(t.Denied, t.Offered) }, nil, nil},
		{Unavailable, "unavailable", ratioUnit, -1, func(t sim.Tally) float64 { return part(t.Unavailable, t.Offered) }, nil, nil},
		{OverAdmission, "over-admission", tokenUnit, -1, nil, over, nil},
		{Promised, "bound of over-admission", tokenUnit, -1, nil, promised, nil},
		{OfBound, "over-admission of its bound", ratioUnit, -1, nil, ofBound, nil},
		{Lifetime, "over-admission since the start", tokenUnit, -1, nil, tokens(func(b *sim.BudgetResult) lease.Tokens { return b.Lifetime }), nil},
		{LifetimeBound, "over-admission since the start of its bound", ratioUnit, -1, nil, ofLifetimeBound, nil},
		{RPCs, "lease RPCs per 1000 decisions", numberUnit, -1, nil, nil, func(r *sim.Result) float64 { return r.RPCsPer1000 }},
		{Rebalance, "rebalance, mean", secondsUnit, -1, nil, lasting(func(b *sim.BudgetResult) time.Duration { return b.RebalanceMean }), nil},
		{RebalanceWorst, "rebalance, worst", secondsUnit, -1, nil, lasting(func(b *sim.BudgetResult) time.Duration { return b.RebalanceWorst }), nil},
		{Unbalanced, "moves never balanced", tokenUnit, -1, nil, func(b *sim.BudgetResult, _ Where) float64 { return float64(b.Unbalanced) }, nil},
		{LongestDenied, "longest denial while tokens lay elsewhere", secondsUnit, -1, nil, longestDenied, nil},
		{Stranded, "stranded tokens, mean", numberUnit, -1, nil, func(b *sim.BudgetResult, _ Where) float64 { return b.StrandedMean }, nil},
		{StrandedMost, "stranded tokens, most", tokenUnit, -1, nil, tokens(func(b *sim.BudgetResult) lease.Tokens { return b.StrandedMost }), nil},
		{HeldMost, "held by regions, most", tokenUnit, 0, nil, tokens(func(b *sim.BudgetResult) lease.Tokens { return b.HeldMost }), nil},
		{Jain, "fairness (Jain)", numberUnit, 1, nil, func(b *sim.BudgetResult, _ Where) float64 { return b.Jain }, nil},
		{Local, "admitted without a lease", tokenUnit, 0, func(t sim.Tally) float64 { return float64(t.LocalTokens) }, nil, nil},
		{Admitted, "admitted tokens", tokenUnit, 0, func(t sim.Tally) float64 { return float64(t.AdmittedTokens) }, nil, nil},
		{Unexplained, "over-admission without a cause", tokenUnit, -1, nil, unexplained, nil},
		{Violations, "broken invariants", tokenUnit, -1, nil, nil, func(r *sim.Result) float64 { return float64(len(r.Found)) }},
	}
}

func (m Measure) definition() definition {
	for _, d := range definitions() {
		if d.measure == m {
			return d
		}
	}
	return definition{measure: m, label: string(m), unit: numberUnit, whole: func(*sim.Result) float64 { return math.NaN() }}
}

// Measures lists all, in the order in which they are shown.
func Measures() []Measure {
	var all []Measure
	for _, d := range definitions() {
		all = append(all, d.measure)
	}
	return all
}

// ParseMeasure reads a measure's name.
func ParseMeasure(word string) (Measure, error) {
	var words []string
	for _, m := range Measures() {
		if string(m) == word {
			return m, nil
		}
		words = append(words, string(m))
	}
	return "", fmt.Errorf("is %q, which is no measure%s", yamlfile.Clip(word), yamlfile.Suggestion(word, words))
}

// Label is the measure in words.
func (m Measure) Label() string { return m.definition().label }

// Better is 1 where more is better, -1 where less is, 0 where neither.
func (m Measure) Better() int { return m.definition().better }

func (m Measure) regional() bool { return m.definition().tally != nil || m == LongestDenied }

// Of measures a run. It is NaN for a budget or region that the run does not
// have.
func (m Measure) Of(r *sim.Result, w Where) float64 {
	d := m.definition()
	if d.whole != nil {
		return d.whole(r)
	}
	if d.tally != nil && w.Budget == "" && w.Region == "" {
		return d.tally(r.Total)
	}
	worst := math.NaN()
	for i := range r.Budgets {
		b := &r.Budgets[i]
		if w.Budget != "" && b.Name != w.Budget {
			continue
		}
		v := d.of(b, w)
		if math.IsNaN(worst) || (d.better > 0) == (v < worst) && v != worst {
			worst = v
		}
	}
	return worst
}

func (d definition) of(b *sim.BudgetResult, w Where) float64 {
	switch {
	case d.tally == nil:
		return d.budget(b, w)
	case w.Region == "":
		return d.tally(b.Tally)
	}
	for _, r := range b.Regions {
		if r.Name == w.Region {
			return d.tally(r.Tally)
		}
	}
	return math.NaN()
}

func part(n, of int64) float64 {
	if of == 0 {
		return 0
	}
	return float64(n) / float64(of)
}

func tokens(of func(*sim.BudgetResult) lease.Tokens) func(*sim.BudgetResult, Where) float64 {
	return func(b *sim.BudgetResult, _ Where) float64 { return float64(of(b)) }
}

func lasting(of func(*sim.BudgetResult) time.Duration) func(*sim.BudgetResult, Where) float64 {
	return func(b *sim.BudgetResult, _ Where) float64 { return of(b).Seconds() }
}

// window finds what a budget has of the asked window.
func window(b *sim.BudgetResult, w time.Duration) (sim.WindowOver, bool) {
	if w == 0 {
		return b.Any, true
	}
	for _, o := range b.Over {
		if o.W == w {
			return o, true
		}
	}
	return sim.WindowOver{}, false
}

func over(b *sim.BudgetResult, w Where) float64 {
	o, ok := window(b, w.Window)
	if !ok {
		return math.NaN()
	}
	return float64(o.Over)
}

// promised is the bound in a window, by default in the first that is asked of;
// NaN where nothing is promised.
func promised(b *sim.BudgetResult, w Where) float64 {
	for _, o := range b.Over {
		if (w.Window == 0 || o.W == w.Window) && o.Bound >= 0 {
			return float64(o.Bound)
		}
	}
	return math.NaN()
}

// ofBound is the largest part of its bound that a window of the scenario has
// used; a window that overran a bound of 0 counts as infinitely much.
func ofBound(b *sim.BudgetResult, w Where) float64 {
	most := 0.0
	for _, o := range b.Over {
		if w.Window == 0 || o.W == w.Window {
			most = max(most, used(o.Over, o.Bound))
		}
	}
	return most
}

func ofLifetimeBound(b *sim.BudgetResult, _ Where) float64 { return used(b.Lifetime, b.LifetimeBound) }

func used(over, bound lease.Tokens) float64 {
	switch {
	case bound < 0 || over <= 0:
		return 0
	case bound == 0:
		return math.Inf(1)
	}
	return float64(over) / float64(bound)
}

func longestDenied(b *sim.BudgetResult, w Where) float64 {
	if w.Region == "" {
		return b.LongestDenied.Seconds()
	}
	for _, r := range b.Regions {
		if r.Name == w.Region {
			return r.LongestDenied.Seconds()
		}
	}
	return math.NaN()
}

func unexplained(b *sim.BudgetResult, _ Where) float64 {
	sum := lease.Tokens(0)
	for _, c := range b.Causes {
		if c.Name == sim.Unexplained {
			sum += c.Tokens
		}
	}
	return float64(sum)
}

// Parse reads a value in the measure's unit.
func (m Measure) Parse(text string) (float64, error) {
	switch m.definition().unit {
	case ratioUnit:
		return percent(text)
	case secondsUnit:
		d, err := span(0, longest)(text)
		return d.Seconds(), err
	case tokenUnit:
		n, err := policy.ParseTokens(text)
		return float64(n), err
	}
	return number(0, 1e12)(text)
}

// percent reads a part that may be above the whole.
func percent(text string) (float64, error) {
	if n := len(text); n > 1 && text[n-1] == '%' {
		x, err := number(0, 1e6)(text[:n-1])
		return x / 100, err
	}
	return number(0, 1e4)(text)
}

// Format writes a value of the measure for readers.
func (m Measure) Format(v float64) string {
	switch {
	case math.IsNaN(v):
		return "-"
	case math.IsInf(v, 0):
		return "∞"
	}
	switch m.definition().unit {
	case ratioUnit:
		return trimmed(v*100, digits(v*100)) + " %"
	case secondsUnit:
		return formatSpan(time.Duration(math.Round(v*1e3)) * time.Millisecond)
	case tokenUnit:
		return trimmed(v, 0)
	}
	return trimmed(v, 2)
}

// digits shows small percentages, and those near the whole, more finely.
func digits(p float64) int {
	if p < 1 || p > 99 && p < 101 {
		return 3
	}
	return 1
}

func trimmed(v float64, digits int) string {
	scale := math.Pow10(digits)
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}
