package main

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/policy/file"
)

//go:embed budgets.dev.yaml
var demoBudgets []byte

type devFlags struct {
	env    environment
	files  *[]string
	host   string
	port   int
	rtt    []string
	length time.Duration
	load   bool
	level  cli.Level
}

func devCommand(env environment) *cobra.Command {
	f := &devFlags{env: env}
	cmd := &cobra.Command{
		Use: "dev", Short: "Run everything in one process, embedded", Args: cobra.NoArgs,
		Long: `Run everything in one process, embedded: a ledger in memory, an allocator, and
three regions with an agent and a store each, at simulated distances. It prints
where to ask for decisions and serves until interrupted. Nothing is kept.

With --load it drives a load through all regions that asks for more than each
limit allows and moves from region to region, and then says what was admitted
against what was promised; the exit code is 1 if a promise broke.`,
		Example: cli.Examples(
			"allocator dev",
			"allocator dev --for 10s --load",
			"allocator dev -f budgets.yaml --rtt us=5ms --rtt eu=90ms --port 0"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context()) },
	}
	f.files = filesFlag(cmd)
	flags := cmd.Flags()
	flags.StringVar(&f.host, "host", "127.0.0.1", "address to listen on")
	flags.IntVar(&f.port, "port", 7700, "first port: the allocator's; each region's are 10 further on; 0 takes any free ones")
	flags.StringArrayVar(&f.rtt, "rtt", nil, "region=round trip to the allocator, once per region (default us=20ms, eu=80ms, ap=200ms)")
	flags.DurationVar(&f.length, "for", 0, "end after this long; 0 serves until interrupted")
	flags.BoolVar(&f.load, "load", false, "drive a shifting load, for --for or 10s, and measure what is admitted")
	f.level.Level = 4 // warnings: what it serves is printed
	flags.Var(&f.level, "log-level", "debug, info, warn or error")
	return cmd
}

func (f *devFlags) run(ctx context.Context) error {
	options, err := f.options()
	if err != nil {
		return err
	}
	cli.TuneCollector()
	dev := app.NewDev(options)
	if err := dev.Start(ctx); err != nil {
		return cli.Unreachable(err)
	}
	f.introduce(dev, options)
	broken := f.serve(ctx, dev)
	// The context may have ended; ending has a deadline of its own.
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 15*time.Second)
	defer cancel()
	if err := dev.Stop(end); err != nil {
		return cli.Fail(err)
	}
	return broken
}

func (f *devFlags) options() (app.DevOptions, error) {
	out := app.DevOptions{Host: f.host, Port: f.port, Log: cli.NewLog(f.env.err, f.level.Level)}
	if f.length < 0 || f.port < 0 || f.port > 65_000 {
		return out, cli.Usagef("--for must not be negative, and --port 0 to 65000")
	}
	var err error
	if out.Regions, err = devRegions(f.rtt); err != nil {
		return out, err
	}
	if len(*f.files) > 0 {
		out.Budgets, err = file.Load(policy.DefaultDeployment(), *f.files...)
	} else {
		out.Budgets, err = file.Parse(policy.DefaultDeployment(), file.Source{Name: "the demo budgets", Data: demoBudgets})
	}
	return out, err
}

// devRegions reads --rtt flags.
func devRegions(flags []string) ([]app.DevRegion, error) {
	if len(flags) == 0 {
		return app.DefaultDevRegions(), nil
	}
	var regions []app.DevRegion
	for _, s := range flags {
		name, text, _ := strings.Cut(s, "=")
		rtt, err := policy.ParseDuration(text)
		if err != nil || policy.CheckName(name) != "" || rtt < 0 || rtt > 2*time.Second {
			return nil, cli.Usagef("--rtt %q: write region=duration, at most 2s, as in us=20ms", s)
		}
		if slices.ContainsFunc(regions, func(r app.DevRegion) bool { return r.Name == name }) {
			return nil, cli.Usagef("--rtt names the region %q twice", name)
		}
		regions = append(regions, app.DevRegion{Name: name, RTT: rtt})
	}
	if len(regions) > policy.MaxRegions {
		return nil, cli.Usagef("--rtt names %d regions, at most %d are allowed", len(regions), policy.MaxRegions)
	}
	return regions, nil
}

