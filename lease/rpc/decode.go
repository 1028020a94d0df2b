package rpc

import (
	"fmt"
	"math"
	"time"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

// maxMicros is the longest duration that Go can hold, in microseconds.
const maxMicros = math.MaxInt64 / int64(time.Microsecond)

// micros cuts d to whole microseconds, toward zero.
func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// decoder remembers the first field that has no counterpart in Go.
type decoder struct{ err *lease.Error }

// refuse records that the named field is at fault. args make the name, so
// that it costs nothing where all is well.
func (d *decoder) refuse(reason, name string, args ...any) {
	if d.err == nil {
		d.err = lease.Errorf(lease.Invalid, fmt.Sprintf(name, args...), "%s", reason)
	}
}

func (d *decoder) atMost(most, n int, name string, args ...any) {
	if n > most {
		d.refuse(fmt.Sprintf("has %d entries, at most %d are allowed", n, most), name, args...)
	}
}

func (d *decoder) duration(us int64, name string, args ...any) time.Duration {
	if us > maxMicros || us < -maxMicros {
		d.refuse("a duration beyond what can be handled", name, args...)
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

func (d *decoder) rate(m *rationv1.Rate, name string, args ...any) lease.Rate {
	return lease.Rate{
		Tokens: lease.Tokens(m.GetTokens()),
		Per:    d.duration(m.GetPerUs(), name+".per_us", args...),
	}
}

func (d *decoder) kind(m rationv1.Kind, name string, args ...any) lease.Kind {
	if m < 1 || m > lease.Kinds {
		d.refuse(unknown(m), name, args...)
		return 0
	}
	return lease.Kind(m)
}

// unknown is the reason for refusing an enum value.
func unknown(value fmt.Stringer) string {
	return fmt.Sprintf("unknown value %v", value)
}

// rateToProto leaves a rate of all zeros unset.
func rateToProto(r lease.Rate) *rationv1.Rate {
	if r == (lease.Rate{}) {
		return nil
	}
	return &rationv1.Rate{Tokens: int64(r.Tokens), PerUs: micros(r.Per)}
}
