package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/migrations"
)

func migrateCommand() *cobra.Command {
	var db database
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the ledger's schema up to date",
		Long: "Bring the ledger's schema up to date. Any number of migrators may run at once:\nthey pass one by one.",
		Example: cli.Examples(
			"allocator migrate up --database-url postgres://ration@db/ration",
			"allocator migrate status --database-url postgres://ration@db/ration"),
		Args: cobra.NoArgs,
		RunE: cli.Group,
	}
	db.flags(cmd)
	cmd.AddCommand(migrateUp(&db), migrateDown(&db), migrateStatus(&db))
	return cmd
}

func migrateUp(db *database) *cobra.Command {
	return &cobra.Command{
		Use: "up", Short: "Apply every migration that is missing", Args: cobra.NoArgs,
		Long:    "Apply every migration that is missing. Replace the allocators right after: those of\nan older version fail on a newer schema, and until then regions live on the leases\nthat they have. A newer version does not start on an older schema.",
		Example: cli.Examples("allocator migrate up --database-url postgres://ration@db/ration"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel, err := db.context(cmd)
			if err != nil {
				return err
			}
			defer cancel()
			applied, err := migrations.Up(ctx, db.url)
			for _, v := range applied {
				fmt.Fprintf(cmd.OutOrStdout(), "applied %s\n", v.Name)
			}
			if err == nil && len(applied) == 0 {
				fmt.Fprintln(cmd.OutOrStdout(), "up to date")
			}
			return cli.Unreachable(err)
		},
	}
}

func migrateDown(db *database) *cobra.Command {
	var yes bool
	cmd := &cobra.Command{
		Use: "down", Short: "Undo the newest migration, with the data in what it drops", Args: cobra.NoArgs,
		Example: cli.Examples("allocator migrate down --yes --database-url postgres://localhost/test"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !yes {
				return cli.Usagef("this drops data: say --yes")
			}
			ctx, cancel, err := db.context(cmd)
			if err != nil {
				return err
			}
			defer cancel()
			undone, err := migrations.Down(ctx, db.url)
			if errors.Is(err, migrations.ErrNothingToUndo) {
				return cli.Fail(err)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "undid %s\n", undone.Name)
			}
			return cli.Unreachable(err)
		},
	}
	cmd.Flags().BoolVar(&yes, "yes", false, "drop the data without being asked")
	return cmd
}

// migration is how status shows a migration.
type migration struct {
	Number  int64  `json:"number" yaml:"number"`
	Name    string `json:"name" yaml:"name"`
	Applied bool   `json:"applied" yaml:"applied"`
}

func migrateStatus(db *database) *cobra.Command {
	cmd := &cobra.Command{
		Use: "status", Short: "List migrations; exit 1 if one is missing", Args: cobra.NoArgs,
		Example: cli.Examples("allocator migrate status -o json --database-url postgres://ration@db/ration"),
	}
	format := cli.OutputFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel, err := db.context(cmd)
		if err != nil {
			return err
		}
		defer cancel()
		all, err := migrations.Status(ctx, db.url)
		if err != nil {
			return cli.Unreachable(err)
		}
		list, rows := make([]migration, len(all)), make([][]any, len(all))
		for i, v := range all {
			list[i], rows[i] = migration(v), []any{v.Number, v.Name, v.Applied}
		}
		err = cli.Print(cmd.OutOrStdout(), *format, list, func(w io.Writer) error {
			return cli.WriteTable(w, []string{"Number", "Migration", "Applied"}, rows)
		})
		if n := missing(all); err == nil && n > 0 {
			err = cli.Failf("%d migrations are missing: run allocator migrate up", n)
		}
		return err
	}
	return cmd
}

// missing counts the migrations that are not applied.
func missing(all []migrations.Version) (n int) {
	for _, v := range all {
		if !v.Applied {
			n++
		}
	}
	return n
}
