//go:build acceptance

package acceptance

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/internal/testredis"
)

// played is how long a minute of the trace takes.
const played = 14 * time.Millisecond

const (
	agentsPerRegion = 2
	budgetsFile     = "testdata/budgets.yaml"
	// storeDeadline is long, as fourteen busy processes share the cores of one
	// machine here: a few milliseconds pass before a program gets its turn.
	storeDeadline = "50ms"
)

var regionNames = []string{"us", "eu", "ap"}

// limit is what budgets.yaml says of one budget, and the load on it relative
// to its rate.
type limit struct {
	route string
	bucket
	// promised is the over-admission that the file accepts in a window, beside
	// the drift of clocks and one token of rounding.
	promised func(w time.Duration) float64
	load     float64
	// used is the least part of what an ideal bucket would admit, while more is
	// asked for than the rate. A busy machine takes some points of it.
	used float64
}

var limits = []limit{
	{"search", bucket{400, 400}, noFloat, 1.25, 0.9},
	{"checkout", bucket{120, 120}, fivePercentWithin2s(120, 120), 1.25, 0.9},
	{"login", bucket{80, 80}, noFloat, 1.0, 0.5},
}

func noFloat(time.Duration) float64 { return 0 }

func fivePercentWithin2s(rate, burst float64) func(time.Duration) float64 {
	return func(time.Duration) float64 { return 0.05 * (burst + 2*rate) }
}

// system is a whole deployment on this machine.
type system struct {
	bin        string
	database   string
	allocators []*process
	agents     map[string][]*process
	grpc       map[string][]string
}

// The load shifts between three regions for a minute; an agent is killed and
// an allocator restarted on the way. Afterwards the ledger's rows prove
// conservation and no window held more than was promised.
func TestAcceptance(t *testing.T) {
	length := time.Minute
	if s := os.Getenv("ACCEPTANCE_LENGTH"); s != "" {
		var err error
		if length, err = time.ParseDuration(s); err != nil {
			t.Fatalf("ACCEPTANCE_LENGTH: %v", err)
		}
	}
	trace, err := ReadTrace("../../testdata/worldcup98-three-days.csv")
	if err != nil {
		t.Fatal(err)
	}
	sys := deploy(t)
	regions := sys.callers(t)

	start := time.Now()
	var load sync.WaitGroup
	for i, r := range regions {
		load.Go(func() { r.drive(t.Context(), start, length, demands(trace, i), uint64(i)) })
	}
	sys.disturb(t, start, length)
	load.Wait()

	all := make([]decision, 0, 1<<17)
	for _, r := range regions {
		all = append(all, r.decisions...)
	}
	counts := sys.counts()
	for _, agents := range sys.agents {
		for _, a := range agents {
			a.stop(t)
		}
	}
	report(t, all, length, counts)
	out, code := command(t, sys.bin, "audit", "--database-url", sys.database)
	fmt.Printf("\nallocator audit, exit %d:\n%s", code, out)
	if code != 0 {
		t.Errorf("audit exits %d", code)
	}
	for _, a := range sys.allocators {
		a.stop(t)
	}
}

// demands returns what region i's callers ask of each budget.
func demands(trace Trace, i int) (ds []demand) {
	for _, l := range limits {
		ds = append(ds, demand{route: l.route, at: func(at time.Duration) float64 {
			return l.load * l.rate * trace.Shares(int(at/played), len(regionNames))[i]
		}})
	}
	return ds
}

