package memory

import (
	"container/heap"
	"maps"
	"slices"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// WithNow makes the store run on a governed and a raw clock of their own,
// instead of the one given to New.
func WithNow(now func() allocation.Now) Option { return func(s *Store) { s.both = now } }

// Peek returns a budget's state as it was last written, nil if there is none:
// the store's own, to be read until the next write and not to be changed. For
// callers that alone use the store, as the simulator does.
func (s *Store) Peek(budget string) *allocation.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.entries[budget]; e != nil {
		return &e.state
	}
	return nil
}

// Snapshot is a copy of a store's content at one instant.
type Snapshot struct {
	version uint64
	states  map[string]*allocation.State
}

// Snapshot copies what the store holds now.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &Snapshot{version: s.version, states: make(map[string]*allocation.State, len(s.entries))}
	for name, e := range s.entries {
		p.states[name] = clone(&e.state)
	}
	return p
}

// Restore goes on from an old content, as a database does that failed over to
// a standby which had not everything. Its time stays: the clock decides it.
func (s *Store) Restore(p *Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version, s.changes, s.due = p.version, nil, nil
	s.entries = make(map[string]*entry, len(p.states))
	s.names, s.unsorted = slices.Sorted(maps.Keys(p.states)), false
	for _, name := range s.names {
		st := p.states[name]
		e := &entry{name: name, state: *clone(st), due: st.NextDue(), place: -1}
		s.entries[name] = e
		s.changes = append(s.changes, change{st.Budget.Version, e})
		if e.due != 0 {
			heap.Push(&s.due, e)
		}
	}
	slices.SortFunc(s.changes, func(a, b change) int { return int(int64(a.version) - int64(b.version)) })
	s.now = allocation.Now{}
	s.read()
}

// later is the later of two readings, clock by clock.
func later(a, b allocation.Now) allocation.Now {
	return allocation.Now{Governed: max(a.Governed, b.Governed), Raw: max(a.Raw, b.Raw)}
}

// oneClock makes one clock serve as both.
func oneClock(clock func() lease.Time) func() allocation.Now {
	return func() allocation.Now {
		t := clock()
		return allocation.Now{Governed: t, Raw: t}
	}
}
