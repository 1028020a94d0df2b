package memory

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Touch is regionstore.Store's.
func (s *Store) Touch(ctx context.Context, budgets []string, ttl time.Duration) error {
	step, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer s.mu.Unlock()
	until := step.Time.Add(ttl)
	for _, b := range budgets {
		s.inUse[b] = max(s.inUse[b], until)
	}
	return nil
}

// InUse is regionstore.Store's; sorted.
func (s *Store) InUse(ctx context.Context) ([]string, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	return s.usedUntil(func(until lease.Time) bool { return step.Time < until }), nil
}

// Disused is regionstore.Store's; sorted.
func (s *Store) Disused(ctx context.Context, within time.Duration) ([]string, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	since := step.Time.Add(-within)
	return s.usedUntil(func(until lease.Time) bool { return since < until && until <= step.Time }), nil
}

func (s *Store) usedUntil(when func(until lease.Time) bool) (names []string) {
	for b, until := range s.inUse {
		if when(until) {
			names = append(names, b)
		}
	}
	slices.Sort(names)
	return names
}

// Lead is regionstore.Store's.
func (s *Store) Lead(ctx context.Context, holder string, ttl time.Duration) (bool, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return false, err
	}
	defer s.mu.Unlock()
	if s.leader != holder && step.Time < s.led {
		return false, nil
	}
	s.leader, s.led = holder, step.Time.Add(ttl)
	return true, nil
}

// Unlead is regionstore.Store's; another's lock stays.
func (s *Store) Unlead(ctx context.Context, holder string) error {
	if _, err := s.enter(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if s.leader == holder {
		s.leader, s.led = "", 0
	}
	return nil
}

// Join is regionstore.Store's; the count includes the caller.
func (s *Store) Join(ctx context.Context, process string, ttl time.Duration) (int, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	s.alive[process] = step.Time.Add(ttl)
	return s.living(step.Time), nil
}

// Leave is regionstore.Store's.
func (s *Store) Leave(ctx context.Context, process string) (int, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer s.mu.Unlock()
	delete(s.alive, process)
	return s.living(step.Time), nil
}

func (s *Store) living(now lease.Time) int {
	n := 0
	for _, until := range s.alive {
		if now < until {
			n++
		}
	}
	return n
}

// sweepEvery is how often everything is looked through for what has expired.
const sweepEvery = time.Minute

// sweep bounds the store's memory by what is in use.
func (s *Store) sweep(step regionstore.Step) {
	s.answers.expire(step.Time)
	if step.Time < s.swept.Add(sweepEvery) && step.Time >= s.swept {
		return
	}
	s.swept = step.Time
	for b, r := range s.rows {
		if step.Time >= step.Expiry(r) {
			delete(s.rows, b)
		}
	}
	for _, names := range []map[string]lease.Time{s.inUse, s.alive} {
		for name, until := range names {
			if step.Time >= until.Add(s.config.KeepMargin) {
				delete(names, name)
			}
		}
	}
}
