package batch

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/scenario"
)

// Job is one scenario to run.
type Job struct {
	Scenario   *scenario.Scenario
	Strategies []sim.Strategy
	Seeds      []uint64
	// Asked are expectations without a strategy of their own put to the runs of;
	// sim.AsWritten for those of the scenario's native strategy.
	Asked sim.Strategy
}

// Runs is how many runs a job makes.
func (j Job) Runs() int { return len(j.Strategies) * len(j.Seeds) }

// Options of Run.
type Options struct {
	// Parallel is how many runs there are at a time; below 1 takes 1.
	Parallel int
	// Series keeps the course of each strategy's first run.
	Series bool
	// Progress is told, by any goroutine, how many runs have finished and what
	// part of all simulated time has passed; may be nil.
	Progress func(finished int, part float64)
}

// task is one run.
type task struct {
	job, strategy, seed int
	result              *sim.Result
	err                 error
}

// Run runs the jobs. When ctx ends, runs under way end too, and what was
// finished is reported. The error says which run could not be made.
func Run(ctx context.Context, jobs []Job, o Options) (*Report, error) {
	tasks := spread(jobs)
	p := newMeter(jobs, o.Progress)
	next := make(chan *task)
	var workers sync.WaitGroup
	for range max(1, o.Parallel) {
		workers.Go(func() {
			for t := range next {
				t.run(ctx, jobs[t.job], o.Series, p)
			}
		})
	}
	for i := range tasks {
		if ctx.Err() != nil {
			break
		}
		next <- &tasks[i]
	}
	close(next)
	workers.Wait()
	for _, t := range tasks {
		if t.err != nil {
			j := jobs[t.job]
			return nil, fmt.Errorf("%s, %s, seed %d: %w", j.Scenario.File,
				scenario.StrategyName(j.Strategies[t.strategy]), j.Seeds[t.seed], t.err)
		}
	}
	return report(jobs, tasks), nil
}

// spread lists the runs of all jobs: each strategy's first seed before any
// second one, so that an interrupted batch can compare strategies.
func spread(jobs []Job) []task {
	var tasks []task
	for j, job := range jobs {
		for seed := range job.Seeds {
			for strategy := range job.Strategies {
				tasks = append(tasks, task{job: j, strategy: strategy, seed: seed})
			}
		}
	}
	return tasks
}

func (t *task) run(ctx context.Context, j Job, series bool, p *meter) {
	options, err := j.Scenario.Options(j.Strategies[t.strategy], j.Seeds[t.seed])
	if err != nil {
		t.err = err
		return
	}
	if !series || t.seed > 0 {
		options.Points = 0
	}
	passed := time.Duration(0)
	options.Progress = func(now time.Duration) {
		p.add(now-passed, 0)
		passed = now
	}
	result, err := sim.Run(ctx, options)
	if err != nil {
		t.err = err
		return
	}
	if result.Done < result.Length && ctx.Err() != nil {
		return // interrupted: half a run is none
	}
	t.result = result
	p.add(options.Length-passed, 1)
}

// meter adds up the progress of all runs.
type meter struct {
	all      time.Duration
	done     atomic.Int64
	finished atomic.Int64
	tell     func(int, float64)
}

func newMeter(jobs []Job, tell func(int, float64)) *meter {
	m := &meter{tell: tell}
	for _, j := range jobs {
		m.all += j.Scenario.Length() / time.Millisecond * time.Duration(j.Runs())
	}
	return m
}

func (m *meter) add(d time.Duration, runs int64) {
	done, finished := m.done.Add(int64(d)), m.finished.Add(runs)
	if m.tell != nil && m.all > 0 {
		m.tell(int(finished), float64(done)/float64(time.Millisecond)/float64(m.all))
	}
}
