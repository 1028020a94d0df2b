package sim

import (
	"math/rand/v2"
	"time"
)

// wire is one direction between a region and the allocators, with what is
// wrong with it at the moment.
type wire struct {
	w    *world
	link Link
	rand *rand.Rand
	// cuts counts the faults that cut it, lossy those that lose part.
	cuts int
	loss float64
}

// send delivers after the link's delay, perhaps twice, perhaps never. deliver
// makes its own copy of the message.
func (l *wire) send(deliver func()) {
	copies := 1
	if chance(l.rand, l.link.Duplicate) {
		copies = 2
		l.w.coverage.Duplicated++
	}
	for range copies {
		delay := l.delay()
		if l.cuts > 0 || chance(l.rand, l.link.Loss) || chance(l.rand, l.loss) {
			l.w.coverage.Lost++
			continue
		}
		l.w.after(delay, call(deliver))
	}
}

func (l *wire) delay() time.Duration {
	delay := l.link.Delay.draw(l.rand)
	if chance(l.rand, l.link.Reorder) {
		delay += l.link.ReorderBy
		l.w.coverage.Reordered++
	}
	return delay
}
