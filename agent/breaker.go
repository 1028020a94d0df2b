package agent

import "time"

// breaker stops calls to a store primary that does not answer, so that a
// stalled store costs each decision nothing more. It is driven by the
// caller's clock, as all of this package is: a library's breaker reads the
// machine's, which a simulator cannot move. The zero value is closed. Its
// owner guards it.
type breaker struct {
	failures int           // in a row, while closed
	since    time.Duration // when the first of them failed

	open     bool
	openedAt time.Duration
	pauses   int           // since it opened
	until    time.Duration // no call before
	probing  bool          // one call is out to see whether the store is back
}

const (
	breakerAfter = 5 // failures in a row
	// breakerSpan is how long nothing must have succeeded as well: a stall of a
	// few milliseconds fails many calls at once and is over before they are told.
	breakerSpan    = 25 * time.Millisecond
	breakerFirst   = 100 * time.Millisecond
	breakerLongest = 500 * time.Millisecond
)

// allow reports whether a call may be made now. While open, one call at a
// time is let through after each pause.
func (b *breaker) allow(now time.Duration) bool {
	if !b.open {
		return true
	}
	if b.probing || now < b.until {
		return false
	}
	b.probing = true
	return true
}

// failing reports whether nothing has succeeded since a call failed.
func (b *breaker) failing() bool { return b.open || b.failures > 0 }

// report books the outcome at now of a call that was made at start, and says
// whether it opened the breaker.
func (b *breaker) report(start, now time.Duration, ok bool) (opened bool) {
	switch {
	case ok:
		*b = breaker{}
		return false
	case !b.open:
		if b.failures == 0 {
			b.since = now
		}
		b.failures++
		if b.failures < breakerAfter || now-b.since < breakerSpan {
			return false
		}
		b.open, b.openedAt = true, now
		b.pause(now)
		return true
	case start >= b.openedAt:
		b.pause(now)
	}
	// Else the call was under way when the breaker opened: it says nothing new.
	return false
}

// pause lets no call through for a while that doubles each time.
func (b *breaker) pause(now time.Duration) {
	b.until = now + min(breakerFirst<<min(b.pauses, 10), breakerLongest)
	b.pauses++
	b.probing = false
}
