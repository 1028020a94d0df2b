package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Seen to catch: taking time.Date's midnight as the start without looking
// whether it was skipped.
func TestWindow(t *testing.T) {
	for _, c := range []struct {
		note, zone string
		period     policy.Period
		at         string
		start, end string
	}{
		{"hour", "UTC", policy.Hour, "2026-11-29T21:50:00Z", "2026-11-29T21:00:00Z", "2026-11-29T22:00:00Z"},
		{"hour of a half-hour zone", "Asia/Kolkata", policy.Hour, "2026-11-29T21:50:00Z", "2026-11-29T21:30:00Z", "2026-11-29T22:30:00Z"},
		{"day", "UTC", policy.Day, "2026-11-29T00:00:00Z", "2026-11-29T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"day of 23 hours", "Europe/Vienna", policy.Day, "2026-03-29T12:00:00Z", "2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z"},
		{"day of 25 hours", "Europe/Vienna", policy.Day, "2026-10-25T12:00:00Z", "2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z"},
		{"midnight skipped", "America/Havana", policy.Day, "2026-03-08T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"},
		{"clocks go back over midnight", "America/St_Johns", policy.Day, "2008-11-02T02:31:30Z", "2008-11-02T02:30:00Z", "2008-11-03T03:30:00Z"},
		{"day that was left out", "Pacific/Apia", policy.Day, "2011-12-30T12:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"},
		{"Sunday ends the week", "UTC", policy.Week, "2026-11-29T23:59:59Z", "2026-11-23T00:00:00Z", "2026-11-30T00:00:00Z"},
		{"Monday starts it", "UTC", policy.Week, "2026-11-30T00:00:00Z", "2026-11-30T00:00:00Z", "2026-12-07T00:00:00Z"},
		{"week over the year's end", "UTC", policy.Week, "2027-01-01T00:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{"February", "UTC", policy.Month, "2026-02-28T23:59:59Z", "2026-02-01T00:00:00Z", "2026-03-01T00:00:00Z"},
		{"leap February", "UTC", policy.Month, "2028-02-29T01:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{"31st", "UTC", policy.Month, "2026-12-31T12:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"month in another zone", "Asia/Tokyo", policy.Month, "2026-11-30T15:00:00Z", "2026-11-30T15:00:00Z", "2026-12-31T15:00:00Z"},
		{"year", "America/New_York", policy.Year, "2026-06-01T00:00:00Z", "2026-01-01T05:00:00Z", "2027-01-01T05:00:00Z"},
	} {
		start, end, err := policy.Window(c.zone, c.period, instant(t, c.at))
		if err != nil || start != instant(t, c.start) || end != instant(t, c.end) {
			t.Errorf("%s: [%s, %s) %v, want [%s, %s)", c.note, text(start), text(end), err, c.start, c.end)
		}
	}
}

func TestWindowRefuses(t *testing.T) {
	for _, c := range [][2]string{{"Nowhere/Land", "day"}, {"", "day"}, {"Local", "day"}, {"../../etc/passwd", "day"}, {"UTC", "decade"}, {"UTC", ""}} {
		if _, _, err := policy.Window(c[0], policy.Period(c[1]), 0); err == nil {
			t.Errorf("zone %q, period %q: want an error", c[0], c[1])
		}
	}
}

// Windows contain their instant, every instant of one window has the same
// window, and the next begins where it ends. Seen to catch: a week counted
// from its second day on.
func TestWindowsTileTime(t *testing.T) {
	zones := []string{
		"UTC", "Europe/Vienna", "America/Havana", "America/St_Johns", "America/Sao_Paulo", "Asia/Beirut",
		"Pacific/Apia", "Pacific/Kwajalein", "Australia/Lord_Howe", "Africa/Monrovia", "Asia/Kathmandu", "Africa/Casablanca",
	}
	periods := []policy.Period{policy.Hour, policy.Day, policy.Week, policy.Month, policy.Year}
	rapid.Check(t, func(t *rapid.T) {
		zone := rapid.SampledFrom(zones).Draw(t, "zone")
		period := rapid.SampledFrom(periods).Draw(t, "period")
		at := lease.Time(rapid.Int64Range(0, 2_000_000_000).Draw(t, "second") * 1_000_000)
		start, end := window(t, zone, period, at)
		if at < start || at >= end {
			t.Fatalf("%s is outside its window [%s, %s)", text(at), text(start), text(end))
		}
		if s, e := window(t, zone, period, start); s != start || e != end {
			t.Fatalf("the window's first instant has [%s, %s), not [%s, %s)", text(s), text(e), text(start), text(end))
		}
		if s, e := window(t, zone, period, end-1); s != start || e != end {
			t.Fatalf("the window's last instant has [%s, %s), not [%s, %s)", text(s), text(e), text(start), text(end))
		}
		if s, _ := window(t, zone, period, end); s != end {
			t.Fatalf("the next window starts at %s, not at %s", text(s), text(end))
		}
	})
}

func window(t *rapid.T, zone string, period policy.Period, at lease.Time) (start, end lease.Time) {
	start, end, err := policy.Window(zone, period, at)
	if err != nil {
		t.Fatal(err)
	}
	return start, end
}

func instant(t *testing.T, s string) lease.Time {
	at, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return lease.Time(at.UnixMicro())
}

func text(at lease.Time) string { return time.UnixMicro(int64(at)).UTC().Format(time.RFC3339Nano) }
