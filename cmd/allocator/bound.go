package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ration-dev/ration/errorbound"
	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/policy/file"
)

// boundTool is the bound command.
type boundTool struct {
	base   *policy.Deployment
	rest   errorbound.Deployment
	files  *[]string
	window time.Duration
	atMost share
}

func boundCommand() *cobra.Command {
	t := &boundTool{rest: errorbound.DefaultDeployment()}
	cmd := &cobra.Command{
		Use: "bound -f FILE", Short: "Say what each budget guarantees, before it is applied", Args: cobra.NoArgs,
		Long: `Say what each budget guarantees, before it is applied: the most that it can
admit above its limit in any window, as a sum of named causes with the setting
that makes each of them zero; what its file promises; and what the guarantee
costs. It reads files alone and needs no database.

Faults that are not declared are taken not to happen, and their causes say so:
declare with the flags what your clocks, stores and database may do.

A budget is judged within the window that its file names, or --window. Exit 1
if one cannot keep what its file promises, or no float keeps --at-most.`,
		Example: cli.Examples(
			"allocator bound -f budgets.yaml",
			"allocator bound -f budgets.yaml --window 10s --replicated-stores --store-isolation 5s --store-outage 30s",
			"allocator bound -f budgets.yaml --at-most 5% -o json"),
	}
	t.base = deploymentFlags(cmd)
	t.flags(cmd.Flags())
	t.files = filesFlag(cmd)
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error { return t.run(cmd, *format) }
	return cmd
}

func (t *boundTool) flags(f *pflag.FlagSet) {
	d := &t.rest
	f.DurationVar(&t.window, "window", 2*time.Second, "judge budgets whose file names no window within this one")
	f.Var(&t.atMost, "at-most", "also find the settings for at most this over-admission: tokens, or a percentage as in 5%")
	f.IntVar(&d.Regions, "regions", d.Regions, "regions of budgets that name none")
	f.IntVar(&d.AgentsPerRegion, "agents-per-region", d.AgentsPerRegion, "most agent processes of a region")
	f.Var((*tokenCount)(&d.Prefetch), "prefetch", "most tokens of a budget that one process holds; 0 for the agent's own rule")
	f.IntVar(&d.Suspended, "suspended-processes", d.Suspended, "agent processes whose machines may stand still")
	f.BoolVar(&d.Unfenced, "unfenced-stores", d.Unfenced, "stores forbid INFO in scripts")
	f.DurationVar(&d.StoreLag, "store-lag", d.StoreLag, "how old a store may be that comes back from a replica or a snapshot")
	f.Var((*ratePerTime)(&d.SpendRate), "spend-rate", "fastest that tokens leave one region's wallet, as in 900/s; 0/s for unknown")
	f.IntVar(&d.Failovers, "store-failovers", d.Failovers, "stores that come back old around one window; 0 for one per region")
	f.DurationVar(&d.LedgerStep, "ledger-step", d.LedgerStep, "largest forward step of the database's clock that no replica sees")
	f.DurationVar(&d.StoreStep, "store-step", d.StoreStep, "largest forward step of a store's clock that no agent sees")
	f.DurationVar(&d.CalendarStep, "calendar-step", d.CalendarStep, "largest forward step of the database's clock, seen or not: quotas' windows follow it")
	f.BoolVar(&d.AsyncLedger, "async-ledger", d.AsyncLedger, "a fail-over of the database may lose commits")
	f.DurationVar(&d.RTT, "rtt", d.RTT, "farthest region's round trip to the allocator")
	f.DurationVar(&d.Outage, "allocator-outage", d.Outage, "longest that the allocator may be away, for what that costs")
}

