package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/policy/file"
)

// budgetTool is what the budgets commands share.
type budgetTool struct {
	db         database
	deployment *policy.Deployment
	env        environment
}

func budgetsCommand(env environment) *cobra.Command {
	t := &budgetTool{env: env}
	cmd := &cobra.Command{
		Use: "budgets", Short: "Apply, compare, show and delete budgets",
		Long: "Apply, compare, show and delete budgets.\n\n" + onDatabase,
		Example: cli.Examples(
			"allocator budgets diff -f budgets.yaml --database-url postgres://ration@db/ration",
			"allocator budgets apply -f budgets.yaml --database-url postgres://ration@db/ration"),
		Args: cobra.NoArgs,
		RunE: cli.Group,
	}
	t.db.flags(cmd)
	t.deployment = deploymentFlags(cmd)
	cmd.AddCommand(t.apply(), t.diff(), t.get(), t.delete())
	return cmd
}

func filesFlag(cmd *cobra.Command) *[]string {
	return cmd.Flags().StringArrayP("file", "f", nil, "budget file, directory of them, or - for standard input; may be repeated")
}

// session opens the ledger for one command.
func (t *budgetTool) session(cmd *cobra.Command, do func(context.Context, *ledger) error) error {
	if err := checkDeployment(t.deployment); err != nil {
		return err
	}
	ctx, cancel, err := t.db.context(cmd)
	if err != nil {
		return err
	}
	defer cancel()
	l, err := t.db.open(ctx, *t.deployment)
	if err != nil {
		return err
	}
	defer l.close()
	return do(ctx, l)
}

// load reads the files of an -f flag.
func (t *budgetTool) load(paths []string) ([]policy.Budget, error) {
	if len(paths) == 0 {
		return nil, cli.Usagef("-f is required: a budget file, a directory of them, or -")
	}
	budgets, err := file.Load(*t.deployment, paths...)
	if err == nil && len(budgets) == 0 {
		err = cli.Usagef("the files have no budgets")
	}
	return budgets, err
}

// inForce returns the ledger's budgets by name, without deleted ones.
func inForce(ctx context.Context, l *ledger) (map[string]policy.Budget, error) {
	list, err := l.ListBudgets(ctx, 0)
	if err != nil {
		return nil, err
	}
	all := make(map[string]policy.Budget, len(list.Budgets))
	for _, b := range list.Budgets {
		if !b.Deleted {
			all[b.Name] = b
		}
	}
	return all, nil
}

// compare says what applying budgets would do, in their order.
func compare(ctx context.Context, l *ledger, budgets []policy.Budget) ([]file.Change, error) {
	current, err := inForce(ctx, l)
	if err != nil {
		return nil, err
	}
	changes := make([]file.Change, len(budgets))
	for i := range budgets {
		if old, ok := current[budgets[i].Name]; ok {
			changes[i] = file.Diff(&old, &budgets[i])
		} else {
			changes[i] = file.Diff(nil, &budgets[i])
		}
	}
	return changes, nil
}

func (t *budgetTool) apply() *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use: "apply -f FILE", Short: "Put the budgets of files in force, all or none", Args: cobra.NoArgs,
		Long: "Put the budgets of files in force, all or none, and show what changed. What says\nthe same already is left alone, and budgets that no file names stay as they are.\n\n" + onDatabase,
		Example: cli.Examples(
			"allocator budgets apply -f budgets.yaml --database-url postgres://ration@db/ration",
			"allocator budgets apply -f budgets/ --dry-run --database-url postgres://ration@db/ration"),
	}
	files := filesFlag(cmd)
	format := cli.OutputFlag(cmd)
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would change, and change nothing")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		budgets, err := t.load(*files)
		if err != nil {
			return err
		}
		return t.session(cmd, func(ctx context.Context, l *ledger) error {
			changes, err := compare(ctx, l, budgets)
			if err != nil {
				return err
			}
			if !dryRun {
				if _, err := l.Apply(ctx, budgets); err != nil {
					return err
				}
			}
			did := "applied"
			if dryRun {
				did = "would apply"
			}
			return t.show(cmd, *format, changes, did)
		})
	}
	return cmd
}

