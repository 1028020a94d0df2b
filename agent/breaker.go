package agent

import "time"

// breaker stops calls to a store primary that does not answer, so that a
// stalled store costs each decision nothing more. It is driven by the
// caller's clock, as all of this package is: a library's breaker reads the
// machine's, which a simulator cannot move. The zero value is closed. Its
// owner guards it.
type breaker struct {
	failures int           // in a row
	until    time.Duration // no call before, once open
	probing  bool          // one call is out to see whether the store is back
}

const (
	breakerAfter   = 5 // failures in a row
	breakerFirst   = 100 * time.Millisecond
	breakerLongest = 2 * time.Second
)

func (b *breaker) open() bool { return b.failures >= breakerAfter }

// allow reports whether a call may be made now. While open, one call at a
// time is let through after each pause.
func (b *breaker) allow(now time.Duration) bool {
	if !b.open() {
		return true
	}
	if b.probing || now < b.until {
		return false
	}
	b.probing = true
	return true
}

// report books a call's outcome, and says whether it opened the breaker.
func (b *breaker) report(now time.Duration, ok bool) (opened bool) {
	b.probing = false
	if ok {
		b.failures = 0
		return false
	}
	b.failures++
	if !b.open() {
		return false
	}
	pause := breakerFirst << min(b.failures-breakerAfter, 10)
	b.until = now + min(pause, breakerLongest)
	return b.failures == breakerAfter
}
