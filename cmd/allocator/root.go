package main

import (
	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/cli"
)

func root(env environment) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "allocator",
		Short: "Multi-region lease allocator for rate limits and quotas",
		Long: `Ration keeps each limit's tokens in one ledger and leases them to regions, so
that a decision never leaves its region and a global limit still holds.

Every flag has an environment twin: --database-url is RATION_DATABASE_URL. A
flag wins over its twin.

Exit codes: 0 ok, 1 a check did not hold, 2 usage or input, 3 unavailable.`,
		Example: cli.Examples(
			"allocator dev",
			"allocator migrate up --database-url postgres://ration@db/ration",
			"allocator serve --database-url postgres://ration@db/ration --tokens-file tokens",
			"allocator budgets apply -f budgets.yaml --database-url postgres://ration@db/ration"),
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: false},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.ApplyEnv(cmd, env.lookup) },
	}
	cmd.AddGroup(&cobra.Group{ID: "run", Title: "Run:"}, &cobra.Group{ID: "ledger", Title: "Work on the ledger:"})
	add := func(group string, subs ...*cobra.Command) {
		for _, sub := range subs {
			sub.GroupID = group
			cmd.AddCommand(sub)
		}
	}
	add("run", devCommand(env), serveCommand(env))
	cmd.AddGroup(&cobra.Group{ID: "plan", Title: "Plan a limit:"})
	add("plan", boundCommand(), simulateCommand(env))
	add("ledger", migrateCommand(), budgetsCommand(env), auditCommand())
	cmd.AddCommand(cli.Version("allocator", app.Version()))
	cli.MentionEnv(cmd)
	return cmd
}
