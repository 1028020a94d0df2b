// Package memory keeps the ledger in the process's memory: for development,
// for the simulator, and as the plain model that other stores are compared
// with.
package memory

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Store is an allocation.Store in memory. One mutex makes every transaction
// serial; the pure steps take microseconds. Safe for concurrent use.
type Store struct {
	both   func() allocation.Now
	check  bool
	reruns int

	mu      sync.Mutex
	now     allocation.Now
	version uint64
	entries map[string]*entry
	// names is sorted unless unsorted is set.
	names    []string
	unsorted bool
	// changes has every version given out, in order. Those of budgets that
	// changed since are stale and dropped when they are the greater part.
	changes []change
	due     dueHeap
}

// entry is one budget. Nobody else has its state.
type entry struct {
	name  string
	state allocation.State
	// due is State.NextDue, place the entry's index in the heap; -1 if due is 0.
	due   lease.Time
	place int
}

type change struct {
	version uint64
	entry   *entry
}

// Option changes what New makes.
type Option func(*Store)

// WithCheck makes the store prove allocation.CheckStep of every write, and
// refuse one that breaks an invariant with the allocation.Violation. For tests
// and simulations.
func WithCheck() Option { return func(s *Store) { s.check = true } }

// WithReruns makes the store run every step n more times on freshly loaded
// states, as a store does whose transactions are retried. For tests.
func WithReruns(n int) Option { return func(s *Store) { s.reruns = n } }

// New makes an empty Store on a clock, which is both its governed and its raw
// time. Where the clock goes back, the store's time stands. The clock must not
// call the store.
func New(clock func() lease.Time, opts ...Option) *Store {
	s := &Store{both: oneClock(clock), entries: map[string]*entry{}}
	for _, opt := range opts {
		opt(s)
	}
	return s
}

// read returns the time. The caller has the mutex.
func (s *Store) read() allocation.Now {
	s.now = later(s.now, s.both())
	return s.now
}

// Now returns the store's time.
func (s *Store) Now(context.Context) (allocation.Now, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read(), nil
}

// Update runs step on copies of the named states and keeps them if it
// returns nil.
func (s *Store) Update(_ context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := distinct(budgets); err != nil {
		return err
	}
	now := s.read()
	var states []*allocation.State
	for range s.reruns + 1 {
		states = s.load(budgets)
		if err := step(now, states); err != nil {
			return err
		}
	}
	if err := s.checkAll(budgets, states); err != nil {
		return err
	}
	for i, name := range budgets {
		if e := s.entries[name]; e != nil {
			s.keep(e, states[i])
		}
	}
	return nil
}

