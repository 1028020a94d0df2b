package allocation

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// window returns the calendar window of q that t lies in, as raw times: from
// its first instant to that of the next window. Weeks start on Monday; an
// hour is counted from the zone's own full hour. An unknown zone counts as
// UTC: policies are validated before they come here.
func window(q policy.Quota, t lease.Time) (start, end lease.Time) {
	zone, err := time.LoadLocation(q.Zone)
	if err != nil {
		zone = time.UTC
	}
	at := time.UnixMicro(int64(t)).In(zone)
	first, next := calendar(q.Per, at)
	if !at.Before(next) {
		// Where clocks skip midnight, a day's nominal start may lie before the end
		// of the day before.
		first, next = calendar(q.Per, at.Add(12*time.Hour))
	}
	return lease.Time(first.UnixMicro()), lease.Time(next.UnixMicro())
}

func calendar(per policy.Period, at time.Time) (first, next time.Time) {
	y, m, d := at.Date()
	day := func(y int, m time.Month, d int) time.Time {
		return time.Date(y, m, d, 0, 0, 0, 0, at.Location())
	}
	switch per {
	case policy.Hour:
		// Not by time.Date: where clocks are set back, an hour comes twice.
		into := time.Duration(at.Minute())*time.Minute +
			time.Duration(at.Second())*time.Second + time.Duration(at.Nanosecond())
		first = at.Add(-into)
		return first, first.Add(time.Hour)
	case policy.Week:
		monday := d - (int(at.Weekday())+6)%7
		return day(y, m, monday), day(y, m, monday+7)
	case policy.Month:
		return day(y, m, 1), day(y, m+1, 1)
	case policy.Year:
		return day(y, 1, 1), day(y+1, 1, 1)
	}
	return day(y, m, d), day(y, m, d+1)
}
