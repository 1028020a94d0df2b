package redis

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

//go:embed lua/*.lua
var luaFiles embed.FS

// script is one step: its source behind the shared prelude, and its digest.
// each is set if one run of it does the step for several calls (lua/each.lua),
// decides if somebody waits for what it decides.
type script struct {
	source, sha   string
	each, decides bool
}

// scripts has every step.
type scripts struct {
	open, begin, install, take, settle, giveBack, close, local, read *script
	touch, inUse, lead, join                                         *script
}

// loadScripts puts the shared parts and the wallet's constants before each
// step's file.
func loadScripts(config regionstore.Config) scripts {
	times := fmt.Sprintf("local PROCESS_DEADLINE, LONGEST_DEADLINE, PROCESS_GUARD, KEEP_MARGIN, KEEP_LOCAL, MAX_LAG = %d, %d, %d, %d, %d, %d\n",
		micros(lease.ProcessDeadline), micros(lease.LongestProcessDeadline), micros(config.Clocks.Guard(lease.LongestProcessDeadline)),
		micros(config.KeepMargin), micros(regionstore.KeepLocal), micros(regionstore.MaxLag))
	core := times + mustRead("rate") + mustRead("wallet")
	book := mustRead("book")
	each := func(source string) *script {
		sc := newScript(source + mustRead("each"))
		sc.each = true
		return sc
	}
	wallet := func(name string) *script { return each(core + mustRead("view") + mustRead(name)) }
	register := func(name string) *script {
		return newScript(times + mustRead("register") + mustRead(name))
	}
	all := scripts{
		open: wallet("open"), begin: wallet("begin"), install: wallet("install"),
		take: each(core + book + mustRead("take")), settle: each(core + book + mustRead("settle")), giveBack: wallet("return"),
		close: wallet("close"), local: wallet("local"), read: wallet("read"),
		touch: register("touch"), inUse: register("inuse"), lead: register("lead"), join: register("join"),
	}
	all.take.decides, all.local.decides = true, true
	return all
}

func newScript(step string) *script {
	source := inlined(mustRead("prelude") + step)
	return &script{source: source, sha: redis.NewScript(source).Hash()}
}

var (
	constants = regexp.MustCompile(`(?m)^local ([A-Z][A-Z_]*(?:, [A-Z][A-Z_]*)*) = (-?[0-9]+(?:, -?[0-9]+)*)(?: --.*)?$`)
	words     = regexp.MustCompile(`'[^'\n]*'|--.*|\b[A-Z][A-Z_]*\b`)
)

// inlined puts numbers in the place of the constants that a script declares,
// and drops comments. Lua keeps a constant as a variable that every function
// which uses it has to find, each time the script runs.
func inlined(source string) string {
	values := map[string]string{}
	for _, line := range constants.FindAllStringSubmatch(source, -1) {
		numbers := strings.Split(line[2], ", ")
		for i, name := range strings.Split(line[1], ", ") {
			values[name] = "(" + numbers[i] + ")"
		}
	}
	source = constants.ReplaceAllString(source, "")
	return words.ReplaceAllStringFunc(source, func(word string) string {
		if strings.HasPrefix(word, "--") {
			return ""
		}
		if v, ok := values[word]; ok {
			return v
		}
		return word
	})
}

func mustRead(name string) string {
	b, err := luaFiles.ReadFile("lua/" + name + ".lua")
	if err != nil {
		panic(err) // the file is missing from the build
	}
	return string(b)
}

// onceCmd is a command that the client library must not send again after an
// unknown outcome; a Cluster's client would, whatever its retry setting.
type onceCmd struct{ *redis.Cmd }

// NoRetry tells the client library so.
func (onceCmd) NoRetry() bool { return true }

// call is one step.
type call struct {
	script *script
	slot   uint32
	keys   []string
	args   []any
}

const (
	// stepBatch is how many decisions share a round trip, and a timeout: few
	// enough for a server to run them in a small part of it.
	stepBatch = 32
	// othersBatch is the same for other steps. There are hundreds of them at a time
	// where very many budgets are in use, and decisions that come meanwhile wait
	// for no more than this many.
	othersBatch = 8
)

// runMany is runAll, save that a step alone shares its round trip.
func (s *Store) runMany(ctx context.Context, calls []call) ([]*reply, []error) {
	if len(calls) != 1 {
		return s.runAll(ctx, calls)
	}
	r, err := s.run(ctx, calls[0])
	return []*reply{r}, []error{err}
}

// runAll runs independent steps that no decision waits for, othersBatch at a time. Errors
// are per step.
func (s *Store) runAll(ctx context.Context, calls []call) ([]*reply, []error) {
	replies, errs := make([]*reply, len(calls)), make([]error, len(calls))
	for from := 0; from < len(calls); from += othersBatch {
		to := min(from+othersBatch, len(calls))
		s.runBatch(ctx, calls[from:to], replies[from:to], errs[from:to])
	}
	return replies, errs
}

func (s *Store) runBatch(ctx context.Context, calls []call, replies []*reply, errs []error) {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	if err := s.ready(ctx); err != nil {
		for i := range errs {
			errs[i] = err
		}
		return
	}
	s.exchange(ctx, calls, replies, errs)
}

// exchange sends the calls in one round trip, and in a second one those whose
// script the server did not know.
func (s *Store) exchange(ctx context.Context, calls []call, replies []*reply, errs []error) {
	runs := together(calls)
	cmds := make([]onceCmd, len(runs))
	for i := range runs {
		cmds[i] = evalSHA(ctx, runs[i].script, s.arguments(&runs[i]))
	}
	s.pipeline(ctx, cmds)
	var again []onceCmd
	var at []int
	for i := range runs {
		if noScript(cmds[i].Err()) {
			again, at = append(again, eval(ctx, runs[i].script, cmds[i].Args())), append(at, i)
		}
	}
	s.pipeline(ctx, again)
	for j, i := range at {
		cmds[i] = again[j]
	}
	for i := range runs {
		s.answer(&runs[i], cmds[i], replies, errs)
	}
}

// pipeline sends commands in one round trip; every one has its own error.
func (s *Store) pipeline(ctx context.Context, cmds []onceCmd) {
	switch len(cmds) {
	case 0:
	case 1:
		_ = s.client.Process(ctx, cmds[0])
	default:
		pipe := s.client.Pipeline()
		for _, cmd := range cmds {
			_ = pipe.Process(ctx, cmd)
		}
		_, _ = pipe.Exec(ctx)
	}
}

func evalSHA(ctx context.Context, sc *script, args []any) onceCmd {
	args[0], args[1] = "evalsha", sc.sha
	return newOnce(ctx, args)
}

func eval(ctx context.Context, sc *script, args []any) onceCmd {
	args[0], args[1] = "eval", sc.source
	return newOnce(ctx, args)
}

// newOnce names the first key's position, by which a Cluster's client finds
// the node.
func newOnce(ctx context.Context, args []any) onceCmd {
	cmd := redis.NewCmd(ctx, args...)
	cmd.SetFirstKeyPos(3)
	return onceCmd{cmd}
}

func noScript(err error) bool {
	return err != nil && (errors.Is(err, redis.ErrNoScript) || strings.HasPrefix(err.Error(), "NOSCRIPT"))
}