func (t *budgetTool) diff() *cobra.Command {
	cmd := &cobra.Command{
		Use: "diff -f FILE", Short: "Compare files with what is in force; exit 1 if they differ", Args: cobra.NoArgs,
		Long:    "Compare the budgets of files with those in force, and exit 1 if they differ. Budgets\nin force that no file names are not compared.\n\n" + onDatabase,
		Example: cli.Examples("allocator budgets diff -f budgets.yaml --database-url postgres://ration@db/ration"),
	}
	files := filesFlag(cmd)
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		budgets, err := t.load(*files)
		if err != nil {
			return err
		}
		return t.session(cmd, func(ctx context.Context, l *ledger) error {
			changes, err := compare(ctx, l, budgets)
			if err != nil {
				return err
			}
			if err := t.show(cmd, *format, changes, "differ:"); err != nil {
				return err
			}
			if n := count(changes, file.Add) + count(changes, file.Modify); n > 0 {
				return cli.Failf("%d of %d budgets differ", n, len(changes))
			}
			return nil
		})
	}
	return cmd
}

// show prints changes and a summary.
func (t *budgetTool) show(cmd *cobra.Command, format cli.Format, changes []file.Change, did string) error {
	w := cmd.OutOrStdout()
	return cli.Print(w, format, changes, func(w io.Writer) error {
		paint := painter{on: cli.Colour(w, t.env.lookup)}
		for _, c := range changes {
			paint.change(w, c)
		}
		_, err := fmt.Fprintf(w, "%s %d new, %d changed, %d deleted, %d unchanged\n",
			did, count(changes, file.Add), count(changes, file.Modify), count(changes, file.Remove), count(changes, file.Keep))
		return err
	})
}

func count(changes []file.Change, kind file.Kind) int {
	n := 0
	for _, c := range changes {
		if c.Kind == kind {
			n++
		}
	}
	return n
}

// painter writes changes, in colour or not.
type painter struct{ on bool }

func (p painter) line(w io.Writer, colour int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.on {
		text = fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
	}
	fmt.Fprintln(w, text)
}

const (
	red    = 31
	green  = 32
	yellow = 33
)

func (p painter) change(w io.Writer, c file.Change) {
	name := cli.Printable(c.Budget)
	switch c.Kind {
	case file.Add:
		p.line(w, green, "+ %s", name)
	case file.Modify:
		p.line(w, yellow, "~ %s", name)
	case file.Remove:
		p.line(w, red, "- %s", name)
	}
	for _, f := range c.Fields {
		from, to := cli.Printable(f.From), cli.Printable(f.To)
		switch {
		case f.From == "":
			p.line(w, green, "    %s: %s", f.Field, to)
		case f.To == "":
			p.line(w, red, "    %s: %s -> (none)", f.Field, from)
		default:
			p.line(w, yellow, "    %s: %s -> %s", f.Field, from, to)
		}
	}
}

func (t *budgetTool) get() *cobra.Command {
	var all bool
	cmd := &cobra.Command{
		Use: "get [NAME...]", Short: "Show budgets in force", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Show budgets in force. As YAML or JSON they have the form of a budget file, with\ndefaults spelled out.\n\n" + onDatabase,
		Example: cli.Examples(
			"allocator budgets get --database-url postgres://ration@db/ration",
			"allocator budgets get acme/search -o yaml --database-url postgres://ration@db/ration"),
	}
	format := cli.OutputFlag(cmd)
	cmd.Flags().BoolVar(&all, "deleted", false, "in a table, show deleted budgets too while their leases last")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		return t.session(cmd, func(ctx context.Context, l *ledger) error {
			list, err := l.ListBudgets(ctx, 0)
			if err != nil {
				return err
			}
			budgets, err := selected(list.Budgets, names, all && *format == cli.Table)
			if err != nil {
				return err
			}
			return printBudgets(cmd.OutOrStdout(), *format, budgets)
		})
	}
	return cmd
}

