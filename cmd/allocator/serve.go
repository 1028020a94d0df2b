package main

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/cli"
	tokens "github.com/ration-dev/ration/internal/credentials"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/migrations"
	"github.com/ration-dev/ration/policy"
)

// tokensVariable holds tokens as "us=token,eu=token"; it has no flag, because
// flags are seen by everyone on the machine.
const tokensVariable = "RATION_TOKENS"

type serveFlags struct {
	database         string
	listen, http     string
	tokensFile       string
	insecure         bool
	tlsCert, tlsKey  string
	drain            app.Drain
	allowVolatile    bool
	connections      int32
	level            cli.Level
	deployment       *policy.Deployment
	env              environment
	log              *slog.Logger
	credentials      rpc.Credentials
	watchCredentials func(context.Context, *slog.Logger)
}

func serveCommand(env environment) *cobra.Command {
	f := &serveFlags{env: env}
	cmd := &cobra.Command{
		Use: "serve", Short: "Serve leases to regions, over Postgres", Args: cobra.NoArgs,
		Long: `Serve leases to regions. Any number of replicas may run over one database.

A region is who its token says it is. Tokens come from --tokens-file, one
"region: token" a line, read again when it changes, or from ` + tokensVariable + `
as "us=token,eu=token". --insecure needs no token and believes each message,
for development.

On SIGTERM it says that it does not serve, waits a moment so that balancers
look elsewhere, lets calls finish, and ends. A second signal ends it at once.

Garbage is collected once it is 16 times what is in use, 64 to 256 MB, or as much
as is in use where that is more; GOGC and GOMEMLIMIT change that, as for every Go
program.`,
		Example: cli.Examples(
			"allocator serve --database-url postgres://ration@db/ration --tokens-file /etc/ration/tokens",
			"allocator serve --database-url postgres://localhost/ration --insecure --listen 127.0.0.1:0 --http 127.0.0.1:0"),
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.database, "database-url", "", "Postgres URL of the ledger")
	flags.StringVar(&f.listen, "listen", ":7700", "address for gRPC")
	flags.StringVar(&f.http, "http", ":7701", "address for health and metrics")
	flags.StringVar(&f.tokensFile, "tokens-file", "", "file of \"region: token\" lines")
	flags.BoolVar(&f.insecure, "insecure", false, "need no token: messages name their region")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "certificate file for gRPC; without it gRPC is in the clear")
	flags.StringVar(&f.tlsKey, "tls-key", "", "key file of --tls-cert")
	flags.DurationVar(&f.drain.Pause, "drain-pause", 2*time.Second, "how long to go on serving after readiness is gone")
	flags.DurationVar(&f.drain.Deadline, "drain-deadline", 10*time.Second, "how long calls under way may then take")
	flags.Int32Var(&f.connections, "database-connections", 8, "most connections to the database")
	flags.BoolVar(&f.allowVolatile, "allow-volatile", false, "accept a database that may lose commits in a crash, and grant twice after it")
	flags.Var(&f.level, "log-level", "debug, info, warn or error")
	f.deployment = deploymentFlags(cmd)
	return cmd
}

func (f *serveFlags) run(cmd *cobra.Command) error {
	if err := cli.Required(cmd, "database-url"); err != nil {
		return err
	}
	if err := checkDeployment(f.deployment); err != nil {
		return err
	}
	cli.TuneCollector()
	f.log = cli.NewLog(f.env.err, f.level.Level)
	if err := f.authenticate(); err != nil {
		return err
	}
	secure, err := app.ServerTLS(f.tlsCert, f.tlsKey)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	if secure == nil && !f.insecure {
		f.log.Warn("gRPC is in the clear: tokens can be read on the way")
	}
	observe, commits := app.CommitDurations()
	store, err := openPostgres(cmd.Context(), f.database, postgres.Options{
		MaxConns: f.connections, Clocks: f.deployment.Clocks, AllowVolatile: f.allowVolatile, OnCommit: observe,
	})
	if err != nil {
		return err
	}
	defer store.Close()
	if err := f.schema(cmd.Context()); err != nil {
		return err
	}
	server := app.NewAllocator(app.AllocatorOptions{
		Store: store, Credentials: f.credentials, Deployment: *f.deployment, Listen: f.listen, HTTP: f.http,
		TLS: secure, Drain: f.drain, Log: f.log, Collectors: commits,
	})
	return f.serve(cmd.Context(), server)
}

// schema refuses a database whose schema is older than this program: it would
// serve until the first statement that needs what is missing.
func (f *serveFlags) schema(ctx context.Context) error {
	all, err := migrations.Status(ctx, f.database)
	if err != nil {
		f.log.Warn("whether the schema is current is not known", "error", err)
		return nil
	}
	if n := missing(all); n > 0 {
		return cli.Unreachable(fmt.Errorf("%d migrations are missing: run allocator migrate up", n))
	}
	return nil
}

func (f *serveFlags) serve(ctx context.Context, server *app.Allocator) error {
	if err := server.Start(ctx); err != nil {
		return cli.Unreachable(err)
	}
	if f.watchCredentials != nil {
		go f.watchCredentials(ctx, f.log)
	}
	f.log.Info("serving", "grpc", server.GRPCAddr(), "http", server.HTTPAddr())
	<-ctx.Done()
	f.log.Info("draining")
	// The context has ended, and draining has deadlines of its own.
	err := server.Stop(context.WithoutCancel(ctx))
	f.log.Info("ended")
	return cli.Fail(err)
}

// authenticate decides whose tokens are believed.
func (f *serveFlags) authenticate() error {
	list, inEnv := f.env.lookup(tokensVariable)
	inEnv = inEnv && list != ""
	given := 0
	for _, set := range []bool{f.insecure, f.tokensFile != "", inEnv} {
		if set {
			given++
		}
	}
	if given != 1 {
		return cli.Usagef("exactly one of --tokens-file, %s and --insecure is needed", tokensVariable)
	}
	if f.insecure {
		f.log.Warn("no token is needed: every message names its own region")
		f.credentials = rpc.Insecure{}
		return nil
	}
	if f.tokensFile == "" {
		table, err := tokens.ParseList(tokensVariable, list)
		f.credentials = table
		return err
	}
	file, err := tokens.Open(f.tokensFile)
	if err != nil {
		return cli.Usagef("--tokens-file: %w", err)
	}
	f.credentials, f.watchCredentials = file, file.Run
	return nil
}
