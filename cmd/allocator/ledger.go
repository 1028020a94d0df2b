package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// onDatabase is said in the help of commands that need no running allocator.
const onDatabase = "It works directly on the database: no allocator needs to run, and running ones see\nthe outcome within seconds."

// database is how to reach the ledger.
type database struct {
	url     string
	timeout time.Duration
}

func (d *database) flags(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVar(&d.url, "database-url", "", "Postgres URL of the ledger")
	cmd.PersistentFlags().DurationVar(&d.timeout, "timeout", 30*time.Second, "give up after this long")
}

// context bounds a command that works on the database.
func (d *database) context(cmd *cobra.Command) (context.Context, context.CancelFunc, error) {
	if d.timeout <= 0 {
		return nil, nil, cli.Usagef("--timeout must be above 0")
	}
	if err := cli.Required(cmd, "database-url"); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), d.timeout)
	return ctx, cancel, nil
}

// ledger is an allocator over the database for one command.
type ledger struct {
	*allocation.Allocator
	close func()
}

// open connects for a command that is not a server.
func (d *database) open(ctx context.Context, deployment policy.Deployment) (*ledger, error) {
	store, err := openPostgres(ctx, d.url, postgres.Options{Clocks: deployment.Clocks, MaxConns: 2, AllowVolatile: true})
	if err != nil {
		return nil, err
	}
	core := allocation.NewAllocator(store, allocation.Config{Clocks: deployment.Clocks}, allocation.WithDeployment(deployment))
	return &ledger{core, store.Close}, nil
}

// openPostgres says Unavailable for whatever is not the URL's fault.
func openPostgres(ctx context.Context, url string, opts postgres.Options) (*postgres.Store, error) {
	store, err := postgres.Open(ctx, url, opts)
	if err != nil && lease.CodeOf(err) != lease.Invalid {
		return nil, cli.Unreachable(err)
	}
	return store, err
}

// deploymentFlags declare how wrong clocks may be, and the kind of stores.
func deploymentFlags(cmd *cobra.Command) *policy.Deployment {
	d := policy.DefaultDeployment()
	f := cmd.PersistentFlags()
	f.Int64Var(&d.Clocks.DriftPPM, "clock-drift-ppm", d.Clocks.DriftPPM, "how much faster or slower any clock may run, in parts per million")
	f.DurationVar(&d.Clocks.BackStep, "clock-back-step", d.Clocks.BackStep, "largest backward step of a region's store clock")
	f.DurationVar(&d.Clocks.Quantum, "clock-quantum", d.Clocks.Quantum, "coarsest timer in the path")
	f.BoolVar(&d.ReplicatedStores, "replicated-stores", d.ReplicatedStores, "regions' stores fail over to replicas: count what an isolated old primary may spend")
	f.DurationVar(&d.StoreIsolation, "store-isolation", d.StoreIsolation, "how long an isolated old primary goes on accepting writes; 0 for as long as it likes")
	f.DurationVar(&d.StoreOutage, "store-outage", d.StoreOutage, "how long a region's store may be away from its agents: count what processes may then admit by themselves")
	return &d
}

// checkDeployment refuses clock bounds under which no guard is long enough.
func checkDeployment(d *policy.Deployment) error {
	c := d.Clocks
	if c.DriftPPM < 0 || c.DriftPPM > 500_000 || c.BackStep < 0 || c.BackStep > time.Hour || c.Quantum < 0 || c.Quantum > time.Minute {
		return cli.Usagef("clock bounds must be 0 to 500000 ppm, 0 to 1h of back step, and 0 to 1m of quantum")
	}
	if d.StoreIsolation < 0 || d.StoreOutage < 0 {
		return cli.Usagef("--store-isolation and --store-outage must not be negative")
	}
	return nil
}
