package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// What headers say of a contract: a bucket's window is the time it fills in,
// a quota's the length of the calendar's current one.
func TestAnswersStateTheContractsWindow(t *testing.T) {
	february := time.Date(2026, time.February, 27, 12, 0, 0, 0, time.UTC)
	d := &Decider{opt: Options{Wall: func() time.Time { return february }}}
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		contract      policy.Contract
		window, reset time.Duration
	}{
		"bucket": {policy.Contract{Rate: perSecond(1000), Burst: 2000}, 2 * time.Second, 1500 * time.Millisecond},
		"month":  {policy.Contract{Quota: policy.Quota{N: 9000, Per: policy.Month, Zone: "UTC"}}, 28 * day, day + 12*time.Hour},
		"once":   {policy.Contract{Burst: 2000}, 0, 0},
	} {
		e := newEntry(&terms{Name: name, limits: &limits{Contract: c.contract, rules: &rules{}}})
		for range 2 { // the second time from the cache
			a := d.answer(e, 0, lease.Tokens(500))
			if a.Window != c.window || a.ResetAfter != c.reset {
				t.Errorf("%s: window %v, reset %v", name, a.Window, a.ResetAfter)
			}
		}
	}
}
