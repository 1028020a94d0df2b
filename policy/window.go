package policy

import (
	"fmt"
	"time"
	_ "time/tzdata" // zones must be the same on every machine, with or without a system database

	"github.com/ration-dev/ration/lease"
)

// Location returns the zone of a quota. "Local" is refused: the meaning of a
// budget must not depend on the machine that reads it.
func Location(zone string) (*time.Location, error) {
	if zone == "" || zone == "Local" {
		return nil, fmt.Errorf("%q is not a time zone: write an IANA name such as UTC or Europe/Vienna", zone)
	}
	loc, err := time.LoadLocation(zone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a time zone: write an IANA name such as UTC or Europe/Vienna", zone)
	}
	return loc, nil
}

// Window returns the calendar window of a quota that contains raw: start <=
// raw < end. Days, weeks (from Monday), months and years begin at the zone's
// midnight; where the clocks skip midnight, at the first instant after it.
// Consecutive windows meet exactly. A change of the clocks makes a day 23 or
// 25 hours long and never opens a second window; an hour that such a change
// cuts is two windows. It loads the zone each time: keep the window and ask
// again only for an instant outside it.
func Window(zone string, period Period, raw lease.Time) (start, end lease.Time, err error) {
	loc, err := Location(zone)
	if err != nil {
		return 0, 0, err
	}
	at := time.UnixMicro(int64(raw)).In(loc)
	if period == Hour {
		start, end = hourOf(at)
		return start, end, nil
	}
	year, month, dayOf := at.Date()
	first := date{year, month, dayOf}
	switch period {
	case Day:
	case Week:
		first.day -= (int(at.Weekday()) + 6) % 7
	case Month:
		first.day = 1
	case Year:
		first.month, first.day = time.January, 1
	default:
		return 0, 0, fmt.Errorf("%q is not a calendar window: write hour, day, week, month or year", period)
	}
	// Instants decide, not dates: where clocks go back over midnight a date
	// comes twice.
	for !startOf(first, loc).After(at) {
		first = first.step(period, 1)
	}
	next := first
	for first = first.step(period, -1); startOf(first, loc).After(at); first = first.step(period, -1) {
		next = first
	}
	return micros(startOf(first, loc)), micros(startOf(next, loc)), nil
}

// date is a calendar date, not normalized.
type date struct {
	year  int
	month time.Month
	day   int
}

func (d date) step(period Period, n int) date {
	switch period {
	case Day:
		d.day += n
	case Week:
		d.day += 7 * n
	case Month:
		d.month += time.Month(n)
	case Year:
		d.year += n
	}
	return d
}

// startOf returns the first instant of a date.
func startOf(d date, loc *time.Location) time.Time {
	t := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, loc)
	want := time.Date(d.year, d.month, d.day, 0, 0, 0, 0, time.UTC)
	reached := func(t time.Time) bool {
		y, m, day := t.In(loc).Date()
		return !time.Date(y, m, day, 0, 0, 0, 0, time.UTC).Before(want)
	}
	if reached(t) && !reached(t.Add(-time.Second)) {
		return t
	}
	// Midnight was skipped: find the change of the clocks, which falls on a
	// whole second within a day and a bit of UTC's midnight.
	low, high := want.Unix()-int64(50*time.Hour/time.Second), want.Unix()+int64(50*time.Hour/time.Second)
	for low+1 < high {
		middle := low + (high-low)/2
		if reached(time.Unix(middle, 0)) {
			high = middle
		} else {
			low = middle
		}
	}
	return time.Unix(high, 0)
}

// hourOf returns the clock hour of at, cut where the zone's offset changes
// within it.
func hourOf(at time.Time) (start, end lease.Time) {
	_, offset := at.Zone()
	const hour = int64(time.Hour / time.Microsecond)
	us := at.UnixMicro()
	local := us + int64(offset)*int64(time.Second/time.Microsecond)
	into := local % hour
	if into < 0 {
		into += hour
	}
	start, end = lease.Time(us-into), lease.Time(us-into+hour)
	zoneStart, zoneEnd := at.ZoneBounds()
	if !zoneStart.IsZero() {
		start = max(start, micros(zoneStart))
	}
	if !zoneEnd.IsZero() {
		end = min(end, micros(zoneEnd))
	}
	return start, end
}

func micros(t time.Time) lease.Time { return lease.Time(t.UnixMicro()) }
