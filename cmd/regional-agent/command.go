package main

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/redis"
)

type flags struct {
	env environment

	region        string
	allocator     string
	insecure      bool
	tlsCA         string
	tokenFile     string
	redis         []string
	sentinel      string
	cluster       bool
	redisPrefix   string
	redisTimeout  time.Duration
	grpc, http    string
	tlsCert       string
	tlsKey        string
	maxAgents     int
	storeDeadline time.Duration
	drain         app.Drain
	clocks        lease.Clocks
	level         cli.Level
}

func command(env environment) *cobra.Command {
	f := &flags{env: env, clocks: lease.DefaultClocks()}
	cmd := &cobra.Command{
		Use: "regional-agent", Short: "Decide checks in one region from leased tokens", Args: cobra.NoArgs,
		Long: `Decide checks in one region, from tokens that the allocator leased to it and that
lie in the region's own Redis: a decision never leaves the region. Any number of
agents may share a region's Redis.

Decisions are asked for as POST /v1/limits:check on --http, or as
ration.v1.LimitService on --grpc; --http also has /healthz, /readyz and /metrics,
and /debug/budgets?budget=NAME says where a budget's tokens are.

Redis is one server, Sentinels with --redis-sentinel-master, or a Cluster when
several addresses are given or with --redis-cluster. It must not evict keys
(maxmemory-policy noeviction), and belongs to the region alone.

Every flag has an environment twin: --redis-url is RATION_REDIS_URL. A flag wins
over its twin. The token comes from --token-file or from RATION_TOKEN.

On SIGTERM the agent says that it does not serve, waits a moment, lets requests
finish, and, if it is the region's last, gives its leases back. A second signal
ends it at once.

Garbage is collected once it is 16 times what is in use, 64 to 256 MB, or as much
as is in use where that is more; GOGC and GOMEMLIMIT change that, as for every Go
program.

Exit codes: 0 ok, 1 failed, 2 usage, 3 unavailable.`,
		Example: cli.Examples(
			"regional-agent --region us --allocator allocator.example:7700 --token-file /etc/ration/token --redis-url redis://redis:6379",
			"regional-agent --region us --allocator localhost:7700 --insecure --redis-url localhost:6379",
			"regional-agent --region eu --allocator allocator.example:7700 --token-file token --redis-sentinel-master ration --redis-url s1:26379,s2:26379,s3:26379"),
		SilenceErrors: true, SilenceUsage: true,
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return cli.ApplyEnv(cmd, env.lookup) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	f.define(cmd)
	cmd.AddCommand(cli.Version("regional-agent", app.Version()))
	cli.MentionEnv(cmd)
	return cmd
}

func (f *flags) define(cmd *cobra.Command) {
	s := cmd.Flags()
	s.StringVar(&f.region, "region", "", "this region's name, as budgets and tokens name it")
	s.StringVar(&f.allocator, "allocator", "", "the allocator's gRPC address, host:port, or several separated by commas; calls spread over them and over all addresses of a name")
	s.BoolVar(&f.insecure, "insecure", false, "reach the allocator without TLS")
	s.StringVar(&f.tlsCA, "tls-ca", "", "certificates that the allocator's is checked against; default the system's")
	s.StringVar(&f.tokenFile, "token-file", "", "file with this region's token, read again as it changes")
	s.StringSliceVar(&f.redis, "redis-url", nil, "Redis address or redis:// URL; repeat or separate by commas for Sentinels or a Cluster")
	s.StringVar(&f.sentinel, "redis-sentinel-master", "", "the addresses are Sentinels that watch a primary of this name")
	s.BoolVar(&f.cluster, "redis-cluster", false, "the one address is a Cluster's")
	s.StringVar(&f.redisPrefix, "redis-prefix", "ration", "what every key begins with")
	s.DurationVar(&f.redisTimeout, "redis-timeout", 250*time.Millisecond, "longest step of the agent's own work on Redis")
	s.DurationVar(&f.storeDeadline, "store-deadline", 5*time.Millisecond, "longest that a decision waits for Redis")
	s.StringVar(&f.grpc, "grpc", ":7710", "address for decisions over gRPC")
	s.StringVar(&f.http, "http", ":7711", "address for decisions over HTTP, health and metrics")
	s.StringVar(&f.tlsCert, "tls-cert", "", "certificate file for --grpc; without it gRPC is in the clear")
	s.StringVar(&f.tlsKey, "tls-key", "", "key file of --tls-cert")
	s.IntVar(&f.maxAgents, "max-agents", 8, "most agents this region may have: each has that part of a local allowance while Redis is down")
	s.DurationVar(&f.drain.Pause, "drain-pause", 2*time.Second, "how long to go on serving after readiness is gone")
	s.DurationVar(&f.drain.Deadline, "drain-deadline", 10*time.Second, "how long requests under way may then take")
	s.Int64Var(&f.clocks.DriftPPM, "clock-drift-ppm", f.clocks.DriftPPM, "how much faster or slower any clock may run, in parts per million")
	s.DurationVar(&f.clocks.BackStep, "clock-back-step", f.clocks.BackStep, "largest backward step of Redis's clock")
	s.DurationVar(&f.clocks.Quantum, "clock-quantum", f.clocks.Quantum, "coarsest timer in the path")
	s.Var(&f.level, "log-level", "debug, info, warn or error")
}

func (f *flags) check(cmd *cobra.Command) error {
	if err := cli.Required(cmd, "region", "allocator", "redis-url"); err != nil {
		return err
	}
	if err := checkAddresses(f.allocator); err != nil {
		return cli.Usagef("--allocator: %w", err)
	}
	c := f.clocks
	switch {
	case policy.CheckName(f.region) != "":
		return cli.Usagef("--region %s", policy.CheckName(f.region))
	case f.tokenFile == "" && f.token() == "" && !f.insecure:
		return cli.Usagef("--token-file or %s is required (or --insecure, for an allocator that needs no token)", tokenVariable)
	case f.maxAgents < 1 || f.storeDeadline <= 0 || f.redisTimeout <= 0:
		return cli.Usagef("--max-agents must be at least 1, and --store-deadline and --redis-timeout above 0")
	case c.DriftPPM < 0 || c.DriftPPM > 500_000 || c.BackStep < 0 || c.Quantum < 0:
		return cli.Usagef("clock bounds must not be negative, nor the drift above 500000 ppm")
	}
	return nil
}

// checkAddresses looks at a list of host:port. What has a slash is a target of
// gRPC's own, as unix:///run/ration is.
func checkAddresses(list string) error {
	for addr := range strings.SplitSeq(list, ",") {
		if strings.Contains(addr, "/") {
			continue
		}
		host, port, err := net.SplitHostPort(addr)
		if err == nil && (host == "" || port == "") {
			err = fmt.Errorf("%q needs a host and a port", addr)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *flags) run(cmd *cobra.Command) error {
	if err := f.check(cmd); err != nil {
		return err
	}
	cli.TuneCollector()
	log := cli.NewLog(f.env.err, f.level.Level)
	dialing, err := f.dialing(log)
	if err != nil {
		return err
	}
	serverTLS, err := app.ServerTLS(f.tlsCert, f.tlsKey)
	if err != nil {
		return cli.Usagef("%w", err)
	}
	redis.LogTo(log)
	store, err := redis.Open(cmd.Context(), redis.Options{
		Region: f.region, Prefix: f.redisPrefix, Timeout: f.redisTimeout,
		MasterName: f.sentinel, Cluster: f.cluster, Log: log, Config: f.storeConfig(),
	}, f.redis...)
	if lease.CodeOf(err) == lease.Invalid {
		return cli.Usagef("--redis-url: %w", err)
	}
	if err != nil {
		return cli.Unreachable(err)
	}
	defer func() { _ = store.Shutdown() }()
	conn, err := rpc.Dial(dialing)
	if err != nil {
		return cli.Usagef("--allocator: %w", err)
	}
	defer conn.Close()
	allocator := rpc.NewClient(conn, f.region)
	return serve(cmd.Context(), log, app.NewAgent(app.AgentOptions{
		Region: f.region, Store: store, Leases: allocator, Policies: allocator, Clocks: f.clocks,
		GRPC: f.grpc, HTTP: f.http, TLS: serverTLS, StoreDeadline: f.storeDeadline, MaxAgents: f.maxAgents,
		Drain: f.drain, Log: log,
	}))
}

func serve(ctx context.Context, log *slog.Logger, server *app.Agent) error {
	if err := server.Start(ctx); err != nil {
		return cli.Unreachable(err)
	}
	log.Info("serving", "region", server.Region(), "grpc", server.GRPCAddr(), "http", server.HTTPAddr())
	<-ctx.Done()
	log.Info("draining")
	// The context has ended, and draining has deadlines of its own.
	err := server.Stop(context.WithoutCancel(ctx))
	log.Info("ended")
	return cli.Fail(err)
}

// tokenVariable holds the token itself; it has no flag, because flags are seen
// by everyone on the machine.
const tokenVariable = "RATION_TOKEN"

func (f *flags) token() string {
	token, _ := f.env.lookup(tokenVariable)
	return token
}

// dialing says how to reach the allocator.
func (f *flags) dialing(log *slog.Logger) (rpc.Dialing, error) {
	d := rpc.Dialing{Target: f.allocator}
	if f.tokenFile != "" {
		token, err := newToken(f.tokenFile, log)
		if err != nil {
			return d, cli.Usagef("--token-file: %w", err)
		}
		d.Token = token.read
	}
	if token := f.token(); d.Token == nil && token != "" {
		d.Token = func() string { return token }
	}
	if f.insecure {
		if d.Token != nil {
			log.Warn("the token is sent in the clear")
		}
		return d, nil
	}
	var err error
	if d.TLS, err = app.ClientTLS(f.tlsCA); err != nil {
		return d, cli.Usagef("%w", err)
	}
	return d, nil
}

func (f *flags) storeConfig() regionstore.Config {
	config := regionstore.DefaultConfig()
	config.Clocks = f.clocks
	return config
}
