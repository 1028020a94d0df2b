package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/batch"
	"github.com/ration-dev/ration/sim/report"
	"github.com/ration-dev/ration/sim/scenario"
)

// simulation is what the flags of simulate say.
type simulation struct {
	strategies []string
	sweeps     []string
	seed       uint64
	runs       int
	parallel   int
	html       string
	format     *cli.Format
}

func simulateCommand(env environment) *cobra.Command {
	var s simulation
	cmd := &cobra.Command{
		Use: "simulate FILE...", Short: "Play scenarios: what a limit does before it is applied", Args: cobra.MinimumNArgs(1),
		Long: `Play scenario files in simulated time, with the production code of ledger and
agents: demand, topology, budgets and faults in, and out come utilisation, false
denials, the largest over-admission beside its bound, and how long tokens lay in
the wrong region. A file may have thresholds; exits 1 when one is not kept.

Strategies play the same requests side by side: static, independent, dynamic,
ideal (one bucket that all reach in no time) and writeback (count locally, add up
every second); all means all of them. A sweep tries values of a field, of every
budget (lease.ttl, limit.burst) or of the scenario (topology.commit), and marks
with * what no other point beats in utilisation, false denials, lease RPCs and
bound together.

The same file and seed always give the same result. Interrupted, it shows the
runs that were finished.`,
		Example: cli.Examples(
			"allocator simulate sim/scenarios/failover-at-peak.yaml",
			"allocator simulate sim/scenarios/*.yaml --html report.html",
			"allocator simulate sim/scenarios/flash-crowd.yaml --strategy all --runs 5",
			"allocator simulate sim/scenarios/tiny-five-a-minute.yaml --sweep limit.burst=5,10,20 --sweep wait=0s,200ms -o csv"),
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&s.strategies, "strategy", nil, "strategies to put side by side: all, or some of "+strings.Join(scenario.StrategyWords(), ", ")+" (default the file's)")
	flags.Uint64Var(&s.seed, "seed", 0, "first seed, of one run unless --runs says more (default the file's)")
	flags.IntVar(&s.runs, "runs", 0, "runs with each strategy, with seeds one after the other (default the file's)")
	flags.StringArrayVar(&s.sweeps, "sweep", nil, "FIELD=VALUE,... to try; several make a grid")
	flags.IntVar(&s.parallel, "parallel", runtime.GOMAXPROCS(0), "runs at a time; changes nothing but how long it takes")
	flags.StringVar(&s.html, "html", "", "file to write a report to that opens in a browser, by itself and offline")
	_ = cmd.RegisterFlagCompletionFunc("strategy", cobra.FixedCompletions(append(scenario.StrategyWords(), "all"), cobra.ShellCompDirectiveNoFileComp))
	s.format = cli.OutputFlag(cmd, cli.Table, cli.JSON, cli.CSV)
	cmd.RunE = func(cmd *cobra.Command, files []string) error { return s.run(cmd, env, files) }
	return cmd
}

// collectAt lets the garbage of a run grow to five times its few megabytes of
// live data: collecting more often took a third of a run's time.
const collectAt = 400

func (s *simulation) run(cmd *cobra.Command, env environment, files []string) error {
	jobs, err := s.jobs(cmd, files)
	if err != nil {
		return err
	}
	if s.html != "" {
		if _, err := os.Stat(filepath.Dir(s.html)); err != nil {
			return cli.Usagef("--html: %w", err)
		}
		if at, err := os.Stat(s.html); err == nil && at.IsDir() { // said before the runs, not after
			return cli.Usagef("--html: %s is a directory", s.html)
		}
	}
	ctx := cmd.Context()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectAt)
	}
	bar := newBar(env.err, jobs)
	out, err := batch.Run(ctx, jobs, batch.Options{Parallel: s.parallel, Series: s.html != "", Progress: bar.update})
	bar.stop()
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if err := printReport(cmd.OutOrStdout(), *s.format, out, env); err != nil {
		return err
	}
	if s.html != "" {
		if err := writeHTML(s.html, out); err != nil {
			return err
		}
	}
	return s.verdict(ctx, out)
}

func (s *simulation) verdict(ctx context.Context, out *batch.Report) error {
	switch {
	case ctx.Err() != nil && out.Finished < out.Planned:
		return cli.Failf("interrupted: %d of %d runs were finished", out.Finished, out.Planned)
	case out.Failed > 0:
		return cli.Failf("%s not kept", plural(out.Failed, "threshold"))
	}
	return nil
}

