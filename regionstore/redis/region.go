package redis

import (
	"context"
	"slices"
	"time"
)

// touchBatch bounds how long one script runs.
const touchBatch = 250

// Touch says that budgets are in use for the next ttl.
func (s *Store) Touch(ctx context.Context, budgets []string, ttl time.Duration) error {
	for len(budgets) > 0 {
		n := min(len(budgets), touchBatch)
		args := append(make([]any, 0, n+1), micros(ttl))
		for _, b := range budgets[:n] {
			args = append(args, b)
		}
		if _, err := s.run(ctx, s.regional(s.scripts.touch, s.keys.inUse(), args...)); err != nil {
			return err
		}
		budgets = budgets[n:]
	}
	return nil
}

// InUse lists the budgets in use, sorted.
func (s *Store) InUse(ctx context.Context) ([]string, error) { return s.used(ctx, 0) }

// Disused lists those whose use ended within the last so long, sorted.
func (s *Store) Disused(ctx context.Context, within time.Duration) ([]string, error) {
	return s.used(ctx, max(1, micros(within)))
}

func (s *Store) used(ctx context.Context, within int64) ([]string, error) {
	r, err := s.run(ctx, s.regional(s.scripts.inUse, s.keys.inUse(), within))
	if err != nil {
		return nil, err
	}
	var names []string
	for r.more() {
		names = append(names, r.str())
	}
	slices.Sort(names)
	return names, r.err
}

// Lead takes or renews the region's lock.
func (s *Store) Lead(ctx context.Context, holder string, ttl time.Duration) (bool, error) {
	n, err := s.count(ctx, s.regional(s.scripts.lead, s.keys.leader(), holder, max(1, micros(ttl))))
	return n == 1, err
}

// Unlead gives the lock up if holder has it.
func (s *Store) Unlead(ctx context.Context, holder string) error {
	_, err := s.count(ctx, s.regional(s.scripts.lead, s.keys.leader(), holder, 0))
	return err
}

// Join says that a process lives for ttl and counts those that do.
func (s *Store) Join(ctx context.Context, process string, ttl time.Duration) (int, error) {
	return s.count(ctx, s.regional(s.scripts.join, s.keys.processes(), process, max(1, micros(ttl))))
}

// Leave takes a process out and counts those left.
func (s *Store) Leave(ctx context.Context, process string) (int, error) {
	return s.count(ctx, s.regional(s.scripts.join, s.keys.processes(), process, 0))
}

func (s *Store) count(ctx context.Context, c call) (int, error) {
	r, err := s.run(ctx, c)
	if err != nil {
		return 0, err
	}
	n := r.num()
	return int(n), r.err
}

// regional is a step on a key that belongs to the region as a whole.
func (s *Store) regional(sc *script, key string, args ...any) call {
	var slot uint32
	if s.keys.cluster {
		tag := s.keys.regionTag()
		slot = uint32(crc16(tag[1:len(tag)-1])) % clusterSlots
	}
	return call{script: sc, slot: slot, keys: []string{key}, args: args}
}