// Apply is an Update that may create; see allocation.Store.
func (s *Store) Apply(_ context.Context, budgets []string, step func(allocation.Now, []*allocation.State) ([]*allocation.State, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := distinct(budgets); err != nil {
		return err
	}
	now := s.read()
	var after []*allocation.State
	for range s.reruns + 1 {
		var err error
		if after, err = step(now, s.load(budgets)); err != nil {
			return err
		}
	}
	if err := s.applicable(budgets, after); err != nil {
		return err
	}
	for i, name := range budgets {
		if after[i] != nil {
			s.put(name, after[i])
		}
	}
	return nil
}

// applicable says why what a step of Apply returned cannot be written.
func (s *Store) applicable(budgets []string, after []*allocation.State) error {
	if len(after) != len(budgets) {
		return fmt.Errorf("memory: step returned %d states for %d budgets", len(after), len(budgets))
	}
	for i, st := range after {
		if st != nil && st.Budget.Name != budgets[i] {
			return fmt.Errorf("memory: step returned %q for budget %q", st.Budget.Name, budgets[i])
		}
	}
	return s.checkAll(budgets, after)
}

// put writes a state under a new version, which it sets in st too.
func (s *Store) put(name string, st *allocation.State) {
	s.version++
	st.Budget.Version = s.version
	e := s.entries[name]
	if e == nil {
		e = &entry{name: name, place: -1}
		s.entries[name] = e
		s.names, s.unsorted = append(s.names, name), true
	}
	s.keep(e, st)
	e.state.Budget = cloneBudget(st.Budget)
	s.changes = append(s.changes, change{s.version, e})
	if len(s.changes) > 2*len(s.entries)+16 {
		s.changes = slices.DeleteFunc(s.changes, change.stale)
	}
}

func (c change) stale() bool { return c.entry.state.Budget.Version != c.version }

// keep copies st, which its step may have kept, into an entry, and finds the
// entry's place in the order of due times.
func (s *Store) keep(e *entry, st *allocation.State) {
	assign(&e.state, st)
	e.due = st.NextDue()
	switch {
	case e.due == 0 && e.place >= 0:
		heap.Remove(&s.due, e.place)
	case e.due != 0 && e.place >= 0:
		heap.Fix(&s.due, e.place)
	case e.due != 0:
		heap.Push(&s.due, e)
	}
}

func (s *Store) checkAll(budgets []string, states []*allocation.State) error {
	if !s.check {
		return nil
	}
	for i, name := range budgets {
		if states[i] == nil {
			continue
		}
		var before *allocation.State
		if e := s.entries[name]; e != nil {
			before = &e.state
		}
		if err := allocation.CheckStep(before, states[i]); err != nil {
			return err
		}
	}
	return nil
}

// Budgets lists what changed after since.
func (s *Store) Budgets(_ context.Context, since uint64, limit int) ([]policy.Budget, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	from, _ := slices.BinarySearchFunc(s.changes, since+1, func(c change, v uint64) int { return cmp.Compare(c.version, v) })
	var out []policy.Budget
	for _, c := range s.changes[from:] {
		if len(out) == limit {
			return out, out[limit-1].Version, nil
		}
		if !c.stale() {
			out = append(out, cloneBudget(c.entry.state.Budget))
		}
	}
	return out, s.version, nil
}

// Due names budgets whose NextDue has come.
func (s *Store) Due(_ context.Context, limit int) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.due.upTo(s.read().Governed, limit), nil
}

// View returns copies of states in order of name.
func (s *Store) View(_ context.Context, after string, limit int) ([]allocation.State, allocation.Now, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsorted {
		slices.Sort(s.names)
		s.unsorted = false
	}
	from, found := slices.BinarySearch(s.names, after)
	if found {
		from++
	}
	var out []allocation.State
	for _, name := range s.names[from:min(len(s.names), from+limit)] {
		st := clone(&s.entries[name].state)
		st.Budget = cloneBudget(st.Budget)
		out = append(out, *st)
	}
	return out, s.read(), nil
}

func (s *Store) load(budgets []string) []*allocation.State {
	states := make([]*allocation.State, len(budgets))
	for i, name := range budgets {
		if e := s.entries[name]; e != nil {
			states[i] = clone(&e.state)
		}
	}
	return states
}

// clone copies what steps change. Budget values are immutable.
func clone(s *allocation.State) *allocation.State {
	c := *s
	c.Pools = slices.Clone(s.Pools)
	c.Leases = slices.Clone(s.Leases)
	c.Regions = slices.Clone(s.Regions)
	c.Locals = slices.Clone(s.Locals)
	return &c
}

// assign makes dst a copy of src, in the room that dst has.
func assign(dst, src *allocation.State) {
	dst.Budget = src.Budget
	dst.Pools = append(dst.Pools[:0], src.Pools...)
	dst.Leases = append(dst.Leases[:0], src.Leases...)
	dst.Regions = append(dst.Regions[:0], src.Regions...)
	dst.Locals = append(dst.Locals[:0], src.Locals...)
}

// cloneBudget copies a budget for, or from, a caller that is not trusted to
// treat it as immutable.
func cloneBudget(b policy.Budget) policy.Budget {
	b.Match = maps.Clone(b.Match)
	b.Regions = slices.Clone(b.Regions)
	return b
}

func distinct(budgets []string) error {
	seen := make(map[string]struct{}, len(budgets))
	for _, name := range budgets {
		if _, twice := seen[name]; twice {
			return errors.New("memory: a budget is named twice in one transaction")
		}
		seen[name] = struct{}{}
	}
	return nil
}
