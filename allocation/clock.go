package allocation

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

const (
	// clockFresh is how old the stored governed time may be for a replica
	// without history to believe the database's reading. It is also the largest
	// forward step that a replica can overlook, once, when it starts.
	clockFresh = 3 * time.Second
	// clockBehind is how far the database's clock may fall behind the governed
	// time before the offset is lowered; below it the governed time just stands
	// until the reading has caught up.
	clockBehind = time.Second
)

// ClockRow is what all replicas of the ledger share about its clock.
type ClockRow struct {
	// Shift is the governed clock's offset: governed time is the database's
	// reading less Shift.
	Shift time.Duration
	// Governed and Raw are the highest times that a replica has written, about
	// once a second; 0 before the first.
	Governed, Raw lease.Time
}

// ClockReading is one look at the database's clock.
type ClockReading struct {
	Row ClockRow
	// DB was read after Row.
	DB lease.Time
	// Sent and Received enclose the reading on this replica's monotonic clock.
	Sent, Received time.Duration
}

// Clock is one replica's memory of the ledger's clock. The zero value is a
// replica that has just started. It is a plain value; the caller serializes
// its use.
//
// It keeps governed time from running faster than the replica's own monotonic
// clock allows: for any two readings i before j that it accepts,
// governed(j) - governed(i) <= (1+rho)·(received(j) - sent(i)), so the slack is
// the time that the two readings took, however many lie between them. Only a
// time that another replica has stored lifts that limit.
//
// What no replica can see is declared slack: a forward step of at most 3 s
// before the one that starts, and a backward step that returns between two of
// a replica's readings, which are at most about a second apart.
type Clock struct {
	started bool
	last    Now
	// anchored and sent are the reading whose line, governed + (1+rho)·(time
	// since it was sent), is the lowest.
	anchored lease.Time
	sent     time.Duration
}

// Verdict is what Govern makes of a reading: the time, or a shift that must
// replace the row's by compare-and-set before the clock is read again.
type Verdict struct {
	Now   Now
	Shift time.Duration
	// Move says that the reading must not be used: Shift comes first.
	Move bool
}

// Govern decides what the ledger's time is at a reading. driftPPM
// bounds the error of clock rates, as in lease.Clocks. It returns the memory
// to keep, with Move as well.
func (c Clock) Govern(r ClockReading, driftPPM int64) (Clock, Verdict) {
	reading := r.DB.Add(-r.Row.Shift)
	c.believe(r, reading, driftPPM)
	floor := max(r.Row.Governed, c.last.Governed)
	if limit := max(floor, c.line(r.Received, driftPPM)); reading > limit {
		return c, Verdict{Move: true, Shift: r.DB.Sub(limit)}
	}
	if floor.Sub(reading) > clockBehind {
		return c, Verdict{Move: true, Shift: r.DB.Sub(floor)}
	}
	c.last.Governed = max(floor, reading)
	c.last.Raw = max(r.Row.Raw, c.last.Raw, r.DB)
	c.lower(r, driftPPM)
	return c, Verdict{Now: c.last, Shift: r.Row.Shift}
}

// believe sets the anchor from the row, where there is none or where another
// replica has vouched for more than this one's line allows: a replica whose
// own clock stood still, as in a suspended machine, must not hold the others
// back. A replica that starts believes the reading if the stored time is
// fresh, or if nothing is stored, and else goes on from the stored time.
func (c *Clock) believe(r ClockReading, reading lease.Time, driftPPM int64) {
	stored := r.Row.Governed
	switch {
	case !c.started && (stored == 0 || reading.Sub(stored) <= clockFresh):
		c.anchor(max(stored, reading), r.Sent)
	case !c.started || stored > c.line(r.Received, driftPPM):
		c.anchor(stored, r.Sent)
	}
	c.started = true
}

// lower moves the anchor to this reading if its line is the lower one.
func (c *Clock) lower(r ClockReading, driftPPM int64) {
	if c.last.Governed.Add(fastest(r.Received-r.Sent, driftPPM)) < c.line(r.Received, driftPPM) {
		c.anchor(c.last.Governed, r.Sent)
	}
}

func (c *Clock) anchor(governed lease.Time, sent time.Duration) {
	c.anchored, c.sent = governed, sent
}

// line is the highest governed time to believe at one instant of this
// replica's clock.
func (c Clock) line(at time.Duration, driftPPM int64) lease.Time {
	return c.anchored.Add(fastest(at-c.sent, driftPPM))
}

// fastest is the most that any clock of the deployment can show while this
// replica's shows d, rounded up to a microsecond.
func fastest(d time.Duration, driftPPM int64) time.Duration {
	us := max(0, int64(d/time.Microsecond))
	const million = 1_000_000
	extra := us/million*driftPPM + (us%million*driftPPM+million-1)/million
	return time.Duration(us+extra) * time.Microsecond
}
