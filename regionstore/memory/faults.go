package memory

import (
	"maps"
	"sync"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Restart loses everything, as a server without persistence does, and begins
// another life.
func (s *Store) Restart() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.clear()
}

// Snapshot is a copy of a store's content at one instant; it can be restored
// any number of times.
type Snapshot struct {
	rows         map[string]*regionstore.Row
	answers      answers
	inUse, alive map[string]lease.Time
	leader       string
	led          lease.Time
}

// Snapshot copies what the store holds now.
func (s *Store) Snapshot() *Snapshot {
	s.mu.Lock()
	defer s.mu.Unlock()
	return (&Snapshot{s.rows, s.answers, s.inUse, s.alive, s.leader, s.led}).clone()
}

func (p *Snapshot) clone() *Snapshot {
	c := *p
	c.rows = make(map[string]*regionstore.Row, len(p.rows))
	for b, r := range p.rows {
		row := *r
		c.rows[b] = &row
	}
	c.answers = p.answers.clone()
	c.inUse, c.alive = maps.Clone(p.inUse), maps.Clone(p.alive)
	return &c
}

// Restore puts an old content in place and begins another life, as a server
// started from a snapshot does, or a replica that was behind when promoted.
func (s *Store) Restore(p *Snapshot) {
	c := p.clone()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replid = s.newReplid()
	s.rows, s.answers = c.rows, c.answers
	s.inUse, s.alive, s.leader, s.led = c.inUse, c.alive, c.leader, c.led
}

// LoseRow removes one row, as an eviction would.
func (s *Store) LoseRow(budget string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.rows, budget)
}

// Stall makes every call wait, until resume is called or its context ends.
// A later stall takes the place of an earlier one; calling resume twice is harmless.
func (s *Store) Stall() (resume func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wait := make(chan struct{})
	s.stalled = wait
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(wait)
		if s.stalled == wait {
			s.stalled = nil
		}
	})
}

// Peek views a row as one caller would who trusts the store's clock, without
// changing it: for checks of what the region could spend.
func (s *Store) Peek(budget string) regionstore.View {
	s.mu.Lock()
	defer s.mu.Unlock()
	step := regionstore.Step{Config: s.config, Time: s.clock(), Replid: s.replid}
	row := *s.row(step, budget)
	return step.Read(&row, regionstore.Now{NotAfter: step.Time})
}