// selected returns the named budgets, all without names, sorted by name.
func selected(budgets []policy.Budget, names []string, deleted bool) ([]policy.Budget, error) {
	var out []policy.Budget
	for _, b := range budgets {
		if (len(names) == 0 || slices.Contains(names, b.Name)) && (!b.Deleted || deleted) {
			out = append(out, b)
		}
	}
	slices.SortFunc(out, func(a, b policy.Budget) int { return strings.Compare(a.Name, b.Name) })
	for _, name := range names {
		if !slices.ContainsFunc(out, func(b policy.Budget) bool { return b.Name == name }) {
			return nil, lease.Errorf(lease.UnknownBudget, "", "no budget %q is in force", name)
		}
	}
	return out, nil
}

func printBudgets(w io.Writer, format cli.Format, budgets []policy.Budget) error {
	if format == cli.YAML {
		return file.Write(w, budgets)
	}
	forms, rows := make([]any, len(budgets)), make([][]any, len(budgets))
	for i, b := range budgets {
		forms[i] = file.Form(b)
		state := "in force"
		if b.Deleted {
			state = "deleted"
		}
		rows[i] = []any{b.Name, file.Limit(b.Contract), string(b.Strategy), int64(b.Float), b.Version, state}
	}
	return cli.Print(w, format, map[string]any{"budgets": forms}, func(w io.Writer) error {
		return cli.WriteTable(w, []string{"Budget", "Limit", "Strategy", "Float", "Version", "State"}, rows)
	})
}

func (t *budgetTool) delete() *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "delete {NAME... | -f FILE}", Short: "Delete budgets, all or none", ValidArgsFunction: cobra.NoFileCompletions,
		Long: "Delete budgets, all or none. What only a deleted budget limited is then allowed\nwithout limit, as is all that no budget matches; a check that asks for it by name is\nrefused. Its row stays until no lease of it can be spent, and a budget applied\nunder its name meanwhile resumes it.\n\n" + onDatabase,
		Example: cli.Examples(
			"allocator budgets delete acme/search --yes --database-url postgres://ration@db/ration",
			"allocator budgets delete -f budgets.yaml --yes --database-url postgres://ration@db/ration"),
	}
	files := filesFlag(cmd)
	cmd.Flags().BoolVar(&yes, "yes", false, "delete without being asked")
	cmd.RunE = func(cmd *cobra.Command, names []string) error {
		if (len(names) > 0) == (len(*files) > 0) {
			return cli.Usagef("name budgets or give -f, one of the two")
		}
		if len(*files) > 0 {
			budgets, err := t.load(*files)
			if err != nil {
				return err
			}
			for _, b := range budgets {
				names = append(names, b.Name)
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		if !yes {
			if err := t.confirm(names); err != nil {
				return err
			}
		}
		return t.session(cmd, func(ctx context.Context, l *ledger) error { return remove(ctx, cmd.OutOrStdout(), l, names) })
	}
	return cmd
}

// confirm asks on a terminal; elsewhere it refuses.
func (t *budgetTool) confirm(names []string) error {
	if !cli.Terminal(t.env.in) {
		return cli.Usagef("say --yes to delete %d budgets where there is no terminal to ask on", len(names))
	}
	for _, name := range names {
		fmt.Fprintf(t.env.err, "- %s\n", cli.Printable(name))
	}
	fmt.Fprintf(t.env.err, "Delete these %d budgets? Type yes: ", len(names))
	answer, _ := bufio.NewReader(t.env.in).ReadString('\n')
	if strings.TrimSpace(answer) != "yes" {
		return cli.Failf("nothing was deleted")
	}
	return nil
}

func remove(ctx context.Context, w io.Writer, l *ledger, names []string) error {
	before, err := inForce(ctx, l)
	if err != nil {
		return err
	}
	if _, err := l.Delete(ctx, names); err != nil {
		return err
	}
	gone := 0
	for _, name := range names {
		if _, ok := before[name]; ok {
			painter{}.change(w, file.Change{Budget: name, Kind: file.Remove})
			gone++
		}
	}
	_, err = fmt.Fprintf(w, "deleted %d budgets, %d were deleted before\n", gone, len(names)-gone)
	return err
}