func (t *boundTool) run(cmd *cobra.Command, format cli.Format) error {
	if err := checkDeployment(t.base); err != nil {
		return err
	}
	t.rest.Deployment = *t.base
	budgets, err := t.load()
	if err != nil {
		return err
	}
	views := make([]guarantee, len(budgets))
	for i, b := range budgets {
		if views[i], err = t.view(b); err != nil {
			return err
		}
	}
	err = cli.Print(cmd.OutOrStdout(), format, map[string]any{"budgets": views}, func(w io.Writer) error {
		for i := range views {
			if err := views[i].table(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return cli.Fail(t.failure(views))
}

// failure says which budgets break their files' promises, and which can only
// not be had within --at-most, each with its reason; nil for none.
func (t *boundTool) failure(views []guarantee) error {
	var problems []string
	list := func(what string, why func(*guarantee) string) {
		var named strings.Builder
		n := 0
		for i := range views {
			if reason := why(&views[i]); reason != "" {
				fmt.Fprintf(&named, "\n  %s: %s", cli.Printable(views[i].Budget), reason)
				n++
			}
		}
		if n > 0 {
			problems = append(problems, fmt.Sprintf("%d of %d budgets %s:%s", n, len(views), what, named.String()))
		}
	}
	list("cannot keep what is promised", (*guarantee).broken)
	list("have no settings for --at-most "+t.atMost.text, func(g *guarantee) string { return g.Unfit })
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "\n"))
}

// load reads the files. A percentage that nothing is left of is no bad file
// but a promise that cannot be kept: such a budget is shown without a float.
func (t *boundTool) load() ([]policy.Budget, error) {
	if len(*t.files) == 0 {
		return nil, cli.Usagef("-f is required: a budget file, a directory of them, or -")
	}
	budgets, err := file.Load(*t.base, *t.files...)
	if problems, ok := errors.AsType[file.Errors](err); ok && overdrawn(problems) {
		if budgets, err = t.loadWithoutFloats(); err != nil {
			err = cli.Fail(problems)
		}
	}
	if err == nil && len(budgets) == 0 {
		err = cli.Usagef("the files have no budgets")
	}
	return budgets, err
}

func overdrawn(problems file.Errors) bool {
	return !slices.ContainsFunc(problems, func(p file.Problem) bool { return !strings.HasPrefix(p.Reason, policy.Overdrawn) })
}

// loadWithoutFloats reads the files for a deployment without faults, and gives
// the budgets the float that is left of them in this one.
func (t *boundTool) loadWithoutFloats() ([]policy.Budget, error) {
	if slices.Contains(*t.files, "-") {
		return nil, errors.New("standard input can be read once")
	}
	budgets, err := file.Load(policy.Deployment{}, *t.files...)
	for i, b := range budgets {
		n, err := b.Normalize(*t.base)
		if err != nil {
			n = b
			n.Float = 0
		}
		budgets[i] = n
	}
	return budgets, err
}

// guarantee is what bound shows of one budget.
type guarantee struct {
	Budget   string             `json:"budget" yaml:"budget"`
	Limit    string             `json:"limit" yaml:"limit"`
	Strategy policy.Strategy    `json:"strategy" yaml:"strategy"`
	Window   string             `json:"window" yaml:"window"`
	Contract lease.Tokens       `json:"contract" yaml:"contract"`
	Total    lease.Tokens       `json:"over_admission" yaml:"over_admission"`
	Promised lease.Tokens       `json:"promised" yaml:"promised"`
	Kept     bool               `json:"kept" yaml:"kept"`
	Beyond   []errorbound.Name  `json:"beyond,omitempty" yaml:"beyond,omitempty"`
	Causes   []errorbound.Cause `json:"causes" yaml:"causes"`
	Losses   []cost             `json:"under_admission" yaml:"under_admission"`
	Fit      *fitted            `json:"fit,omitempty" yaml:"fit,omitempty"`
	Unfit    string             `json:"unfit,omitempty" yaml:"unfit,omitempty"`
}

// cost is a Loss as it is shown.
type cost struct {
	Name    string       `json:"name" yaml:"name"`
	Tokens  lease.Tokens `json:"tokens" yaml:"tokens"`
	For     string       `json:"for,omitempty" yaml:"for,omitempty"`
	Formula string       `json:"formula" yaml:"formula"`
	Setting string       `json:"setting" yaml:"setting"`
}

// fitted is what --at-most found.
type fitted struct {
	Float     lease.Tokens `json:"float" yaml:"float"`
	Total     lease.Tokens `json:"over_admission" yaml:"over_admission"`
	TTL       string       `json:"ttl" yaml:"ttl"`
	ShareTTL  string       `json:"share_ttl" yaml:"share_ttl"`
	Guard     string       `json:"guard" yaml:"guard"`
	Heartbeat string       `json:"heartbeat" yaml:"heartbeat"`
	Inventory lease.Tokens `json:"inventory" yaml:"inventory"`
	Prefetch  lease.Tokens `json:"prefetch" yaml:"prefetch"`
	Kind      string       `json:"kind" yaml:"kind"`
}

func (t *boundTool) view(b policy.Budget) (guarantee, error) {
	v, err := errorbound.Judge(b, t.rest, t.window)
	if err != nil {
		return guarantee{}, err
	}
	losses, err := errorbound.Under(b, t.rest)
	if err != nil {
		return guarantee{}, err
	}
	g := guarantee{
		Budget: b.Name, Limit: file.Limit(b.Contract), Strategy: b.Strategy,
		Window: policy.FormatDuration(v.Bound.Window), Contract: v.Bound.Contract, Total: v.Bound.Total,
		Promised: v.Promise.Tokens, Kept: v.Kept, Beyond: v.Beyond, Causes: v.Bound.Causes,
	}
	if b.Contract.IsQuota() {
		g.Window = string(b.Contract.Quota.Per)
	}
	for _, l := range losses {
		c := cost{Name: l.Name, Tokens: l.Tokens, Formula: l.Formula, Setting: l.Setting}
		if l.For > 0 {
			c.For = policy.FormatDuration(l.For)
		}
		g.Losses = append(g.Losses, c)
	}
	return g, t.fit(&g, b, v.Promise.Window)
}

func (t *boundTool) fit(g *guarantee, b policy.Budget, within time.Duration) error {
	if t.atMost.text == "" {
		return nil
	}
	target := t.atMost.target
	target.Within = within
	s, err := errorbound.Fit(b, t.rest, target)
	if unfit, ok := errors.AsType[*errorbound.Unfit](err); ok {
		g.Unfit = unfit.Error()
		return nil
	}
	if err != nil {
		return err
	}
	g.Fit = &fitted{
		Float: s.Float, Total: s.Bound.Total, TTL: policy.FormatDuration(s.TTL), ShareTTL: policy.FormatDuration(s.ShareTTL),
		Guard: policy.FormatDuration(s.Guard), Heartbeat: policy.FormatDuration(s.Heartbeat),
		Inventory: s.Inventory, Prefetch: s.Prefetch, Kind: s.Kind,
	}
	return nil
}

func (g *guarantee) table(w io.Writer) error {
	fmt.Fprintf(w, "%s: %s, %s\n", cli.Printable(g.Budget), g.Limit, g.Strategy)
	fmt.Fprintf(w, "within any %s at most %d + %d; its file promises + %d: %s\n\n", g.Window, g.Contract, g.Total, g.Promised, g.verdict())
	rows := make([][]any, len(g.Causes))
	for i, c := range g.Causes {
		rows[i] = []any{string(c.Name), int64(c.Tokens), c.Formula, c.Zero}
	}
	if err := cli.WriteTable(w, []string{"Over-admission", "Tokens", "Formula", "Zero by"}, rows); err != nil {
		return err
	}
	fmt.Fprintln(w)
	rows = make([][]any, len(g.Losses))
	for i, l := range g.Losses {
		rows[i] = []any{l.Name, int64(l.Tokens), l.For, l.Formula, l.Setting}
	}
	if err := cli.WriteTable(w, []string{"Under-admission", "Tokens", "For", "Formula", "Changed by"}, rows); err != nil {
		return err
	}
	if f := g.Fit; f != nil {
		fmt.Fprintf(w, "\nfit: over_admission: {tokens: %d} keeps it within %d; lease ttl %s, share_ttl %s, guard %s, heartbeat %s; %s from an inventory of %d, prefetch up to %d\n",
			f.Float, f.Total, f.TTL, f.ShareTTL, f.Guard, f.Heartbeat, f.Kind, f.Inventory, f.Prefetch)
	}
	if g.Unfit != "" {
		fmt.Fprintf(w, "\n%s\n", g.Unfit)
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (g *guarantee) verdict() string {
	if why := g.broken(); why != "" {
		return "NOT KEPT, " + why
	}
	return "kept"
}

// broken says what breaks the promise; "" where it is kept.
func (g *guarantee) broken() string {
	if g.Kept {
		return ""
	}
	causes := make([]string, len(g.Beyond))
	for i, n := range g.Beyond {
		causes[i] = string(n)
	}
	return "because of " + strings.Join(causes, ", ")
}

// share is the value of --at-most.
type share struct {
	text   string
	target errorbound.Target
}

func (s *share) String() string { return s.text }

// Type is what the help calls the value.
func (s *share) Type() string { return "tokens|percent" }

// Set implements pflag.Value.
func (s *share) Set(text string) error {
	var target errorbound.Target
	var err error
	if percent, ok := strings.CutSuffix(text, "%"); ok {
		target.MilliPercent, err = policy.ParsePercent(percent)
	} else if text == "" {
		return errors.New("write tokens, or a percentage as in 5%")
	} else {
		target.Tokens, err = policy.ParseTokens(text)
	}
	*s = share{text, target}
	return err
}

// tokenCount is a flag for tokens, ratePerTime one for a rate.
type tokenCount lease.Tokens

func (c *tokenCount) String() string { return fmt.Sprint(int64(*c)) }

// Type is what the help calls the value.
func (*tokenCount) Type() string { return "tokens" }

// Set implements pflag.Value.
func (c *tokenCount) Set(text string) error {
	if text == "" {
		return errors.New("write a whole number of tokens")
	}
	n, err := policy.ParseTokens(text)
	*c = tokenCount(n)
	return err
}

type ratePerTime lease.Rate

func (r *ratePerTime) String() string { return policy.FormatRate(lease.Rate(*r)) }

// Type is what the help calls the value.
func (*ratePerTime) Type() string { return "rate" }

// Set implements pflag.Value.
func (r *ratePerTime) Set(text string) error {
	rate, err := policy.ParseRate(text)
	*r = ratePerTime(rate)
	return err
}
