package scenario

import (
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// Bounds of one run, so that what nobody could wait for, or what memory could
// not hold, is refused before it starts.
const (
	// maxRequests are simulated one by one in about ten minutes.
	maxRequests = 500_000_000
	// maxSteps are bulk steps times streams.
	maxSteps = 500_000_000
	// maxRounds are the agents' rounds: agents times length over their pace.
	maxRounds = 500_000_000
	// maxBytes is what a run's measures may take.
	maxBytes = 1 << 30
)

func (r *reader) size(s *yamlfile.Scope) {
	o := &r.scenario.options
	length := policy.FormatDuration(o.Length)
	if o.Bulk > o.Length {
		r.Fail(r.durationAt, "duration", "is %s, shorter than one bulk step of %s", length, policy.FormatDuration(o.Bulk))
	}
	streams := 0
	for _, w := range o.Workloads {
		if w.All {
			streams++
		} else {
			streams += len(w.Budgets)
		}
	}
	r.time(o, streams, length)
	if bytes := memory(r.scenario, streams); bytes > maxBytes {
		r.Fail(r.durationAt, "", "the scenario needs about %d MB a run for %d budgets in %d regions with %d windows and %d points, at most %d MB are allowed: take fewer of them",
			bytes>>20, len(r.scenario.budgets), len(o.Topology.Regions), len(o.Windows), o.Points, maxBytes>>20)
	}
	if len(r.Problems) > 0 {
		return
	}
	played, err := r.scenario.Options(sim.AsWritten, 1)
	if err == nil {
		err = played.Validate()
	}
	if err != nil {
		r.Fail(s.Root, "", "%v", err)
	}
}

func (r *reader) time(o *sim.Options, streams int, length string) {
	if streams > maxStreams {
		r.Fail(r.durationAt, "workloads", "make %d streams of requests, at most %d are allowed", streams, maxStreams)
	}
	if o.Bulk > 0 {
		if steps := float64(o.Length/o.Bulk) * float64(streams); steps > maxSteps {
			r.Fail(r.durationAt, "duration", "of %s makes %.3g bulk steps of %d streams, at most %.3g are allowed: take a longer step",
				length, steps, streams, float64(maxSteps))
		}
	} else if n := requests(o); n > maxRequests {
		r.Fail(r.durationAt, "duration", "of %s makes %.3g requests one by one, at most %.3g are allowed: write mode: bulk", length, n, float64(maxRequests))
	}
	pace := o.SyncEvery
	if pace == 0 {
		pace = 100 * time.Millisecond
	}
	agents := 0
	for _, region := range o.Topology.Regions {
		agents += max(1, region.Agents)
	}
	if rounds := float64(o.Length/pace) * float64(agents); rounds > maxRounds {
		r.Fail(r.durationAt, "duration", "of %s makes %.3g rounds of %d agents, at most %.3g are allowed: take a longer sync_every",
			length, rounds, agents, float64(maxRounds))
	}
}

// requests estimates how many requests a run has, by walking its patterns.
func requests(o *sim.Options) float64 {
	sum := 0.0
	for _, w := range o.Workloads {
		segment := w.Pattern.Start(rand.New(rand.NewPCG(1, 2)))
		t := time.Duration(0)
		for range maxSegments {
			if t >= o.Length || sum > maxRequests {
				break
			}
			s := segment(t)
			end := min(s.Until, o.Length)
			if s.Until < 0 {
				end = o.Length
			}
			end = max(end, t+time.Microsecond)
			sum += s.PerSecond*(end-t).Seconds() + max(0, float64(s.AtOnce))
			t = end
		}
		if t < o.Length { // more segments than anyone walks: go on as so far
			sum *= float64(o.Length) / float64(max(t, 1))
		}
	}
	return sum
}

const maxSegments = 100_000

// memory estimates a run's bytes, and doubles it: results are kept beside the
// run that makes the next.
func memory(s *Scenario, streams int) int64 {
	o := &s.options
	budgets, regions := int64(len(s.budgets)), int64(len(o.Topology.Regions))
	agents := int64(0)
	for _, r := range o.Topology.Regions {
		agents += int64(max(1, r.Agents))
	}
	perBudget := int64(o.Points)*8*(5+7*regions) + int64(len(o.Windows))*1024*8*2 + 4096*(regions+agents)
	return 2 * (budgets*perBudget + int64(streams)*1024)
}
