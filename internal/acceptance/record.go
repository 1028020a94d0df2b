package acceptance

import (
	"slices"
	"time"
)

// decision is one answer as its caller saw it, on the caller's clock.
type decision struct {
	asked, answered time.Duration // since the run's start
	region          string
	budget          string
	outcome         outcome
	// reason is the agent's, where no decision could be made.
	reason string
}

type outcome uint8

const (
	admitted    outcome = iota
	denied              // a quota denial, on evidence
	unavailable         // no decision could be made
	failed              // the agent could not be reached
)

// bucket is a budget's contract: tokens per second, and burst.
type bucket struct {
	rate, burst float64
}

// largestExcess returns how much more than burst + rate·w was admitted in the
// worst window of length w, by the instants of the answers; negative if none
// was ever full. Two pointers over (t-w, t].
func largestExcess(ds []decision, b bucket, w time.Duration) float64 {
	times := admittedTimes(ds)
	most, first := 0, 0
	for last := range times {
		for times[last]-times[first] >= w {
			first++
		}
		most = max(most, last-first+1)
	}
	return float64(most) - b.burst - b.rate*w.Seconds()
}

// worstQueue returns the excess over the burst in any window of any length,
// by the recursion of a virtual queue.
func worstQueue(ds []decision, b bucket) float64 {
	queue, worst, last := 0.0, 0.0, time.Duration(0)
	for _, t := range admittedTimes(ds) {
		queue = max(0, queue-b.rate*(t-last).Seconds()) + 1
		worst, last = max(worst, queue), t
	}
	return worst - b.burst
}

func admittedTimes(ds []decision) []time.Duration {
	var times []time.Duration
	for _, d := range ds {
		if d.outcome == admitted {
			times = append(times, d.answered)
		}
	}
	slices.Sort(times)
	return times
}

// utilisation compares what was admitted with what one ideal bucket, without
// any distance, would have admitted of the same requests, over the seconds in
// which more was asked for than the rate.
func utilisation(ds []decision, b bucket, length time.Duration) (ratio float64, seconds int) {
	asked := slices.Clone(ds)
	slices.SortFunc(asked, func(a, b decision) int { return int(a.asked - b.asked) })
	n := int(length/time.Second) + 1
	offered, ideal, real := make([]float64, n), make([]float64, n), make([]float64, n)
	level, last := b.burst, time.Duration(0)
	for _, d := range asked {
		s := int(d.asked / time.Second)
		if s >= n {
			continue
		}
		level, last = min(b.burst, level+b.rate*(d.asked-last).Seconds()), d.asked
		offered[s]++
		if level >= 1 {
			level--
			ideal[s]++
		}
		if d.outcome == admitted {
			real[s]++
		}
	}
	var sumIdeal, sumReal float64
	for s := range n {
		if offered[s] > b.rate {
			sumIdeal += ideal[s]
			sumReal += real[s]
			seconds++
		}
	}
	if sumIdeal == 0 {
		return 0, 0
	}
	return sumReal / sumIdeal, seconds
}
