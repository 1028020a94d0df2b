package bench

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
	"github.com/ration-dev/ration/regionstore/redis"
)

const (
	storeRounds = 7
	storeFor    = 500 * time.Millisecond
	// storeDepth and storeConns are how the store shares round trips: the
	// yardstick does the same.
	storeDepth, storeConns = 32, 2
	storeCallers           = storeDepth * storeConns
	storeBudgets           = 1000
)

// regionStore is a region's store over a Redis of its own, with wallets that
// hold more than any benchmark takes.
type regionStore struct {
	*redis.Store
	server *testredis.Server
	client *goredis.Client
	names  []string
	seen   *lastScript
}

// lastScript remembers the arguments of the last script that a client ran.
type lastScript struct {
	mu   sync.Mutex
	args []any
}

func (l *lastScript) DialHook(next goredis.DialHook) goredis.DialHook { return next }

func (l *lastScript) ProcessHook(next goredis.ProcessHook) goredis.ProcessHook {
	return func(ctx context.Context, cmd goredis.Cmder) error {
		if cmd.Name() == "evalsha" {
			l.mu.Lock()
			l.args = append([]any(nil), cmd.Args()...)
			l.mu.Unlock()
		}
		return next(ctx, cmd)
	}
}

func (l *lastScript) ProcessPipelineHook(next goredis.ProcessPipelineHook) goredis.ProcessPipelineHook {
	return next
}

func newRegionStore(b *testing.B) *regionStore {
	b.Helper()
	s := &regionStore{server: testredis.Start(b, testredis.Options{}), seen: &lastScript{}}
	s.client = goredis.NewClient(&goredis.Options{Addr: s.server.Addr(), MaxRetries: -1, ContextTimeoutEnabled: true, Protocol: 2})
	b.Cleanup(func() { _ = s.client.Close() })
	s.client.AddHook(s.seen)
	var err error
	if s.Store, err = redis.New(b.Context(), s.client, redis.Options{Region: "us", Timeout: 5 * time.Second, Log: quiet}); err != nil {
		b.Fatal(err)
	}
	for i := range storeBudgets {
		s.names = append(s.names, "acme/"+strconv.Itoa(i))
		grantLump(b, s.Store, s.names[i])
	}
	return s
}

// take decides n budgets in one step, as an agent asks that has seen the store's
// clock before.
func (s *regionStore) take(b *testing.B, names ...string) {
	req := regionstore.TakeRequest{}
	bound := regionstore.Now{NotAfter: lease.Time(time.Now().UnixMicro())}
	for _, name := range names {
		req.Takes = append(req.Takes, regionstore.Take{Budget: name, Cost: 1, Demand: 1, Now: bound})
	}
	if r, err := s.Take(context.Background(), req); err != nil || !r.Took {
		b.Errorf("%+v %v", r, err)
	}
}

// BenchmarkStoreDecision compares decisions from the region's store, by callers
// that wait for their answers, with what the same server does when the very
// same script call is sent to it over and over in pipelines of the same depth
// over as many connections, by redis-benchmark, which is in C and neither
// writes a call anew nor reads its answer.
func BenchmarkStoreDecision(b *testing.B) {
	s := newRegionStore(b)
	s.take(b, s.names[0])
	args := s.seen.args
	got := compare(storeRounds,
		func() float64 { return s.decisionsPerSecond(b) },
		func() float64 { return redisBenchmark(b, s.server.Addr(), args) })
	b.ReportMetric(got.Ours, "decisions/s")
	b.ReportMetric(got.Yardstick, "scripts/s")
	report(Row{
		Item: fmt.Sprintf("store decision, %d callers", storeCallers), Ours: perSecond(got.Ours),
		Yardstick: fmt.Sprintf("the same script, %d deep over %d connections %s", storeDepth, storeConns, perSecond(got.Yardstick)),
		Ratio:     ratio(got.Ratio), Goal: "≥ 0.6",
	})
}

func (s *regionStore) decisionsPerSecond(b *testing.B) float64 {
	var wg sync.WaitGroup
	var total atomic.Int64
	start := time.Now()
	for g := range storeCallers {
		wg.Go(func() {
			for i := g; time.Since(start) < storeFor; i += storeCallers {
				s.take(b, s.names[i%len(s.names)])
				total.Add(1)
			}
		})
	}
	wg.Wait()
	return float64(total.Load()) / time.Since(start).Seconds()
}

// BenchmarkStoreRoundTrips counts round trips and the server's time of one
// decision over several budgets.
func BenchmarkStoreRoundTrips(b *testing.B) {
	s := newRegionStore(b)
	const decisions = 300
	for _, n := range []int{1, 4, 16} {
		before, took := s.stat(b, "stats", "total_reads_processed"), s.usec(b)
		for range decisions {
			s.take(b, s.names[:n]...)
		}
		// What asks for this is read too, some of it on connections of its own.
		trips := float64(s.stat(b, "stats", "total_reads_processed")-before) / decisions
		report(Row{
			Item: fmt.Sprintf("store decision over %d budgets", n), Ours: fmt.Sprintf("%.2f round trips, %.0f µs of the server", trips, (s.usec(b)-took)/decisions),
			Goal: "1 round trip",
		})
	}
}

func (s *regionStore) stat(b *testing.B, section, field string) int {
	b.Helper()
	n, err := strconv.Atoi(infoLine(b, s.server, section, field))
	if err != nil {
		b.Fatal(err)
	}
	return n
}

// infoLine reads one field of INFO.
func infoLine(b *testing.B, server *testredis.Server, section, field string) string {
	b.Helper()
	text, _ := server.Do("INFO", section).(string)
	for line := range strings.Lines(text) {
		if v, ok := strings.CutPrefix(line, field+":"); ok {
			return strings.TrimSpace(v)
		}
	}
	b.Fatalf("no %s in INFO %s", field, section)
	return ""
}

// usec is what scripts have taken of the server in all.
func (s *regionStore) usec(b *testing.B) float64 {
	b.Helper()
	var calls, usec float64
	if _, err := fmt.Sscanf(infoLine(b, s.server, "commandstats", "cmdstat_evalsha"), "calls=%f,usec=%f", &calls, &usec); err != nil {
		b.Fatal(err)
	}
	return usec
}

// redisBenchmark runs one command for a while and returns its rate.
func redisBenchmark(b *testing.B, addr string, args []any) float64 {
	b.Helper()
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		b.Fatal(err)
	}
	const n = 15000
	cmd := []string{"-h", host, "-p", port, "-c", strconv.Itoa(storeConns), "-P", strconv.Itoa(storeDepth), "-n", strconv.Itoa(n), "--csv"}
	for _, a := range args {
		cmd = append(cmd, fmt.Sprint(a))
	}
	out, err := exec.Command("redis-benchmark", cmd...).Output()
	if err != nil {
		b.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	fields := strings.Split(lines[len(lines)-1], `","`)
	if len(fields) < 2 {
		b.Fatalf("redis-benchmark said %s", out)
	}
	rate, err := strconv.ParseFloat(strings.Trim(fields[1], `"`), 64)
	if err != nil {
		b.Fatal(err)
	}
	return rate
}
