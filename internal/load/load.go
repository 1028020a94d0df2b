// Package load calls something often and measures what that gives: throughput
// with callers that wait for each answer (Closed), latency with calls that
// arrive on a schedule whatever the answers do (Open).
//
// OpenWire is Open for a server of gRPC, at less cost to the caller.
//
// A closed loop cannot measure latency: while the system stalls, its callers
// stall too, and the calls that should have met the stall are never made. So
// Open counts a call's latency from when it was due, not from when it was made.
package load

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Call is one call by one of the callers, numbered from 0; n numbers that
// caller's calls in Closed and all calls in Open. An error counts as a failure.
type Call func(caller, n int) error

// Result is what a run gave.
type Result struct {
	// Calls is how many calls were made, of which Failed failed; Err is one of
	// their errors.
	Calls, Failed int64
	Err           error
	// Length is from the start to the end of the last call.
	Length time.Duration
	// latency is in microseconds, up to a minute with three digits; not of Closed.
	latency *hdrhistogram.Histogram
}

// PerSecond is the calls that did not fail, per second.
func (r Result) PerSecond() float64 { return float64(r.Calls-r.Failed) / r.Length.Seconds() }

// Quantile is the latency that q percent of the calls did not exceed, failed
// ones included.
func (r Result) Quantile(q float64) time.Duration {
	return time.Duration(r.latency.ValueAtQuantile(q)) * time.Microsecond
}

// Closed lets callers call one after another for length, each with one call
// under way at any time.
func Closed(callers int, length time.Duration, call Call) Result {
	start := time.Now()
	all := run(callers, func(c *caller) {
		for n := 0; time.Since(start) < length; n++ {
			c.note(call(c.id, n))
		}
	})
	return sum(all, start)
}

// Open makes rate calls per second for length, evenly spaced. At most callers
// are under way at a time; what does not fit waits, and its wait is part of its
// latency.
func Open(callers int, rate float64, length time.Duration, call Call) Result {
	total := int64(rate * length.Seconds())
	// One histogram for all callers: one each would be many megabytes to clear, in
	// the time that is measured.
	var latency histogram
	latency.h = newHistogram()
	var next atomic.Int64
	start := time.Now()
	all := run(callers, func(c *caller) {
		for n := next.Add(1) - 1; n < total; n = next.Add(1) - 1 {
			due := start.Add(time.Duration(float64(n) / rate * float64(time.Second)))
			time.Sleep(time.Until(due))
			c.note(call(c.id, int(n)))
			latency.record(time.Since(due))
		}
	})
	r := sum(all, start)
	r.latency = latency.h
	return r
}

// caller is one caller's own counts, so that callers share nothing.
type caller struct {
	id            int
	calls, failed int64
	err           error
	_             [64]byte // a cache line apart from the next one
}

func (c *caller) note(err error) {
	c.calls++
	if err != nil {
		c.failed++
		c.err = err
	}
}

const longest = time.Minute

// histogram is one that callers share.
type histogram struct {
	sync.Mutex
	h *hdrhistogram.Histogram
}

func newHistogram() *hdrhistogram.Histogram {
	return hdrhistogram.New(1, int64(longest/time.Microsecond), 3)
}

func (l *histogram) record(d time.Duration) {
	l.Lock()
	defer l.Unlock()
	_ = l.h.RecordValue(int64(min(d, longest) / time.Microsecond)) // it is in range
}

func run(callers int, do func(*caller)) []caller {
	all := make([]caller, callers)
	var running sync.WaitGroup
	for i := range all {
		all[i].id = i
		running.Go(func() { do(&all[i]) })
	}
	running.Wait()
	return all
}

func sum(all []caller, start time.Time) Result {
	r := Result{Length: time.Since(start)}
	for i := range all {
		c := &all[i]
		r.Calls += c.calls
		r.Failed += c.failed
		if c.err != nil {
			r.Err = c.err
		}
	}
	return r
}
