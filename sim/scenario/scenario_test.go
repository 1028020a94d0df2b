package scenario_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/sim"
	"github.com/ration-dev/ration/sim/scenario"
)

const base = `version: 1
duration: 10s
topology:
  regions: {us: {rtt: 20ms, agents: 2}, eu: {rtt: 80ms}}
budgets:
  - {name: a, limit: {rate: 100/s, burst: 100}}
  - {name: b, limit: {rate: 10/s, burst: 10}, strategy: static}
workloads:
  - {name: us, region: us, budget: a, rate: 50/s}
  - {name: eu, region: eu, budget: a, rate: 50/s}
`

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, text string, settings ...scenario.Setting) *scenario.Scenario {
	t.Helper()
	s, err := scenario.Parse("a.yaml", []byte(text), settings...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func options(t *testing.T, s *scenario.Scenario, strategy sim.Strategy) sim.Options {
	t.Helper()
	o, err := s.Options(strategy, 7)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestLoadWhatIsWritten(t *testing.T) {
	s := load(t, base+`windows: [2s]
seeds: [3, 5]
faults:
  - {at: 1s, for: 2s, kind: partition, region: eu}
  - {at: 0s, every: 3s, kind: stop_agent, region: us, agent: 1}
expect:
  - {measure: utilisation, at_least: 99.5%}
  - {measure: longest_denied, region: us, at_most: 600ms}
`)
	o := options(t, s, sim.AsWritten)
	if o.Seed != 7 || o.Length != 10*time.Second || len(o.Workloads) != 2 || len(o.Topology.Regions) != 2 {
		t.Errorf("options %+v", o)
	}
	if len(o.Faults) != 5 || o.Faults[0].Kind != sim.StopAgent || o.Faults[1].Kind != sim.Partition || o.Faults[4].At != 9*time.Second {
		t.Errorf("faults %+v", o.Faults)
	}
	if len(s.Seeds) != 2 || s.Native() != sim.AsWritten {
		t.Errorf("seeds %v, native %q", s.Seeds, s.Native())
	}
	if len(s.Expect) != 2 || *s.Expect[0].AtLeast != 0.995 || *s.Expect[1].AtMost != 0.6 {
		t.Errorf("expect %+v", s.Expect)
	}
	if got := o.Bounds["a"].Window(2 * time.Second); got != 2 { // ceil(0.001·100/s·2s) + 1
		t.Errorf("bound %d", got)
	}
}

// A budget is played with what a strategy needs and without what it cannot
// have. Seen to fail: floors kept for static budgets.
func TestStrategiesReplaceTheWrittenOne(t *testing.T) {
	s := load(t, strings.Replace(base, "burst: 100}}", "burst: 100}, over_admission: {tokens: 5}, regions: {us: {floor: 20/s}, eu: {}}}", 1))
	for _, strategy := range sim.Strategies() {
		o := options(t, s, strategy)
		if err := o.Validate(); err != nil {
			t.Errorf("%s: %v", strategy, err)
		}
	}
	if b := options(t, s, sim.Independent).Budgets[0]; b.OverAdmission.Tokens != 0 || !b.Regions[0].Floor.Zero() {
		t.Errorf("independent: %+v", b)
	}
	if b := options(t, s, sim.Dynamic).Budgets[0]; b.OverAdmission.Tokens != 5 || b.Regions[0].Floor.Zero() {
		t.Errorf("dynamic: %+v", b)
	}
	if got := options(t, s, sim.Central).Bounds; got != nil {
		t.Errorf("a yardstick promises %v", got)
	}
}

func TestExtends(t *testing.T) {
	path := write(t, "base.yaml", base)
	child := filepath.Join(filepath.Dir(path), "child.yaml")
	text := `version: 1
extends: base.yaml
duration: 20s
topology: {regions: {eu: {agents: 3}}}
budgets:
  - {name: a, limit: {rate: 100/s, burst: 30}}
  - {name: c, limit: {rate: 1/s, burst: 1}}
workloads:
  - {name: eu, region: eu, budget: c, phases: [{at: 0s, rate: 1/s}]}
`
	if err := os.WriteFile(child, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Load(child)
	if err != nil {
		t.Fatal(err)
	}
	o := options(t, s, sim.AsWritten)
	if o.Length != 20*time.Second || len(o.Budgets) != 3 || o.Budgets[0].Contract.Burst != 30 || len(o.Workloads) != 2 {
		t.Errorf("%+v", o)
	}
	eu := o.Topology.Regions[1]
	if eu.Agents != 3 || eu.Up.Delay.Base != 40*time.Millisecond {
		t.Errorf("eu %+v", eu)
	}
	// A fault in what was extended names that file.
	if err := os.WriteFile(path, []byte(strings.Replace(base, "agents: 2", "agents: x", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(child); err == nil || !strings.HasPrefix(err.Error(), path+":4:") {
		t.Errorf("got %v", err)
	}
	if err := os.WriteFile(path, []byte("version: 1\nextends: child.yaml\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := scenario.Load(child); err == nil || !strings.Contains(err.Error(), "goes round in a circle") {
		t.Errorf("got %v", err)
	}
}

func TestSettings(t *testing.T) {
	s := load(t, base,
		scenario.Setting{Field: "lease.ttl", Value: "5s"}, scenario.Setting{Field: "topology.commit", Value: "9ms"},
		scenario.Setting{Field: "workloads.us.rate", Value: "7/s"}, scenario.Setting{Field: "budgets.b.limit.burst", Value: "12"})
	o := options(t, s, sim.AsWritten)
	if o.Budgets[0].TTL != 5*time.Second || o.Budgets[1].TTL != 5*time.Second || o.Topology.Ledger.Commit != 9*time.Millisecond {
		t.Errorf("%+v", o)
	}
	if o.Budgets[0].Contract.Burst != 100 || o.Budgets[1].Contract.Burst != 12 || o.Workloads[0].Pattern.(sim.Constant).PerSecond != 7 {
		t.Errorf("%+v", o)
	}
	_, err := scenario.Parse("a.yaml", []byte(base), scenario.Setting{Field: "lease.tll", Value: "5s"})
	if err == nil || !strings.HasPrefix(err.Error(), `--sweep lease.tll=5s: lease has no field "tll", did you mean "ttl"?`) {
		t.Errorf("got %v", err)
	}
}

func TestRepeat(t *testing.T) {
	text := strings.Replace(base, "  - {name: a,", "  - {name: 'tenant-{n}/x', repeat: 3, limit: {rate: 1/s, burst: 5}}\n  - {name: a,", 1) +
		"  - {name: all, regions: all, budgets: ['tenant-*/x', b], rate: 1/s}\n"
	o := options(t, load(t, text), sim.AsWritten)
	if len(o.Budgets) != 5 || o.Budgets[2].Name != "tenant-3/x" || len(o.Workloads) != 4 {
		t.Fatalf("%+v", o.Budgets)
	}
	if got := strings.Join(o.Workloads[3].Budgets, " "); got != "tenant-1/x tenant-2/x tenant-3/x b" {
		t.Errorf("asks for %s", got)
	}
}

// Every fault is told with its place.
func TestFaultsHaveTheirPlace(t *testing.T) {
	for _, c := range []struct{ add, want string }{
		{"durration: 1s\n", `a.yaml:11:1: has no field "durration", did you mean "duration"?`},
		{"seeds: []\n", "a.yaml:11:8: seeds must not be empty"},
		{"seeds: [-1]\n", "a.yaml:11:9: seeds[0]"},
		{"strategies: [dynamik]\n", `a.yaml:11:14: strategies[0] there is no strategy "dynamik", did you mean "dynamic"?`},
		{"mode: batch\n", "a.yaml:11:7: mode is \"batch\", must be request or bulk"},
		{"step: 1s\n", "a.yaml:11:1: step is only for mode: bulk"},
		{"windows: [0s]\n", "a.yaml:11:11: windows[0] is 0s, must be 1ms to 8784h"},
		{"epoch: tomorrow\n", "a.yaml:11:8: epoch"},
		{"faults: [{at: 1s, kind: partitoin}]\n", `a.yaml:11:25: faults[0].kind is "partitoin", which is no kind of fault, did you mean "partition"?`},
		{"faults: [{at: 11s, kind: partition}]\n", "a.yaml:11:15: faults[0].at is 11s, after the end at 10s"},
		{"faults: [{at: -1s, kind: partition}]\n", "a.yaml:11:15: faults[0].at"},
		{"faults: [{at: 1s, kind: store_restart, for: 1s}]\n", "a.yaml:11:40: faults[0].for means nothing for store_restart"},
		{"faults: [{at: 1s, kind: store_stall}]\n", "a.yaml:11:10: faults[0].for is missing with store_stall"},
		{"faults: [{at: 1s, kind: kill_agent, region: us, agent: 2}]\n", "a.yaml:11:56: faults[0].agent is 2, but region us has 2"},
		{"faults: [{at: 1s, kind: partition, region: up}]\n", `a.yaml:11:44: faults[0].region is "up", which is no region of the topology, did you mean "us"?`},
		{"faults: [{at: 1s, every: 0s, kind: store_restart}]\n", "a.yaml:11:26: faults[0].every"},
		{"expect: [{measure: utilization, at_least: 1}]\n", `a.yaml:11:20: expect[0].measure is "utilization", which is no measure, did you mean "utilisation"?`},
		{"expect: [{measure: utilisation}]\n", "a.yaml:11:10: expect[0] needs at_least or at_most"},
		{"expect: [{measure: over_admission, window: 3s, at_most: 0}]\n", "a.yaml:11:44: expect[0].window is 3s, which is not among the windows of the scenario"},
		{"expect: [{measure: over_admission, region: us, at_most: 0}]\n", "a.yaml:11:44: expect[0].region over_admission is not measured by region"},
		{"changes: [{at: 1s, apply: [{name: a, limit: {rate: 1/s, burst: -1}}]}]\n", "a.yaml:11:64: limit.burst"},
		{"changes: [{at: 1s, delete: [nobody]}]\n", "a.yaml:11:29: changes[0].delete names"},
		{"  - {name: us, region: us, budget: a, rate: 1/s}\n", `a.yaml:11:5: workloads[2].name "us" was given before, at a.yaml:9`},
		{"  - {region: us, budget: nobody, rate: 1/s}\n", `a.yaml:11:26: workloads[2].budget is "nobody", which matches no budget`},
		{"  - {region: us, budget: a, rate: -1/s}\n", "a.yaml:11:35: workloads[2].rate"},
		{"  - {region: us, budget: a, rate: 1000000000/s}\n", "a.yaml:11:35: workloads[2].rate is \"1000000000/s\", more than 100000000 requests a second"},
		{"  - {region: us, budget: a}\n", "a.yaml:11:5: workloads[2] needs one of rate"},
		{"  - {region: us, budget: a, rate: 1/s, from: 5s, until: 5s}\n", "a.yaml:11:57: workloads[2].until is not after 5s"},
		{"  - {region: us, budget: a, diurnal: {mean: 0/s, swing: 10%}}\n", "a.yaml:11:45: workloads[2].diurnal.mean must be above 0"},
		{"  - {region: us, budget: a, hot: {total: 1/s, share: 80%, every: 1s}}\n", "needs two regions or more"},
		{"  - {regions: all, budget: a, hot: {total: 1/s, share: 80%, every: 0s}}\n", "workloads[2].hot.every"},
		{"  - {region: us, budget: a, phases: [{at: 2s, rate: 1/s}, {at: 1s, rate: 2/s}]}\n", "a.yaml:11:59: workloads[2].phases[1].at is 1s, not after the phase before"},
		{"  - {region: us, budget: a, rate: 1/s, cost: -3}\n", "a.yaml:11:46: workloads[2].cost"},
		{"  - {region: us, budget: a, rate: 1/s, cost: {choices: {0: 1}}}\n", "workloads[2].cost.choices"},
		{"  - {region: us, budget: a, trace: {file: nowhere.csv}}\n", "a.yaml:11:43: workloads[2].trace.file open nowhere.csv"},
	} {
		_, err := scenario.Parse("a.yaml", []byte(base+c.add))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%sgot  %v\nwant %s", c.add, err, c.want)
		}
	}
	for _, c := range []struct{ from, to, want string }{
		{"version: 1", "version: 2", `a.yaml:1:10: version is "2", this reads version 1`},
		{"version: 1\n", "", "a.yaml:1:1: version is missing"},
		{"duration: 10s\n", "", "a.yaml:1:1: duration is missing"},
		{"duration: 10s", "duration: 0s", "a.yaml:2:11: duration is 0s, must be 1ms to 8784h"},
		{"rtt: 20ms", "rtt: 20ms, up: {delay: 1ms}", "a.yaml:4:23: topology.regions.us.rtt is a round trip"},
		{"agents: 2", "agents: 1000", "a.yaml:4:37: topology.regions.us.agents is \"1000\", must be a whole number from 1 to 64"},
		{"rate: 10/s, burst: 10", "rate: 10/s, burst: 1", "a.yaml:7"},
		{"strategy: static", "strategy: statik", `a.yaml:7`},
	} {
		_, err := scenario.Parse("a.yaml", []byte(strings.Replace(base, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.to, err, c.want)
		}
	}
}

// What would take for ever, or more memory than there is, is refused at once.
func TestTooLargeIsRefused(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"duration: 10s", "duration: 366d", "requests one by one"},
		{"duration: 10s", "duration: 366d\nmode: bulk\nstep: 1ms", "bulk steps"},
		{"duration: 10s", "duration: 366d\nmode: bulk\nstep: 1m\nsync_every: 1ms", "rounds of"},
		{"  - {name: a,", "  - {name: 'x{n}', repeat: 20000, limit: {rate: 1/s, burst: 9}}\n  - {name: a,", "makes more than 20000 budgets"},
		{"  - {name: a,", "  - {name: 'x{n}', repeat: 15000, limit: {rate: 1/s, burst: 9}}\n  - {name: a,", "MB a run"},
	} {
		_, err := scenario.Parse("a.yaml", []byte(strings.Replace(base, c.from, c.to, 1)))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot  %v\nwant %s", c.to, err, c.want)
		}
	}
}

func TestTraces(t *testing.T) {
	for _, c := range []struct{ csv, want string }{
		{"t,n\n0,5\n60,7\n120,6\n", ""},
		{"t,n\n0,5\n60,-7\n", "trace.csv:3:1: the count -7 is negative"},
		{"0,5\n60,7\n60,6\n", "trace.csv:3:1: the time 60 does not come after"},
		{"0,5\n60,7\n30,6\n", "trace.csv:3:1: the time 30 does not come after"},
		{"0,5\n1,7\n2,6\n100,1\n", "trace.csv:4:1: a gap of 1m38s"},
		{"0,5\n60,many\n", `trace.csv:2:1: "many" is not a count`},
		{"0,1e13\n60,1\n", "trace.csv:1:1: the count 1e+13 is above"},
		{"0,5000000000\n1,1\n", "requests a second, at most"},
		{"0,5\n", "at least 2 are needed"},
		{"0,0\n60,0\n", "every count of the trace is 0"},
		{"0,5\n9000000000,7\n", "goes over more than ten years"},
	} {
		path := write(t, "trace.csv", c.csv)
		text := base + "  - {region: us, budget: a, trace: {file: " + path + ", mean: 10/s}}\n"
		if strings.Contains(c.want, "requests a second") {
			text = strings.Replace(text, ", mean: 10/s", "", 1)
		}
		_, err := scenario.Parse("a.yaml", []byte(text))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q\ngot  %v\nwant %s", c.csv, err, c.want)
		}
	}
}

// Whatever is read either is refused with its place or can be run.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(base + "faults: [{at: 1s, every: 1ms, kind: store_restart}]\n"))
	f.Add([]byte(base + "  - {regions: all, budgets: ['*'], zipf: 2, bursts: [{rate: 1/s, mean: 1s}, {rate: 9/s, mean: 1s}], cost: {median: 3, sigma: 1, most: 9}}\n"))
	f.Add([]byte("version: 1\nfaults: [{at: 0s, kind: store_failover}]\n"))
	f.Add([]byte("version: 1\n<<: &a {duration: 1s}\nextends: x\n"))
	f.Add([]byte(base + "changes: [{at: 1s, apply: [{name: a, limit: {quota: 5, per: day}}], delete: [b]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := scenario.Parse("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f:") && !strings.Contains(err.Error(), "\nf:") {
				t.Errorf("no place in %v", err)
			}
			return
		}
		for _, strategy := range s.Strategies {
			o, err := s.Options(strategy, s.Seeds[0])
			if err == nil {
				err = o.Validate()
			}
			if err != nil {
				t.Errorf("read, but: %v", err)
			}
		}
	})
}
