package agent

import (
	"sync"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// primaries remembers, per store primary, the store's time as last seen and
// when on this process's monotonic clock, so that a step of the store's clock
// mints nothing (DESIGN 4), and the primary's breaker. Safe for concurrent
// use.
type primaries struct {
	clocks lease.Clocks
	mu     sync.Mutex
	byName map[string]*primary
}

// maxPrimaries bounds the memory for primaries that are long gone.
const maxPrimaries = 1024

type primary struct {
	// seen is min(TIME, NotAfter) of a reply, sent when this process's clock
	// showed at. Counting from before the call was sent makes successive bounds
	// add up to the time that passed, with no lag that grows from call to call.
	seen    lease.Time
	at      time.Duration
	breaker breaker
	// answered is when a call last succeeded, on this process's clock; 0 for
	// never.
	answered time.Duration
}

func newPrimaries(clocks lease.Clocks) *primaries {
	return &primaries{clocks: clocks, byName: map[string]*primary{}}
}

func (p *primaries) get(name string) *primary {
	known := p.byName[name]
	if known == nil {
		if len(p.byName) >= maxPrimaries {
			clear(p.byName) // forgetting only means "not seen before"
		}
		known = &primary{}
		p.byName[name] = known
	}
	return known
}

// bound returns how a call sent now bounds the clock of the named primary.
// touched is the primary that the caller last saw this row on.
func (p *primaries) bound(name, touched string, now time.Duration) regionstore.Now {
	if name != touched {
		return regionstore.Now{}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.get(name)
	if known.seen == 0 {
		return regionstore.Now{}
	}
	if mutant.On(mutant.NotAfterStepped) {
		return regionstore.Now{NotAfter: 1<<62 - 1}
	}
	return regionstore.Now{NotAfter: known.seen.Add(p.clocks.Stretch(now - known.at))}
}

// saw books the time in a reply to a call that was sent at sent.
func (p *primaries) saw(name string, sent time.Duration, t lease.Time) {
	if t == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.get(name)
	if known.seen == 0 || sent >= known.at {
		known.seen, known.at = t, sent
	}
}

func (p *primaries) allow(name string, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(name).breaker.allow(now)
}

func (p *primaries) report(name string, start, now time.Duration, ok bool) (opened bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.get(name)
	if ok {
		known.answered = now
	}
	return known.breaker.report(start, now, ok)
}

// answered is when a call to the named primary last succeeded.
func (p *primaries) answered(name string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(name).answered
}