// introduce prints the addresses, the budgets, and a line to paste.
func (f *devFlags) introduce(dev *app.Dev, options app.DevOptions) {
	w := f.env.out
	rows := [][]any{{"allocator", "", dev.Allocator().GRPCAddr(), "http://" + dev.Allocator().HTTPAddr()}}
	for i, a := range dev.Agents() {
		rows = append(rows, []any{a.Region(), options.Regions[i].RTT.String(), a.GRPCAddr(), "http://" + a.HTTPAddr()})
	}
	_ = cli.WriteTable(w, []string{"Server", "Round trip", "gRPC", "HTTP"}, rows)
	fmt.Fprintln(w)
	rows = nil
	for _, b := range options.Budgets {
		rows = append(rows, []any{b.Name, file.Limit(b.Contract), string(b.Strategy), promise(b)})
	}
	_ = cli.WriteTable(w, []string{"Budget", "Limit", "Strategy", "Over-admission"}, rows)
	if len(options.Budgets) > 0 {
		fmt.Fprintf(w, "\nAsk for a decision:\n\n  %s\n\n", curl(dev.Agents()[0].HTTPAddr(), options.Budgets[0]))
	}
}

// promise is what the owner accepts, in words.
func promise(b policy.Budget) string {
	if b.OverAdmission.Within > 0 {
		return fmt.Sprintf("%s %% within %s: float %d", policy.FormatPercent(b.OverAdmission.MilliPercent),
			policy.FormatDuration(b.OverAdmission.Within), b.Float)
	}
	if b.Strategy == policy.Independent {
		return fmt.Sprintf("%d times the limit", len(b.Regions))
	}
	return fmt.Sprintf("float %d", b.Float)
}

// curl is a line for a shell that asks about one budget.
func curl(addr string, b policy.Budget) string {
	type pair struct {
		Key   string `json:"key"`
		Value string `json:"value"`
	}
	body := map[string]any{"cost": 1}
	if len(b.Match) == 0 {
		body["budgets"] = []string{b.Name}
	} else {
		var pairs []pair
		for k, v := range b.Match {
			pairs = append(pairs, pair{k, v})
		}
		slices.SortFunc(pairs, func(x, y pair) int { return strings.Compare(x.Key, y.Key) })
		body["descriptors"] = pairs
	}
	text, err := json.Marshal(body)
	if err != nil {
		panic(err) // names and numbers only
	}
	quoted := "'" + strings.ReplaceAll(string(text), "'", `'\''`) + "'"
	return fmt.Sprintf("curl -s -H 'Content-Type: application/json' http://%s/v1/limits:check -d %s", addr, quoted)
}

// serve waits, or drives the load and reports.
func (f *devFlags) serve(ctx context.Context, dev *app.Dev) error {
	if !f.load {
		if f.length > 0 {
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeout(ctx, f.length)
			defer cancel()
		} else {
			fmt.Fprintln(f.env.out, "Serving until interrupted (Ctrl-C).")
		}
		<-ctx.Done()
		return nil
	}
	length := f.length
	if length == 0 {
		length = 10 * time.Second
	}
	fmt.Fprintf(f.env.out, "Driving a load for %s.\n\n", length)
	report := dev.Load(ctx, length)
	printLoad(f.env.out, report)
	if !report.Kept() {
		return cli.Failf("a promise broke: see above")
	}
	return nil
}

func printLoad(w io.Writer, r app.LoadReport) {
	var rows [][]any
	for _, c := range r.Regions {
		rows = append(rows, []any{c.Region, c.Demand, c.Admitted, c.Denied, c.Undecided, c.Leases, int64(c.Held)})
	}
	_ = cli.WriteTable(w, []string{"Region", "Demand", "Admitted", "Denied", "Undecided", "Leases", "Tokens held"}, rows)
	fmt.Fprintln(w)
	rows = nil
	for _, m := range r.Budgets {
		for i, e := range m.Worst {
			verdict := "kept"
			if e.Tokens > m.Promised[i] {
				verdict = "BROKEN"
			}
			rows = append(rows, []any{m.Budget.Name, int64(m.Admitted), windowName(m.Budget, e.Window), over(int64(e.Tokens)), int64(m.Promised[i]), int64(m.Late), verdict})
		}
	}
	_ = cli.WriteTable(w, []string{"Budget", "Admitted", "Window", "Measured over", "Promised at most", "Of it timing", "Promise"}, rows)
	fmt.Fprint(w, "\n\"Measured over\" is the most that was admitted above burst + rate·window in any such\nwindow. \"Of it timing\" is by what the longest admission lets the measurement err.\n")
}

func windowName(b policy.Budget, w time.Duration) string {
	switch {
	case b.Contract.IsQuota():
		return string(b.Contract.Quota.Per)
	case w == 0:
		return "any"
	}
	return policy.FormatDuration(w)
}

// over writes an excess; below the limit there is none.
func over(n int64) string {
	if n < 0 {
		return fmt.Sprintf("0 (%d left)", -n)
	}
	return fmt.Sprint(n)
}
