package postgres_test

import (
	"fmt"
	"reflect"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// fill sets every field of a row to a value of its own, so that a column that
// is missing, or swapped with another, shows.
func fill(v reflect.Value, next *int64) {
	*next++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i), next)
		}
	case reflect.Int64:
		// Durations are stored in whole microseconds.
		v.SetInt(*next * 1000)
	case reflect.Uint8:
		v.SetUint(uint64(*next % 200))
	case reflect.Uint64:
		v.SetUint(1<<63 + uint64(*next))
	case reflect.Float64:
		v.SetFloat(float64(*next) + 0.1)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(fmt.Sprintf("\x00näme %06d", *next))
	default:
		panic("fill: a row has a field of kind " + v.Kind().String())
	}
}

func filled[R any](next *int64) (row R) {
	fill(reflect.ValueOf(&row).Elem(), next)
	return row
}

func filledState(name string, next *int64) *allocation.State {
	s := &allocation.State{Budget: bucket(name)}
	for range 2 {
		s.Pools = append(s.Pools, filled[allocation.Pool](next))
		s.Regions = append(s.Regions, filled[allocation.Region](next))
		s.Locals = append(s.Locals, filled[allocation.Local](next))
		l := filled[allocation.Lease](next)
		l.Ending = allocation.Expired            // the one string that is text
		l.Window = s.Pools[len(s.Pools)-1].Start // a lease is cut from a pool that is there
		s.Leases = append(s.Leases, l)
	}
	return s
}

func bucket(name string) policy.Budget {
	return policy.Budget{
		Name:        name,
		Match:       map[string]string{"tenant": name},
		Contract:    policy.Contract{Rate: lease.Rate{Tokens: 1000, Per: 1e9}, Burst: 2000},
		Strategy:    policy.Dynamic,
		Regions:     []policy.Region{{Name: "eu\x00", Weight: 40}, {Name: "us", Weight: 60}},
		TTL:         10e9,
		ShareTTL:    3600e9,
		OnFailure:   policy.Failure{Mode: policy.Deny},
		OnStoreLoss: policy.Regrant,
	}
}
