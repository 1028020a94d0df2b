// Command allocator is the global side of Ration: the server that leases
// limits to regions, its schema, its budgets, its audit, and dev, which runs
// everything in one process.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/ration-dev/ration/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:], environment{in: os.Stdin, out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv}))
}

// environment is what a command sees of the world.
type environment struct {
	in       io.Reader
	out, err io.Writer
	lookup   func(string) (string, bool)
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	cmd := root(env)
	cmd.SetArgs(args)
	cmd.SetIn(env.in)
	cmd.SetOut(env.out)
	cmd.SetErr(env.err)
	return cli.Execute(ctx, cmd, env.err)
}
