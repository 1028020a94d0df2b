package agent

import (
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
)

// demand estimates a region's offered cost in tokens per second from the
// wallet's cumulative total: an average that jumps when what arrived lies
// outside the noise of what was expected. The zero value knows
// nothing yet.
type demand struct {
	rate  float64
	total lease.Tokens
	at    time.Duration
	known bool
}

const (
	// demandWindow is the shortest time over which arrivals are counted.
	demandWindow = 40 * time.Millisecond
	// demandNoise is how many standard deviations of a Poisson count are noise.
	demandNoise = 4
)

// observe books the row's total as read at now. A total below the last one
// belongs to a new row and starts the count anew.
func (d *demand) observe(total lease.Tokens, now time.Duration) {
	if !d.known || total < d.total {
		d.total, d.at, d.known = total, now, true
		return
	}
	dt := (now - d.at).Seconds()
	if now-d.at < demandWindow {
		return
	}
	n := float64(total - d.total)
	d.total, d.at = total, now
	expected := d.rate * dt
	if math.Abs(n-expected) > demandNoise*math.Sqrt(expected+1) {
		d.rate = n / dt
		return
	}
	span := min(max(1, 10/d.rate), 10) // without an upper end, 0 would stay 0
	d.rate += (n/dt - d.rate) * (1 - math.Exp(-dt/span))
}

// noise is one standard deviation of the estimate, in tokens per second.
func (d *demand) noise() float64 { return math.Sqrt(d.rate + 1) }

// timeFor is how long n tokens of demand take, held to [least, most].
func (d *demand) timeFor(n float64, least, most time.Duration) time.Duration {
	if d.rate <= 0 || n/d.rate >= most.Seconds() {
		return most
	}
	return max(least, time.Duration(n/d.rate*float64(time.Second)))
}

// need is how many tokens a region should hold so that a Sync of this round
// trip comes back before they run out.
func (d *demand) need(rtt, every time.Duration) lease.Tokens {
	f := d.rate * (rtt + 2*every + 20*time.Millisecond).Seconds()
	return clampTokens(f + 2*math.Sqrt(f) + 1)
}

// clampTokens rounds up into [0, MaxTokens].
func clampTokens(f float64) lease.Tokens {
	if !(f > 0) {
		return 0
	}
	if f >= float64(lease.MaxTokens) {
		return lease.MaxTokens
	}
	return lease.Tokens(math.Ceil(f))
}
