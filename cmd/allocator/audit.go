package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/policy"
)

// finding is how audit shows a row at fault.
type finding struct {
	Budget string `json:"budget" yaml:"budget"`
	Row    string `json:"row" yaml:"row"`
	Detail string `json:"detail" yaml:"detail"`
}

// audited is the outcome of an audit.
type audited struct {
	Budgets  int       `json:"budgets" yaml:"budgets"`
	Pools    int       `json:"pools" yaml:"pools"`
	Leases   int       `json:"leases" yaml:"leases"`
	Holds    bool      `json:"holds" yaml:"holds"`
	Findings []finding `json:"findings" yaml:"findings"`
}

func auditCommand() *cobra.Command {
	var db database
	cmd := &cobra.Command{
		Use: "audit", Short: "Prove from the stored rows that no token was made or lost", Args: cobra.NoArgs,
		Long: `Prove conservation, pool by pool, from the stored rows alone: what a pool began
with, minted and was credited is what it has, what is leased, what was spent,
and what was written off. Names every row where that does not hold, and then
exits 1.

` + onDatabase,
		Example: cli.Examples(
			"allocator audit --database-url postgres://ration@db/ration",
			"allocator audit -o json --database-url postgres://ration@db/ration"),
	}
	db.flags(cmd)
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel, err := db.context(cmd)
		if err != nil {
			return err
		}
		defer cancel()
		l, err := db.open(ctx, policy.DefaultDeployment())
		if err != nil {
			return err
		}
		defer l.close()
		result, err := audit(ctx, l.Allocator)
		if err != nil {
			return err
		}
		if err := result.print(cmd.OutOrStdout(), *format); err != nil {
			return err
		}
		if !result.Holds {
			return cli.Failf("conservation does not hold in %d rows", len(result.Findings))
		}
		return nil
	}
	return cmd
}

func audit(ctx context.Context, core *allocation.Allocator) (audited, error) {
	out := audited{Holds: true, Findings: []finding{}}
	for s, err := range core.States(ctx) {
		if err != nil {
			return audited{}, err
		}
		out.Budgets++
		out.Pools += len(s.Pools)
		out.Leases += len(s.Leases)
		for _, v := range allocation.Audit(s) {
			out.Holds = false
			out.Findings = append(out.Findings, finding{v.Budget, v.Row, v.Detail})
		}
	}
	return out, nil
}

func (a audited) print(w io.Writer, format cli.Format) error {
	return cli.Print(w, format, a, func(w io.Writer) error {
		if !a.Holds {
			rows := make([][]any, len(a.Findings))
			for i, f := range a.Findings {
				rows[i] = []any{f.Budget, f.Row, f.Detail}
			}
			if err := cli.WriteTable(w, []string{"Budget", "Row", "What does not hold"}, rows); err != nil {
				return err
			}
		}
		verdict := "conservation holds"
		if !a.Holds {
			verdict = "conservation does not hold"
		}
		_, err := fmt.Fprintf(w, "%d budgets, %d pools, %d leases: %s\n", a.Budgets, a.Pools, a.Leases, verdict)
		return err
	})
}
