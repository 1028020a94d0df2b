package bench

import (
	"io"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/policy"
)

// servers are an agent over a Redis, its allocator, and the yardstick: each in a
// process of its own, as the callers are in this one.
type servers struct {
	redis                  *testredis.Server
	allocator, agent, noop *process
	all                    []watched // the callers too
}

// startServers starts them until the benchmark ends, with every key's budget in
// use.
func startServers(b *testing.B, keys int, budgets []policy.Budget) *servers {
	b.Helper()
	s := &servers{
		allocator: start(b, roleAllocator, roleOptions{Budgets: budgets}),
		redis:     testredis.Start(b, testredis.Options{}),
	}
	s.agent = start(b, roleAgent, roleOptions{Allocator: s.allocator.told.GRPC, Redis: s.redis.Addr()})
	warm(b, faces(keys)[0], keys, dial(b, s.agent.told.GRPC)[0])
	s.noop = start(b, roleNoop, roleOptions{Agent: s.agent.told.GRPC})
	pid, err := strconv.Atoi(infoLine(b, s.redis, "server", "process_id"))
	if err != nil {
		b.Fatal(err)
	}
	s.all = []watched{{"callers", os.Getpid()}, {"redis", pid}}
	for _, p := range []*process{s.agent, s.allocator, s.noop} {
		s.all = append(s.all, watched{p.role, p.cmd.Process.Pid})
	}
	return s
}

// leaveAlone stops what ours consists of until goOn is called. An agent works
// when nobody asks it, the more the more budgets it has in use: a yardstick
// beside it would be slowed by what it is to be compared with, while it is idle
// itself when ours is measured. Calls of the store that are under way meanwhile
// fail, and the tokens of many keys lapse: before ours is measured again, it is
// asked until that is over.
func (s *servers) leaveAlone(b *testing.B) (goOn func()) {
	b.Helper()
	for _, p := range []*process{s.agent, s.allocator} {
		if err := p.pause(); err != nil {
			b.Fatal(err)
		}
	}
	s.redis.Pause()
	return func() {
		// The agent is the last: it is to find the others there.
		s.redis.Continue()
		for _, p := range []*process{s.allocator, s.agent} {
			if err := p.proceed(); err != nil {
				b.Error(err)
			}
		}
	}
}

var decisions = regexp.MustCompile(`(?m)^ration_decisions_total{mode="(\w+)",.*} (\S+)$`)

// decided is how many decisions the agent has made, by what they rest on.
func (s *servers) decided(b *testing.B) map[string]int64 {
	b.Helper()
	r, err := http.Get("http://" + s.agent.told.HTTP + "/metrics")
	if err != nil {
		b.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		b.Fatal(err)
	}
	by := map[string]int64{}
	for _, m := range decisions.FindAllSubmatch(text, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			b.Fatal(err)
		}
		by[string(m[1])] += int64(n)
	}
	return by
}
