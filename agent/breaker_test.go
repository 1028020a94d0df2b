package agent

import (
	"testing"
	"time"
)

const ms = time.Millisecond

// failAt fails a call that was made at start, and reports whether the breaker
// is open.
func (b *breaker) failAt(start, now time.Duration) bool {
	b.report(start, now, false)
	return b.open
}

// A stall that is over in a few milliseconds fails whatever was under way, and
// that alone is no reason to stop asking.
func TestBreakerBearsAShortStall(t *testing.T) {
	var b breaker
	for range 100 {
		if b.failAt(0, 5*ms) {
			t.Fatal("open after one stall")
		}
	}
	b.report(6*ms, 7*ms, true)
	if b.failAt(40*ms, 45*ms) {
		t.Fatal("a success did not end the row of failures")
	}
}

// Calls that were under way when the breaker opened do not lengthen its
// pauses, and only a probe's failure does.
func TestBreakerCountsOnlyProbesOnceOpen(t *testing.T) {
	var b breaker
	for i := range breakerAfter {
		b.failAt(time.Duration(i)*10*ms, time.Duration(i)*10*ms+5*ms)
	}
	if !b.open {
		t.Fatal("still closed")
	}
	opened := b.openedAt
	for range 50 {
		b.failAt(opened-ms, opened+4*ms)
	}
	if got := b.until - opened; got != breakerFirst {
		t.Errorf("the first pause is %v, want %v", got, breakerFirst)
	}
	if b.allow(b.until - 1) {
		t.Error("a call within the pause")
	}
	probe := b.until
	if !b.allow(probe) || b.allow(probe) {
		t.Error("want exactly one probe after the pause")
	}
	b.failAt(probe, probe+5*ms)
	if got := b.until - (probe + 5*ms); got != 2*breakerFirst {
		t.Errorf("the second pause is %v, want %v", got, 2*breakerFirst)
	}
	if !b.allow(b.until) {
		t.Error("no second probe")
	}
	b.report(b.until, b.until+ms, true)
	if b.open || !b.allow(b.until+ms) {
		t.Error("open after the store answered")
	}
}
