package sim

import (
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// localCount is one region's bucket of the yardstick CountLocally: its own
// view of the whole limit.
type localCount struct {
	bucket
	// unsent was spent here since the last exchange.
	unsent lease.Tokens
}

func (y *localCount) change(now time.Duration, rate lease.Rate, burst lease.Tokens, first bool) {
	y.bucket.change(now, rate, burst)
	if first {
		y.level = burst
	}
}

// yard decides n requests as the run's yardstick does.
func (s *stream) yard(n int64, cost lease.Tokens) {
	w := s.w
	w.decisions++
	var bucketOf func(*budget) *bucket
	if w.o.Strategy == Central {
		// fed is driven by what is admitted: with one bucket, that is the bucket.
		bucketOf = func(b *budget) *bucket { return &b.fed }
	} else {
		bucketOf = func(b *budget) *bucket { return &b.yard[s.region.index].bucket }
	}
	fits := n
	for _, b := range s.budgets {
		b.advance()
		k := bucketOf(b)
		k.advance(w.now)
		fits = k.fit(fits, cost)
	}
	if w.o.Strategy == CountLocally {
		for _, b := range s.budgets {
			y := b.yard[s.region.index]
			y.level -= lease.Tokens(fits) * cost
			y.unsent += lease.Tokens(fits) * cost
		}
	}
	s.outcome(n, fits, cost, agent.Answer{Outcome: agent.Denied}, nil)
}

// exchange lets every region hear, after the network's delay, what the others
// spent since the last time.
func (w *world) exchange() {
	for _, b := range w.budgets {
		for i, y := range b.yard {
			n := y.unsent
			y.unsent = 0
			if n == 0 {
				continue
			}
			for j, other := range b.yard {
				if i == j {
					continue
				}
				delay := w.regions[i].up.delay() + w.regions[j].down.delay()
				w.after(delay, call(func() {
					other.advance(w.now)
					other.level = max(min(0, other.level), other.level-n)
				}))
			}
		}
	}
	w.rpcs += int64(len(w.regions))
	w.after(w.o.WriteBack, call(w.exchange))
}
