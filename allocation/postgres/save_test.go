package postgres

import (
	"testing"

	"github.com/ration-dev/ration/lease"
)

// A lease that is extended in time is never swept, and its due time is written
// once in a while only. Seen to fail with the due time moved only when it has
// come, and with it moved each time.
func TestWhatRegionsKeepAliveIsNotSwept(t *testing.T) {
	const ttl = 10_000
	stored, writes, syncs := lease.Time(0), 0, 0
	for now := lease.Time(1); now < 100*ttl; now += ttl / 9 {
		if stored != 0 && stored <= now {
			t.Fatalf("at %d the sweep looks for what is due at %d", now, now+ttl)
		}
		syncs++
		if mustMove(stored, now+ttl, now) {
			stored, writes = now+ttl, writes+1
		}
	}
	if writes*6 > syncs {
		t.Errorf("%d of %d extensions moved the due time", writes, syncs)
	}
}

func TestADueTimeIsNeverStoredTooLate(t *testing.T) {
	for _, c := range []struct {
		stored, due, now lease.Time
		want             bool
	}{
		{stored: 0, due: 0, now: 10, want: false},
		{stored: 0, due: 20, now: 10, want: true},
		{stored: 20, due: 19, now: 10, want: true},
		{stored: 20, due: 5, now: 10, want: true},
		{stored: 20, due: 20, now: 10, want: false},
		{stored: 10, due: 20, now: 10, want: true},
		{stored: 20, due: 0, now: 10, want: false}, // a sweep in vain, once
		{stored: 10, due: 0, now: 10, want: true},
		{stored: 5, due: 5, now: 10, want: false},
	} {
		if got := mustMove(c.stored, c.due, c.now); got != c.want {
			t.Errorf("stored %d, due %d, at %d: %v", c.stored, c.due, c.now, got)
		}
	}
}
