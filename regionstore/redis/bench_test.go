package redis

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// BenchmarkTake is one decision at a time, and by as many callers as there
// are connections.
func BenchmarkTake(b *testing.B) {
	s := shared(b)
	grant(b, s, "acme/search", 1<<50)
	req := takes(1, "acme/search")
	b.Run("alone", func(b *testing.B) {
		for b.Loop() {
			if _, err := s.Take(context.Background(), req); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("together", func(b *testing.B) {
		b.SetParallelism(16)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if _, err := s.Take(context.Background(), req); err != nil {
					b.Error(err)
				}
			}
		})
	})
}

// BenchmarkScript is what the server alone needs for one script, by its own
// account, when many share a round trip; beside it what any script of ours
// needs before its step begins, and what the least script does.
func BenchmarkScript(b *testing.B) {
	server := testredis.Start(b, testredis.Options{})
	s := open(b, Options{}, server.Addr())
	for i := range 6 + runRows {
		grant(b, s, fmt.Sprintf("acme/%d", i), 1<<50)
	}
	// The callers' bound lies ahead of the clock for as long as this runs.
	now := regionstore.Now{NotAfter: read(b, s, "acme/0").Time.Add(time.Minute)}
	again := func(ahead lease.Tokens, budgets ...string) call {
		req := takes(1, budgets...)
		for i := range req.Takes {
			req.Takes[i].Now, req.Takes[i].Prefetch = now, ahead
		}
		return s.takeCall(&req)
	}
	first := takes(1, "acme/1")
	var several, views, settles []call
	for i := range runRows {
		name := fmt.Sprintf("acme/%d", 6+i)
		var args arguments
		args.now(now)
		several, views = append(several, again(0, name)), append(views, s.onRow(s.scripts.read, name, args))
		settles = append(settles, s.settleCall(&regionstore.Settle{Budget: name, Kind: lease.Lump, Incarnation: "x", Generation: 1, Used: 1, Now: now}))
	}
	for _, c := range []struct {
		name  string
		calls []call
	}{
		{"take/budgets=1", []call{again(0, "acme/0")}},
		{"take/budgets=3", []call{again(0, "acme/2", "acme/3", "acme/4")}},
		{"take/first", []call{s.takeCall(&first)}},
		{"take/ahead", []call{again(1, "acme/5")}},
		{"take/together", several},
		{"read", views[:1]},
		{"read/together", views},
		{"settle", settles[:1]},
		{"settle/together", settles},
		{"prelude", []call{{script: newScript("return {id}"), keys: []string{s.keys.row("acme/0")}}}},
		{"least", []call{{script: &script{source: "return 1", sha: redis.NewScript("return 1").Hash()}}}},
	} {
		b.Run(c.name, func(b *testing.B) { serverTime(b, server, s, c.calls) })
	}
}

// serverTime sends calls of one script in one run, and many of that at once; its
// figures are per call.
func serverTime(b *testing.B, server *testredis.Server, s *Store, calls []call) {
	const depth = 50
	ctx := context.Background()
	if err := s.client.ScriptLoad(ctx, calls[0].script.source).Err(); err != nil {
		b.Fatal(err)
	}
	server.Do("CONFIG", "RESETSTAT")
	for b.Loop() {
		cmds := make([]onceCmd, depth)
		for i := range cmds {
			r := together(calls)[0]
			cmds[i] = evalSHA(ctx, r.script, s.arguments(&r))
		}
		s.pipeline(ctx, cmds)
		for _, cmd := range cmds {
			if cmd.Err() != nil {
				b.Fatal(cmd.Err())
			}
		}
	}
	var n, usec int
	var per float64
	line, _ := infoField(server.Do("INFO", "commandstats").(string), "cmdstat_evalsha")
	if _, err := fmt.Sscanf(line, "calls=%d,usec=%d,usec_per_call=%f", &n, &usec, &per); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(per/float64(len(calls)), "µs-server/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(depth*b.N*len(calls)), "ns/op")
}
