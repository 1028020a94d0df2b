package redis

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// reply reads a script's flat answer in its order. The first value of another
// type than asked for sets err; what is read after it is zero.
type reply struct {
	replid string
	vals   []any
	at     int
	err    error
}

func (r *reply) more() bool { return r.err == nil && r.at < len(r.vals) }

func (r *reply) next() any {
	if !r.more() {
		r.fail(nil)
		return nil
	}
	v := r.vals[r.at]
	r.at++
	return v
}

func (r *reply) fail(v any) {
	if r.err == nil {
		r.err = lease.Errorf(lease.Internal, "", "a script's answer has %T at %d of %d", v, r.at, len(r.vals))
	}
}

func (r *reply) str() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail(v)
	}
	return s
}

func (r *reply) num() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok {
		r.fail(v)
	}
	return n
}

func (r *reply) bool() bool           { return r.num() != 0 }
func (r *reply) tokens() lease.Tokens { return lease.Tokens(r.num()) }
func (r *reply) time() lease.Time     { return lease.Time(r.num()) }

func (r *reply) duration() time.Duration { return time.Duration(r.num()) * time.Microsecond }

func (r *reply) rate() lease.Rate {
	return lease.Rate{Tokens: r.tokens(), Per: r.duration()}
}

// micros is a duration in whole microseconds, as scripts count.
func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}
