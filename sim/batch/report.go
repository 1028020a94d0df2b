package batch

import (
	"encoding/json"
	"math"
	"time"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/scenario"
)

// Report is what came out of all jobs, in their order.
type Report struct {
	Planned  int `json:"planned_runs"`
	Finished int `json:"finished_runs"`
	// Failed is how many thresholds were not kept.
	Failed    int        `json:"failed_thresholds"`
	Scenarios []Scenario `json:"scenarios"`
}

// Scenario is what came out of one job.
type Scenario struct {
	File     string             `json:"file"`
	Title    string             `json:"title"`
	Question string             `json:"question,omitempty"`
	Sweep    []scenario.Setting `json:"sweep,omitempty"`
	Length   time.Duration      `json:"length"`
	// Step is the bulk arrival step, 0 for request by request.
	Step       time.Duration `json:"bulk_step,omitempty"`
	Outcomes   []Outcome     `json:"outcomes"`
	Thresholds []Verdict     `json:"thresholds,omitempty"`
	Native     string        `json:"strategy"`
}

// Outcome is what came out with one strategy.
type Outcome struct {
	Strategy string        `json:"strategy"`
	Summary  []Estimate    `json:"summary"`
	Runs     []*sim.Result `json:"runs"`
	// Pareto is set in a sweep where no other outcome of the same file is at
	// least as good in utilisation, false denials, RPCs and bound, and better in
	// one of them.
	Pareto bool `json:"pareto,omitempty"`
}

// Of returns the estimate of a measure.
func (o Outcome) Of(m scenario.Measure) Estimate {
	for _, e := range o.Summary {
		if e.Measure == m {
			return e
		}
	}
	nan := Number(math.NaN())
	return Estimate{Measure: m, Mean: nan, Low: nan, High: nan, Least: nan, Most: nan}
}

// Estimate is a measure over the runs of an outcome.
type Estimate struct {
	Measure scenario.Measure `json:"measure"`
	Mean    Number           `json:"mean"`
	// Low and High are the 95 % confidence interval of the mean (Student's t);
	// both are the mean for a single run.
	Low  Number `json:"low"`
	High Number `json:"high"`
	// Least and Most are the extremes.
	Least Number `json:"least"`
	Most  Number `json:"most"`
}

// Verdict is a threshold and what came of it.
type Verdict struct {
	Text     string `json:"text"`
	Place    string `json:"place"`
	Strategy string `json:"strategy"`
	Kept     bool   `json:"kept"`
	// Value is the mean, or that of the run which is farthest from the limit,
	// with its Seed.
	Value Number `json:"value"`
	Seed  uint64 `json:"seed,omitempty"`
	// Shown is Value in the measure's unit.
	Shown string `json:"shown"`
}

// Number is a float that JSON can carry: what is not finite becomes null.
type Number float64

// MarshalJSON implements json.Marshaler.
func (n Number) MarshalJSON() ([]byte, error) {
	if math.IsNaN(float64(n)) || math.IsInf(float64(n), 0) {
		return []byte("null"), nil
	}
	return json.Marshal(float64(n))
}

func report(jobs []Job, tasks []task) *Report {
	out := &Report{Scenarios: make([]Scenario, len(jobs))}
	results := make([][][]*sim.Result, len(jobs))
	for i, j := range jobs {
		results[i] = make([][]*sim.Result, len(j.Strategies))
		out.Planned += j.Runs()
	}
	for _, t := range tasks {
		if t.result != nil {
			out.Finished++
			results[t.job][t.strategy] = append(results[t.job][t.strategy], t.result)
		}
	}
	for i, j := range jobs {
		out.Scenarios[i] = summed(j, results[i])
		for _, v := range out.Scenarios[i].Thresholds {
			if !v.Kept {
				out.Failed++
			}
		}
	}
	pareto(out.Scenarios)
	return out
}

func summed(j Job, results [][]*sim.Result) Scenario {
	s := j.Scenario
	out := Scenario{
		File: s.File, Title: s.Title, Question: s.Question, Sweep: s.Sweep, Length: s.Length(), Step: s.Step(),
		Native: scenario.StrategyName(s.Native()),
	}
	for i, strategy := range j.Strategies {
		if len(results[i]) == 0 {
			continue
		}
		o := Outcome{Strategy: scenario.StrategyName(strategy), Runs: results[i]}
		for _, m := range scenario.Measures() {
			o.Summary = append(o.Summary, estimate(m, results[i]))
		}
		out.Outcomes = append(out.Outcomes, o)
		out.Thresholds = append(out.Thresholds, judge(j, strategy, results[i])...)
	}
	return out
}

// judge puts the scenario's thresholds to the runs of a strategy.
func judge(j Job, strategy sim.Strategy, runs []*sim.Result) []Verdict {
	var all []Verdict
	native := j.Scenario.Native()
	if j.Asked != sim.AsWritten {
		native = j.Asked
	}
	for _, e := range j.Scenario.Expect {
		if !e.For(strategy, native) {
			continue
		}
		v := Verdict{Text: e.Text(), Place: place(e), Strategy: scenario.StrategyName(strategy), Kept: true}
		if e.Mean {
			sum := 0.0
			for _, r := range runs {
				sum += e.Value(r)
			}
			v.Value = Number(sum / float64(len(runs)))
			v.Kept = e.Kept(float64(v.Value))
		} else {
			v.worst(e, runs)
		}
		v.Shown = e.Measure.Format(float64(v.Value))
		all = append(all, v)
	}
	return all
}

// worst takes the run that is farthest on the wrong side, or nearest to it.
func (v *Verdict) worst(e scenario.Expectation, runs []*sim.Result) {
	v.Value = Number(math.NaN())
	for _, r := range runs {
		x := e.Value(r)
		worse := math.IsNaN(float64(v.Value)) || math.IsNaN(x)
		if e.AtLeast != nil && x < float64(v.Value) || e.AtMost != nil && x > float64(v.Value) {
			worse = true
		}
		kept := e.Kept(x)
		if v.Kept && !kept || worse && v.Kept == kept {
			v.Value, v.Seed = Number(x), r.Seed
		}
		v.Kept = v.Kept && kept
	}
}
