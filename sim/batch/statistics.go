package batch

import (
	"fmt"
	"math"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/scenario"
)

func place(e scenario.Expectation) string { return fmt.Sprintf("%s:%d", e.File, e.Line) }

// estimate sums up a measure over runs.
func estimate(m scenario.Measure, runs []*sim.Result) Estimate {
	values := make([]float64, len(runs))
	least, most, sum := math.Inf(1), math.Inf(-1), 0.0
	for i, r := range runs {
		values[i] = m.Of(r, scenario.Where{})
		least, most, sum = min(least, values[i]), max(most, values[i]), sum+values[i]
	}
	n := float64(len(values))
	mean := sum / n
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := 0.0
	if len(values) > 1 {
		half = student(len(values)-1) * math.Sqrt(squares/(n-1)/n)
	}
	if math.IsInf(mean, 0) {
		half = 0
	}
	return Estimate{m, Number(mean), Number(mean - half), Number(mean + half), Number(least), Number(most)}
}

// student is the 97.5 % quantile of Student's t with so many degrees of
// freedom, rounded up between those that are listed.
func student(degrees int) float64 {
	quantiles := [...]float64{
		12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
	}
	switch {
	case degrees <= len(quantiles):
		return quantiles[degrees-1]
	case degrees <= 30:
		return 2.086
	case degrees <= 60:
		return 2.042
	case degrees <= 120:
		return 2.000
	}
	return 1.980
}

// goals are what a sweep weighs against one another.
func goals() []scenario.Measure {
	return []scenario.Measure{scenario.Utilisation, scenario.FalseDenials, scenario.RPCs, scenario.Promised}
}

// pareto marks the outcomes of swept scenarios that no other outcome of the
// same file beats. Yardsticks do not take part: they have no bound to weigh.
func pareto(scenarios []Scenario) {
	for i := range scenarios {
		if len(scenarios[i].Sweep) == 0 {
			continue
		}
		for k := range scenarios[i].Outcomes {
			o := &scenarios[i].Outcomes[k]
			o.Pareto = !yardstick(o.Strategy) && !beaten(o, scenarios, scenarios[i].File)
		}
	}
}

func yardstick(strategy string) bool {
	return strategy == scenario.StrategyName(sim.Central) || strategy == scenario.StrategyName(sim.CountLocally)
}

func beaten(o *Outcome, scenarios []Scenario, file string) bool {
	for i := range scenarios {
		if scenarios[i].File != file {
			continue
		}
		for k := range scenarios[i].Outcomes {
			other := &scenarios[i].Outcomes[k]
			if other != o && !yardstick(other.Strategy) && beats(other, o) {
				return true
			}
		}
	}
	return false
}

// beats reports whether a is as good as b everywhere and better somewhere.
func beats(a, b *Outcome) bool {
	better := false
	for _, m := range goals() {
		x, y := float64(a.Of(m).Mean), float64(b.Of(m).Mean)
		if m.Better() < 0 {
			x, y = -x, -y
		}
		if x < y {
			return false
		}
		better = better || x > y
	}
	return better
}
