package batch_test

import (
	"context"
	"encoding/json"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/scenario"
)

const small = `version: 1
duration: 20s
points: 20
topology:
  regions: {us: {rtt: 20ms}, eu: {rtt: 80ms}}
budgets:
  - {name: a, limit: {rate: 100/s, burst: 100}}
workloads:
  - {name: us, region: us, budget: a, rate: 90/s}
  - {name: eu, region: eu, budget: a, rate: 40/s}
expect:
  - {measure: over_admission, at_most: 0}
  - {measure: utilisation, at_least: 99.999%, of: mean}
  - {measure: utilisation, strategy: static, at_most: 99%}
`

func job(t *testing.T, settings ...scenario.Setting) batch.Job {
	t.Helper()
	s, err := scenario.Parse("a.yaml", []byte(small), settings...)
	if err != nil {
		t.Fatal(err)
	}
	return batch.Job{Scenario: s, Strategies: sim.Strategies(), Seeds: []uint64{1, 2, 3}}
}

func run(t *testing.T, parallel int, jobs ...batch.Job) *batch.Report {
	t.Helper()
	r, err := batch.Run(t.Context(), jobs, batch.Options{Parallel: parallel, Series: true})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// However many runs there are at a time, the report is the same bytes. Seen to
// fail: results appended as runs end.
func TestParallelChangesNothing(t *testing.T) {
	one, err := json.Marshal(run(t, 1, job(t)))
	if err != nil {
		t.Fatal(err)
	}
	four, err := json.Marshal(run(t, 4, job(t)))
	if err != nil || string(one) != string(four) {
		t.Errorf("differ, %v", err)
	}
}

func TestReport(t *testing.T) {
	r := run(t, 2, job(t))
	if r.Planned != 15 || r.Finished != 15 || len(r.Scenarios) != 1 || len(r.Scenarios[0].Outcomes) != 5 {
		t.Fatalf("%+v", r)
	}
	s := r.Scenarios[0]
	if len(s.Thresholds) != 3 || r.Failed != 1 {
		t.Errorf("thresholds %+v", s.Thresholds)
	}
	for _, v := range s.Thresholds {
		failed := strings.Contains(v.Text, "99.999 %")
		if v.Kept == failed || !strings.HasPrefix(v.Place, "a.yaml:") {
			t.Errorf("%+v", v)
		}
	}
	for _, o := range s.Outcomes {
		e := o.Of(scenario.Utilisation)
		if !(e.Least <= e.Mean && e.Mean <= e.Most && e.Low <= e.Mean && e.Mean <= e.High) {
			t.Errorf("%s: %+v", o.Strategy, e)
		}
		for i, run := range o.Runs {
			if (run.Budgets[0].Series != nil) != (i == 0) {
				t.Errorf("%s: run %d has or has not a series", o.Strategy, i)
			}
		}
	}
	if ideal := s.Outcomes[3].Of(scenario.Utilisation); ideal.Mean != 1 || ideal.Low != 1 {
		t.Errorf("the ideal bucket reaches %+v of itself", ideal)
	}
}

// The interval of three known values, by the textbook: 2 ± 4.303·1/√3.
func TestConfidenceInterval(t *testing.T) {
	r := run(t, 2, job(t))
	o := r.Scenarios[0].Outcomes[2]
	var values [3]float64
	for i, run := range o.Runs {
		values[i] = run.Total.Utilisation()
	}
	mean := (values[0] + values[1] + values[2]) / 3
	squares := 0.0
	for _, v := range values {
		squares += (v - mean) * (v - mean)
	}
	half := 4.303 * math.Sqrt(squares/2) / math.Sqrt(3)
	e := o.Of(scenario.Utilisation)
	if math.Abs(float64(e.Mean)-mean) > 1e-12 || math.Abs(float64(e.High-e.Mean)-half) > 1e-12 {
		t.Errorf("%+v, want %v ± %v", e, mean, half)
	}
}

// Points that another beats are not marked, and each file has some that none
// beats.
func TestPareto(t *testing.T) {
	var jobs []batch.Job
	for _, burst := range []string{"20", "100"} {
		j := job(t, scenario.Setting{Field: "limit.burst", Value: burst})
		j.Strategies, j.Seeds = []sim.Strategy{sim.Static, sim.Dynamic}, j.Seeds[:1]
		jobs = append(jobs, j)
	}
	r := run(t, 2, jobs...)
	marked := 0
	for i, s := range r.Scenarios {
		for k, o := range s.Outcomes {
			if o.Pareto {
				marked++
			}
			for ii, other := range r.Scenarios {
				for kk, p := range other.Outcomes {
					better := p.Of(scenario.Utilisation).Mean > o.Of(scenario.Utilisation).Mean && p.Of(scenario.FalseDenials).Mean < o.Of(scenario.FalseDenials).Mean &&
						p.Of(scenario.RPCs).Mean < o.Of(scenario.RPCs).Mean && p.Of(scenario.Promised).Mean <= o.Of(scenario.Promised).Mean
					if o.Pareto && better {
						t.Errorf("%d/%d is marked, but %d/%d is better", i, k, ii, kk)
					}
				}
			}
		}
	}
	if marked == 0 {
		t.Error("nothing is marked")
	}
}

// What was finished when a batch is interrupted is reported, and nothing that
// was half done.
func TestInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var told atomic.Int64
	r, err := batch.Run(ctx, []batch.Job{job(t)}, batch.Options{Parallel: 1, Progress: func(finished int, part float64) {
		told.Add(1)
		if finished == 3 {
			cancel()
		}
		if part < 0 || part > 1 {
			t.Errorf("%v of the whole", part)
		}
	}})
	if err != nil || told.Load() == 0 {
		t.Fatal(err)
	}
	if r.Finished < 3 || r.Finished == r.Planned {
		t.Errorf("%d of %d", r.Finished, r.Planned)
	}
	for _, o := range r.Scenarios[0].Outcomes {
		for _, run := range o.Runs {
			if run.Done != run.Length {
				t.Errorf("%s ran to %v", o.Strategy, run.Done)
			}
		}
	}
}
