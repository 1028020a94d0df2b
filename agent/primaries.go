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
// mints nothing, and the primary's breaker. Safe for concurrent
// use.
type primaries struct {
	clocks lease.Clocks
	mu     sync.Mutex
	byName map[string]*primary
	last   clockID
}

// clockID names a primary's clock for as long as this process has not seen it
// step. What was seen of a row before a step bounds nothing after it; 0 is for
// rows that were not seen at all.
type clockID uint64

// callStart is what a process notes before it sends a call on a row.
type callStart struct {
	primary string
	clock   clockID
	at      time.Duration
}

// maxPrimaries bounds the memory for primaries that are long gone.
const maxPrimaries = 1024

type primary struct {
	clock clockID
	// seen is min(TIME, NotAfter) of a reply, sent when this process's clock
	// showed at; 0 for none. Counting from before the call was sent makes
	// successive bounds add up to the time that passed, with no lag that grows
	// from call to call.
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
		known = &primary{clock: p.newClock()}
		p.byName[name] = known
	}
	return known
}

func (p *primaries) newClock() clockID {
	p.last++
	return p.last
}

// send notes what a call to the named primary that is sent now starts from.
func (p *primaries) send(name string, now time.Duration) callStart {
	p.mu.Lock()
	defer p.mu.Unlock()
	return callStart{primary: name, clock: p.get(name).clock, at: now}
}

// bound returns how a call bounds the primary's clock. touched is the clock
// that the row was last seen by.
func (p *primaries) bound(s callStart, touched clockID) regionstore.Now {
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.get(s.primary)
	if known.seen == 0 || touched != known.clock {
		return regionstore.Now{}
	}
	if mutant.On(mutant.NotAfterStepped) {
		return regionstore.Now{NotAfter: 1<<62 - 1}
	}
	return regionstore.Now{NotAfter: known.seen.Add(p.clocks.Stretch(s.at - known.at))}
}

// saw books the time in the reply to a call, which came at got. A first call
// on a row shows TIME as it stands, and so does one that found the clock
// stepped by more than regionstore.MaxLag: no more of it is remembered than
// time explains, and where that is too little to go on from, it is another
// clock from now on, by which no other row was seen yet. It returns the clock
// that the row was seen by.
func (p *primaries) saw(s callStart, got time.Duration, t lease.Time) clockID {
	if t == 0 {
		return 0
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.get(s.primary)
	switch {
	case known.seen == 0 || mutant.On(mutant.NotAfterStepped):
	case s.at < known.at: // overtaken by a later call
		if known.seen > t.Add(p.clocks.Stretch(known.at-s.at)+regionstore.MaxLag) {
			known.clock = p.newClock()
		}
		return s.clock
	default:
		limit := known.seen.Add(p.clocks.Stretch(s.at - known.at))
		if t > limit.Add(regionstore.MaxLag) && t > known.seen.Add(p.clocks.Stretch(got-known.at)) {
			known.clock = p.newClock()
			s.clock = known.clock // this call moved its row over the step
			break
		}
		t = min(t, limit)
	}
	known.seen, known.at = t, s.at
	return s.clock
}

func (p *primaries) allow(name string, now time.Duration) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(name).breaker.allow(now)
}

// failing reports whether no call to the named primary has succeeded since one failed.
func (p *primaries) failing(name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.get(name).breaker.failing()
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
