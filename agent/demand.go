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
	rate float64
	// total is of at, which is 0 while nothing was observed.
	total lease.Tokens
	at    time.Duration
	// since is when demand last changed, jump by how much the last count moved
	// the rate if it lay outside the noise.
	since time.Duration
	jump  float64
	// spread is the variance of the counts, of late, in that of Poisson counts.
	spread float64
}

const (
	// demandWindow is the shortest time over which arrivals are counted.
	demandWindow = 40 * time.Millisecond
	// demandMemory is the longest time over which demand is averaged.
	demandMemory = 2 * time.Minute
	// demandNoise is how many standard deviations of a count are noise.
	demandNoise = 4
	// spreadMemory is the time over which the noise of counts is averaged.
	spreadMemory = 10 * time.Second
)

// observe books the row's total as read at now. A total below the last one
// belongs to a new row and starts the count anew.
func (d *demand) observe(total lease.Tokens, now time.Duration) {
	if d.at == 0 || total < d.total {
		d.total, d.at, d.since = total, max(now, 1), now
		return
	}
	dt := (now - d.at).Seconds()
	if now-d.at < demandWindow {
		return
	}
	n := float64(total - d.total)
	d.total = total
	expected := d.rate * dt
	off, most := (n-expected)*(n-expected)/(expected+1), demandNoise*demandNoise*d.dispersion()
	d.spread += (min(off, 4*most) - d.spread) * (1 - math.Exp(-dt/spreadMemory.Seconds()))
	moved, jump := n/dt-d.rate, d.jump
	d.jump = 0
	switch {
	case jump*moved > 0:
		// The count in which demand changed is of both, before and after: where the
		// next one goes on the same way, it takes its place, and the following are
		// averaged with it.
		d.rate, d.since = n/dt, d.at
	case off > most:
		d.rate, d.jump = n/dt, moved
	default:
		weight := 1 - math.Exp(-dt/min(max(1, 10/d.rate), demandMemory.Seconds()))
		d.rate += moved * max(weight, dt/(now-d.since).Seconds())
	}
	d.at = now
}

// dispersion is how many times the variance of a Poisson count is noise here.
func (d *demand) dispersion() float64 { return max(1, d.spread) }

// noise is one standard deviation of the estimate, in tokens per second.
func (d *demand) noise() float64 { return math.Sqrt(d.dispersion() * (d.rate + 1)) }

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
