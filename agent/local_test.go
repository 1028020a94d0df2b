package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// A process's part of the local allowance is minted during an outage of the
// store and gone when the store has answered: between two outages, or under
// another primary, nothing is saved up. Seen to catch: the bucket going on from
// where the last outage left it.
func TestLocalBucketStartsEmptyAtEachOutage(t *testing.T) {
	const second = time.Second
	f := policy.Failure{Mode: policy.AllowLocal, Rate: perSecond(80), Burst: 800}
	var l localBucket
	spend := func(primary string, answered, now time.Duration) lease.Tokens {
		l.outage(primary, answered)
		var n lease.Tokens
		for {
			if ok, _ := l.take(f, 8, 1, now); !ok {
				return n
			}
			n++
		}
	}
	for _, c := range []struct {
		note          string
		primary       string
		answered, now time.Duration
		want          lease.Tokens
	}{
		{"first failure", "a", 100 * second, 101 * second, 0},
		{"two seconds into the outage", "a", 100 * second, 103 * second, 20},
		{"nothing twice", "a", 100 * second, 103 * second, 0},
		{"the next outage, much later", "a", 200 * second, 201 * second, 0},
		{"one second into it", "a", 200 * second, 202 * second, 10},
		{"another primary", "b", 0, 230 * second, 0},
		{"no more than its part", "b", 0, 330 * second, 100},
	} {
		if got := spend(c.primary, c.answered, c.now); got != c.want {
			t.Errorf("%s: %d admitted, want %d", c.note, got, c.want)
		}
	}
}

// What a call that succeeded leaves behind is what the bucket goes by.
func TestPrimariesRememberWhenOneAnswered(t *testing.T) {
	p := newPrimaries(lease.DefaultClocks())
	p.report("a", 5*time.Second, 5*time.Second, true)
	p.report("a", 7*time.Second, 7*time.Second, false)
	if p.answered("a") != 5*time.Second || p.answered("b") != 0 {
		t.Errorf("answered at %v and %v, want 5s and never", p.answered("a"), p.answered("b"))
	}
}
