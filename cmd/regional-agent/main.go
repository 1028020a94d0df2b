// Command regional-agent decides checks in one region from tokens that the
// allocator leased to it, which it keeps in the region's own Redis.
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
	os.Exit(run(ctx, os.Args[1:], environment{out: os.Stdout, err: os.Stderr, lookup: os.LookupEnv}))
}

// environment is what the command sees of the world.
type environment struct {
	out, err io.Writer
	lookup   func(string) (string, bool)
}

// run executes the command line and returns the exit code.
func run(ctx context.Context, args []string, env environment) int {
	cmd := command(env)
	cmd.SetArgs(args)
	cmd.SetOut(env.out)
	cmd.SetErr(env.err)
	return cli.Execute(ctx, cmd, env.err)
}
