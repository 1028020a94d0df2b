package agent

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// counts feeds a demand one count after the other, every 100 ms.
func counts(d *demand, from time.Duration, ns ...lease.Tokens) time.Duration {
	for _, n := range ns {
		from += 100 * time.Millisecond
		d.observe(d.total+n, from)
	}
	return from
}

func repeat(n lease.Tokens, times int) []lease.Tokens {
	ns := make([]lease.Tokens, times)
	for i := range ns {
		ns[i] = n
	}
	return ns
}

// What was spent before demand moved, and in the count in which it did, is
// forgotten with the next count.
func TestDemandFollowsAMove(t *testing.T) {
	for _, to := range []lease.Tokens{300, 4, 0} {
		var d demand
		d.observe(0, 0)
		now := counts(&d, 0, repeat(40, 50)...)
		counts(&d, now, (40+to)/2, to)
		if want := float64(10 * to); math.Abs(d.rate-want) > 1e-6 {
			t.Errorf("from 400/s to %v/s: %v after two counts", want, d.rate)
		}
	}
}

// One count outside the noise that the next one does not bear out moves the
// estimate back, but not to nothing.
func TestDemandOutlivesAQuietCount(t *testing.T) {
	var d demand
	d.observe(0, 0)
	now := counts(&d, 0, repeat(40, 50)...)
	counts(&d, now, 200, 0, 40, 40)
	if d.rate < 300 {
		t.Errorf("%v/s after a burst and a quiet count, of 400/s", d.rate)
	}
}

// Requests of many tokens each are noisier than their tokens would be one by
// one: once that is known they are averaged.
func TestDemandKnowsItsNoise(t *testing.T) {
	var d demand
	d.observe(0, 0)
	rng := rand.New(rand.NewPCG(1, 2))
	now, jumps, sum := time.Duration(0), 0, 0.0
	for i := range 6600 {
		n := lease.Tokens(0)
		if rng.Float64() < 0.5 {
			n = 1000
		}
		now = counts(&d, now, n)
		if i < 600 {
			continue
		}
		sum += d.rate
		if d.jump != 0 {
			jumps++
		}
	}
	if mean := sum / 6000; jumps > 0 || mean < 4500 || mean > 5500 {
		t.Errorf("%d jumps in ten minutes, and an estimate of %v/s, of 5000/s", jumps, mean)
	}
}

// A request every half minute is told from one every ten seconds.
func TestDemandAveragesTheSparse(t *testing.T) {
	for _, every := range []time.Duration{10 * time.Second, 30 * time.Second} {
		var d demand
		d.observe(0, 0)
		low, high := math.Inf(1), 0.0
		for now := 100 * time.Millisecond; now < 20*time.Minute; now += 100 * time.Millisecond {
			n := d.total
			if now%every == 0 {
				n++
			}
			d.observe(n, now)
			if now > 10*time.Minute {
				low, high = min(low, d.rate), max(high, d.rate)
			}
		}
		if want := 1 / every.Seconds(); low < want/1.5 || high > 1.5*want {
			t.Errorf("one every %v: from %v to %v a second, want about %v", every, low, high, want)
		}
	}
}

// Few tokens stay where requests are rare for as long as one is due, at most
// half a minute.
func TestFewTokensStayWhereRequestsAreRare(t *testing.T) {
	for _, c := range []struct {
		burst lease.Tokens
		wait  time.Duration
		rate  float64
		want  time.Duration
	}{
		{5, 0, 0.05, 20 * time.Second},
		{5, 0, 0.01, rarelyUsedFor},
		{5, 0, 0, rarelyUsedFor},
		{5, 0, 1, usedFor},
		{5, time.Millisecond, 0.05, usedFor},
		{21, 0, 0.05, usedFor},
	} {
		b := bucket("acme/x", 1, c.burst, policy.Dynamic)
		b.Wait = c.wait
		w := ward{budget: new(termsMaker).terms(&b), demand: demand{rate: c.rate}}
		if got := w.usedFor(); got != c.want {
			t.Errorf("%+v: in use for %v", c, got)
		}
	}
}