func deploy(t *testing.T) *system {
	t.Helper()
	dir := t.TempDir()
	if keep := os.Getenv("ACCEPTANCE_LOGS"); keep != "" {
		dir = keep
		os.MkdirAll(dir, 0o755)
	}
	s := &system{
		bin:      build(t),
		database: testpg.Empty(t),
		agents:   map[string][]*process{},
		grpc:     map[string][]string{},
	}
	s.must(t, "migrate", "up", "--database-url", s.database)
	s.must(t, "budgets", "apply", "--database-url", s.database, "-f", budgetsFile)

	tokens := filepath.Join(dir, "tokens")
	var lines strings.Builder
	for _, name := range regionNames {
		fmt.Fprintf(&lines, "%s: secret-of-%s\n", name, name)
		if err := os.WriteFile(filepath.Join(dir, "token-"+name), []byte("secret-of-"+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(tokens, []byte(lines.String()), 0o600); err != nil {
		t.Fatal(err)
	}

	var listen []string
	for i := range 2 {
		addr := freeAddr(t)
		listen = append(listen, addr)
		s.allocators = append(s.allocators, s.process(t, dir, "allocator", fmt.Sprintf("allocator-%d", i),
			"serve", "--database-url", s.database, "--listen", addr, "--tokens-file", tokens))
	}
	for _, name := range regionNames {
		redis := testredis.Start(t, testredis.Options{})
		for i := range agentsPerRegion {
			addr := freeAddr(t)
			s.grpc[name] = append(s.grpc[name], addr)
			s.agents[name] = append(s.agents[name], s.process(t, dir, "regional-agent", fmt.Sprintf("agent-%s-%d", name, i),
				"--region", name, "--allocator", strings.Join(listen, ","), "--insecure", "--token-file", filepath.Join(dir, "token-"+name),
				"--redis-url", "redis://"+redis.Addr(), "--store-deadline", storeDeadline, "--grpc", addr))
		}
	}
	for _, p := range s.all() {
		p.ready(t)
	}
	return s
}

func (s *system) process(t *testing.T, dir, program, name string, args ...string) *process {
	t.Helper()
	p := &process{name: name, path: filepath.Join(s.bin, program), log: filepath.Join(dir, name+".log"), http: freeAddr(t)}
	p.args = append(args, "--http", p.http)
	p.start(t)
	t.Cleanup(p.kill)
	return p
}

func (s *system) must(t *testing.T, args ...string) {
	t.Helper()
	if out, code := command(t, s.bin, args...); code != 0 {
		t.Fatalf("allocator %s exits %d:\n%s", strings.Join(args, " "), code, out)
	}
}

func (s *system) all() []*process {
	list := s.allocators
	for _, name := range regionNames {
		list = append(list, s.agents[name]...)
	}
	return list
}

func (s *system) callers(t *testing.T) (regions []*region) {
	t.Helper()
	for _, name := range regionNames {
		r := &region{name: name}
		for _, addr := range s.grpc[name] {
			conn, err := dialAgent(addr)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			r.agents = append(r.agents, rationv1.NewLimitServiceClient(conn))
		}
		regions = append(regions, r)
	}
	return regions
}

// disturb kills an agent a third of the way and restarts an allocator at two
// thirds.
func (s *system) disturb(t *testing.T, start time.Time, length time.Duration) {
	time.Sleep(time.Until(start.Add(length / 3)))
	victim := s.agents[regionNames[0]][0]
	victim.kill()
	fmt.Printf("%5.1f s: killed %s\n", time.Since(start).Seconds(), victim.name)
	time.Sleep(time.Until(start.Add(length * 2 / 3)))
	s.allocators[0].kill()
	fmt.Printf("%5.1f s: killed %s\n", time.Since(start).Seconds(), s.allocators[0].name)
	time.Sleep(time.Second)
	s.allocators[0].start(t)
	s.allocators[0].ready(t)
	fmt.Printf("%5.1f s: %s is back\n", time.Since(start).Seconds(), s.allocators[0].name)
}

// counts are what the programs say of themselves, as far as they still live.
type counts struct{ rpcs, items float64 }

func (s *system) counts() (c counts) {
	for _, name := range regionNames {
		for _, a := range s.agents[name] {
			c.rpcs += a.counter("ration_sync_calls_total")
			c.items += a.counter("ration_sync_items_total")
		}
	}
	return c
}

func report(t *testing.T, all []decision, length time.Duration, c counts) {
	t.Helper()
	perRegion := map[string][4]int{}
	for _, d := range all {
		n := perRegion[d.region]
		n[d.outcome]++
		perRegion[d.region] = n
	}
	fmt.Printf("\n%-8s %10s %10s %10s %12s %8s\n", "region", "decisions", "admitted", "denied", "unavailable", "failed")
	for _, name := range regionNames {
		n := perRegion[name]
		fmt.Printf("%-8s %10d %10d %10d %12d %8d\n", name, n[0]+n[1]+n[2]+n[3], n[admitted], n[denied], n[unavailable], n[failed])
	}
	reasons := map[string]int{}
	for _, d := range all {
		if d.outcome == unavailable {
			reasons[d.reason]++
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(reasons)) {
		fmt.Printf("%8d × %s\n", reasons[reason], reason)
	}
	fmt.Printf("\nSync RPCs %.0f, items %.0f, per 1000 decisions %.1f (agents alive at the end)\n",
		c.rpcs, c.items, 1000*c.rpcs/float64(len(all)))

	fmt.Printf("\n%-10s %9s %9s %12s %10s %10s %10s\n", "budget", "asked", "admitted", "utilisation", "window", "excess", "promised")
	for _, l := range limits {
		ds := ofBudget(all, l.route)
		used, seconds := utilisation(ds, l.bucket, length)
		if used < l.used {
			t.Errorf("%s: %.1f %% of what one bucket would admit, want at least %.0f %%", l.route, 100*used, 100*l.used)
		}
		for _, w := range []time.Duration{time.Second, 2 * time.Second} {
			// Drift and rounding: rho = 1e-3, one token.
			promised := l.promised(w) + 0.001*l.rate*w.Seconds() + 1
			excess := largestExcess(ds, l.bucket, w)
			fmt.Printf("%-10s %9d %9d %7.1f%%/%2ds %10v %10.0f %10.0f\n",
				l.route, len(ds), len(admittedTimes(ds)), 100*used, seconds, w, excess, promised)
			if excess > promised {
				t.Errorf("%s: %.0f tokens above the contract within %v, promised %.0f", l.route, excess, w, promised)
			}
		}
		fmt.Printf("%-10s largest excess in any window, by the callers' clocks: %.1f\n", "", worstQueue(ds, l.bucket))
	}
	if len(all) == 0 || perRegion[regionNames[0]][admitted] == 0 {
		t.Error("nothing was decided")
	}
}

func ofBudget(all []decision, route string) (ds []decision) {
	for _, d := range all {
		if d.budget == route {
			ds = append(ds, d)
		}
	}
	return ds
}