func writeHTML(path string, out *batch.Report) error {
	f, err := os.Create(path)
	if err != nil {
		return cli.Usagef("--html: %w", err)
	}
	if err := report.HTML(f, out); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// mostRuns is the most runs of one command.
const mostRuns = 100_000

func tooManyRuns() error { return cli.Usagef("these are more than %d runs", mostRuns) }

// jobs loads every file at every point of the sweep.
func (s *simulation) jobs(cmd *cobra.Command, files []string) ([]batch.Job, error) {
	if s.runs < 0 || s.runs == 0 && cmd.Flags().Changed("runs") {
		return nil, cli.Usagef("--runs must be above 0")
	}
	if s.runs > mostRuns { // before a list of so many seeds is made
		return nil, tooManyRuns()
	}
	if s.parallel < 1 {
		return nil, cli.Usagef("--parallel must be above 0")
	}
	points, err := s.points()
	if err != nil {
		return nil, err
	}
	var jobs []batch.Job
	runs := 0
	for _, file := range files {
		for _, point := range points {
			job, err := s.job(cmd, file, point)
			if err != nil {
				return nil, err
			}
			if runs += job.Runs(); runs > mostRuns {
				return nil, tooManyRuns()
			}
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

func (s *simulation) job(cmd *cobra.Command, file string, point []scenario.Setting) (batch.Job, error) {
	loaded, err := scenario.Load(file, point...)
	if err != nil {
		return batch.Job{}, cli.Usagef("%w", err)
	}
	job := batch.Job{Scenario: loaded, Strategies: loaded.Strategies, Seeds: s.seeds(cmd, loaded)}
	if len(s.strategies) > 0 {
		if job.Strategies, err = s.chosen(loaded); err != nil {
			return batch.Job{}, err
		}
	}
	if len(job.Strategies) == 1 {
		job.Asked = job.Strategies[0]
	}
	return job, nil
}

func (s *simulation) seeds(cmd *cobra.Command, loaded *scenario.Scenario) []uint64 {
	seeded := cmd.Flags().Changed("seed")
	if !seeded && s.runs == 0 {
		return loaded.Seeds
	}
	first := loaded.Seeds[0]
	if seeded {
		first = s.seed
	}
	seeds := make([]uint64, max(1, s.runs))
	for i := range seeds {
		seeds[i] = first + uint64(i)
	}
	return seeds
}

// chosen reads --strategy. With all, a file whose budgets differ is also
// played as it is written.
func (s *simulation) chosen(loaded *scenario.Scenario) ([]sim.Strategy, error) {
	var out []sim.Strategy
	for _, word := range s.strategies {
		if word == "all" {
			if loaded.Native() == sim.AsWritten {
				out = append(out, sim.AsWritten)
			}
			out = append(out, sim.Strategies()...)
			continue
		}
		one, err := scenario.ParseStrategy(word)
		if err != nil {
			return nil, cli.Usagef("--strategy: %w", err)
		}
		out = append(out, one)
	}
	var distinct []sim.Strategy
	for _, one := range out {
		if !slices.Contains(distinct, one) {
			distinct = append(distinct, one)
		}
	}
	return distinct, nil
}

// mostPoints is the most points of a sweep's grid.
const mostPoints = 1000

// points lists the grid that the sweeps make; one empty point without any.
func (s *simulation) points() ([][]scenario.Setting, error) {
	points, swept := [][]scenario.Setting{nil}, map[string]bool{}
	for _, sweep := range s.sweeps {
		field, list, ok := strings.Cut(sweep, "=")
		if !ok || field == "" || list == "" {
			return nil, cli.Usagef("--sweep %q: write FIELD=VALUE,VALUE as in lease.ttl=1s,5s,20s", sweep)
		}
		if swept[field] {
			return nil, cli.Usagef("--sweep: %s is swept twice: write all its values in one", field)
		}
		swept[field] = true
		values := strings.Split(list, ",")
		if len(points)*len(values) > mostPoints {
			return nil, cli.Usagef("--sweep: the grid has more than %d points", mostPoints)
		}
		var grid [][]scenario.Setting
		for _, point := range points {
			for _, v := range values {
				grid = append(grid, append(slices.Clone(point), scenario.Setting{Field: field, Value: strings.TrimSpace(v)}))
			}
		}
		points = grid
	}
	return points, nil
}
