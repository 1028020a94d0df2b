package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// hostClock is a host's clock as a function of the true time since the start.
// Its monotonic part drifts and can stand still; its wall part follows it and
// can be stepped too.
type hostClock struct {
	// from and shown anchor the monotonic clock: it showed shown at from.
	from, shown time.Duration
	ppm         int64
	stopped     bool
	// wall is what the wall clock shows when the monotonic one shows 0.
	wall lease.Time
}

// monoOrigin keeps monotonic readings away from 0, which some code reads as
// "never".
const monoOrigin = time.Hour

func newClock(epoch lease.Time, c Clock) *hostClock {
	return &hostClock{shown: monoOrigin, ppm: c.DriftPPM, wall: epoch.Add(c.Offset - monoOrigin)}
}

// drifted is d as a clock shows it whose error is ppm, rounded down.
func drifted(d time.Duration, ppm int64) time.Duration {
	us := int64(d / time.Microsecond)
	const million = 1_000_000
	extra := us/million*ppm + floorDiv(us%million*ppm, million)
	return time.Duration(us+extra) * time.Microsecond
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// mono returns the monotonic reading at t.
func (c *hostClock) mono(t time.Duration) time.Duration {
	if c.stopped {
		return c.shown
	}
	return c.shown + drifted(t-c.from, c.ppm)
}

// time returns the wall clock's reading at t.
func (c *hostClock) time(t time.Duration) lease.Time { return c.wall.Add(c.mono(t)) }

// when returns the first instant, not before now, at which the monotonic
// clock shows reading or more; never, if it stands.
func (c *hostClock) when(reading, now time.Duration) time.Duration {
	left := reading - c.mono(now)
	switch {
	case left <= 0:
		return now
	case c.stopped:
		return never
	}
	us := int64(left / time.Microsecond)
	den := 1_000_000 + c.ppm
	t := now + time.Duration(us/den*1_000_000+us%den*1_000_000/den)*time.Microsecond
	for c.mono(t) < reading {
		t += time.Microsecond
	}
	for t > now && c.mono(t-time.Microsecond) >= reading {
		t -= time.Microsecond
	}
	return t
}

// rebase makes changes at now leave the past alone.
func (c *hostClock) rebase(now time.Duration) {
	c.shown = c.mono(now)
	c.from = now
}

func (c *hostClock) setDrift(now time.Duration, ppm int64) {
	c.rebase(now)
	c.ppm = ppm
}

func (c *hostClock) step(d time.Duration) { c.wall = c.wall.Add(d) }

func (c *hostClock) stop(now time.Duration) {
	c.rebase(now)
	c.stopped = true
}

func (c *hostClock) start(now time.Duration) {
	c.from, c.stopped = now, false
}
