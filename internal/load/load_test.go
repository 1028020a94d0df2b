package load

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestClosedWaitsForEachAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failed := errors.New("x")
		r := Closed(4, time.Second, func(_, n int) error {
			time.Sleep(10 * time.Millisecond)
			if n%10 == 0 {
				return failed
			}
			return nil
		})
		if r.Calls != 400 || r.Failed != 40 || r.Err != failed || r.Length != time.Second || r.PerSecond() != 360 {
			t.Errorf("%+v, %v per second", r, r.PerSecond())
		}
	})
}

// A stall of 100 ms is met by all calls that were due in it. Seen to catch:
// latency counted from when a call was made, which shows one slow call.
func TestOpenCountsFromWhenACallWasDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Open(1, 1000, time.Second, func(_, n int) error {
			if n == 500 {
				time.Sleep(100 * time.Millisecond)
			}
			return nil
		})
		if r.Calls != 1000 || r.Length != 999*time.Millisecond {
			t.Errorf("%d calls in %v", r.Calls, r.Length)
		}
		near := func(q float64, want time.Duration) {
			if got := r.Quantile(q); got < want-time.Millisecond || got > want+time.Millisecond {
				t.Errorf("quantile %v: %v, want about %v", q, got, want)
			}
		}
		near(50, 0)
		near(90, 0)
		near(95, 50*time.Millisecond)
		near(99, 90*time.Millisecond)
		near(100, 100*time.Millisecond)
	})
}

func TestOpenKeepsItsScheduleWithCallsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Open(10, 100, time.Second, func(int, int) error { time.Sleep(90 * time.Millisecond); return nil })
		if r.Calls != 100 || r.Quantile(100) > 91*time.Millisecond {
			t.Errorf("%d calls, the slowest %v: they do not wait for one another", r.Calls, r.Quantile(100))
		}
	})
}
