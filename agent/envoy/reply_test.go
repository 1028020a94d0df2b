package envoy

import (
	"math"
	"testing"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// A contract is said exactly or not at all. Seen to catch: a rate rounded to a
// unit that it has no whole number of.
func TestLimitsAreSaidExactly(t *testing.T) {
	type said struct {
		requests, multiple uint32
		unit               string
	}
	for _, c := range []struct {
		contract policy.Contract
		want     said
	}{
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: time.Second}}, said{7, 0, "SECOND"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 10 * time.Second}}, said{7, 10, "SECOND"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 100 * time.Millisecond}}, said{70, 0, "SECOND"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 90 * time.Minute}}, said{7, 90, "MINUTE"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 48 * time.Hour}}, said{7, 2, "DAY"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 14 * 24 * time.Hour}}, said{7, 2, "WEEK"}},
		{policy.Contract{Rate: lease.Rate{Tokens: 7, Per: 700 * time.Millisecond}}, said{}},
		{policy.Contract{Rate: lease.Rate{Tokens: math.MaxUint32, Per: 500 * time.Millisecond}}, said{}},
		{policy.Contract{}, said{}},
		{policy.Contract{Quota: policy.Quota{N: 9, Per: policy.Year}}, said{9, 0, "YEAR"}},
		{policy.Contract{Quota: policy.Quota{N: 9, Per: policy.Hour}}, said{9, 0, "HOUR"}},
		{policy.Contract{Quota: policy.Quota{N: 1 << 40, Per: policy.Hour}}, said{}},
	} {
		var got said
		if l, exact := limitOf(agent.Matched{Budget: "a/b", Contract: &c.contract}); exact {
			got = said{l.requests, l.multiple, l.unit.String()}
		}
		if got != c.want {
			t.Errorf("%+v: %+v, want %+v", c.contract, got, c.want)
		}
	}
}
