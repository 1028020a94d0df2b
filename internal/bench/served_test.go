package bench

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/load"
	"github.com/ration-dev/ration/policy"
)

const (
	servedCallers = 64
	servedConns   = 4
	manyKeys      = 10_000
	servedRounds  = 11
	servedFor     = 500 * time.Millisecond
	// Latency is measured for longer: its slowest hundredth is few calls.
	latencyRounds = 7
	latencyFor    = 2 * time.Second
	// servedBefore is for how long each measurement's calls are made before it:
	// stacks and heaps grow in the first moments, and ours has just stood still.
	servedBefore = time.Second
	// manyBefore is the same of ours with many keys: what an agent holds ahead
	// follows how often each is asked for. It is more than a process holds tokens
	// for.
	manyBefore = 20 * time.Second
	// servedRate is each budget's: more than is asked, as refusals are cheaper.
	servedRate = 1_000_000
)

func BenchmarkServed(b *testing.B) {
	for _, keys := range []int{1, manyKeys} {
		b.Run(fmt.Sprintf("keys=%d", keys), func(b *testing.B) {
			strategy := policy.Dynamic
			if keys == manyKeys {
				// What leases of so many budgets cost is another row; these need few.
				strategy = policy.Static
			}
			s := startServers(b, keys, routesOf(b, keys, servedRate, strategy))
			for _, f := range faces(keys) {
				b.Run(f.name, func(b *testing.B) { served(b, s, f, keys) })
			}
		})
	}
}

func served(b *testing.B, s *servers, f face, keys int) {
	of := func(p *process) *side {
		return &side{face: f, addr: p.told.GRPC, call: caller(f, keys, dial(b, p.told.GRPC)), before: servedBefore}
	}
	ours, yardstick := of(s.agent), of(s.noop)
	yardstick.alone = s.leaveAlone
	turns, latencyTurns := servedRounds, latencyRounds
	if keys > 1 {
		turns, latencyTurns, ours.before = rounds, rounds, manyBefore
	}
	// both compares them in one kind of measurement.
	both := func(n int, kind func(*testing.B, *side) float64) compared {
		ours.used, yardstick.used = newUsage(s.all), newUsage(s.all)
		return compare(n, func() float64 { return kind(b, ours) }, func() float64 { return kind(b, yardstick) })
	}
	decided := s.decided(b)
	got := both(turns, closed)
	what := fmt.Sprintf("%s over gRPC, %s", f.name, map[bool]string{true: "one hot key", false: count(float64(keys)) + " keys"}[keys == 1])
	row := func(r Row) {
		report(r)
		b.Logf("%s: computing were %v; beside %v", r.Item, ours.used, yardstick.used)
	}
	row(Row{
		what + fmt.Sprintf(", %d callers", servedCallers),
		perSecond(got.Ours), perSecond(got.Yardstick) + " no-op server", ratio(got.Ratio),
		map[bool]string{true: "≥ 0.8", false: "≥ 0.6"}[keys == 1],
	})
	for _, at := range []struct {
		part, goal string
		rate       float64
	}{{"half", "< 5 ms", got.Ours / 2}, {"a quarter", "", got.Ours / 4}} {
		late := both(latencyTurns, latencyAt(at.rate))
		row(Row{
			what + fmt.Sprintf(", p99 at %s of that, open-loop", at.part),
			count(late.Ours) + " ms", count(late.Yardstick) + " ms no-op server", ratio(late.Ratio), at.goal,
		})
	}
	for mode, n := range s.decided(b) {
		decided[mode] = n - decided[mode]
	}
	b.Logf("decided from %v", decided)
}

// side is ours or the yardstick, to be measured.
type side struct {
	face face
	addr string
	call load.Call
	// before is for how long it is asked before each measurement.
	before time.Duration
	// alone, if set, lets it have the machine to itself until goOn is called.
	alone func(*testing.B) (goOn func())
	// used is what was computed in measurements, without what came before each.
	used *usage
}

// measure runs a kind of load for a while and then once more, and returns what
// came of the second.
func (s *side) measure(b *testing.B, length time.Duration, run func(length time.Duration) load.Result) (r load.Result) {
	if s.alone != nil {
		defer s.alone(b)()
	}
	run(s.before)
	s.used.during(func() { r = run(length) })
	return noted(b, r)
}

// noted logs what failed in a run: a refusal would be cheaper than a decision.
func noted(b *testing.B, r load.Result) load.Result {
	if r.Failed > 0 {
		b.Logf("%d of %d failed: %v", r.Failed, r.Calls, r.Err)
	}
	return r
}

// closed measures how many calls a second are served.
func closed(b *testing.B, s *side) float64 {
	return s.measure(b, servedFor, func(length time.Duration) load.Result {
		return load.Closed(servedCallers, length, s.call)
	}).PerSecond()
}

// latencyAt measures the 99th percentile at this many calls per second, in
// milliseconds.
func latencyAt(rate float64) func(*testing.B, *side) float64 {
	return func(b *testing.B, s *side) float64 {
		return s.measure(b, latencyFor, func(length time.Duration) load.Result {
			return load.OpenWire(wires(b, s.addr), s.face.unary(), rate, length)
		}).Quantile(99).Seconds() * 1000
	}
}
