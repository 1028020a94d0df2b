package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// stack remembers how to end what was started, last first. The zero value is
// empty. Safe for concurrent use.
type stack struct {
	mu    sync.Mutex
	stops []stop
}

type stop struct {
	what string
	end  func(context.Context) error
}

// push adds how to end something that has just started.
func (s *stack) push(what string, end func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stops = append(s.stops, stop{what, end})
}

// close ends everything, last started first, and forgets it: a second call
// does nothing. Every ending is tried, whatever fails before.
func (s *stack) close(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed []error
	for i := len(s.stops) - 1; i >= 0; i-- {
		if err := s.stops[i].end(ctx); err != nil {
			failed = append(failed, fmt.Errorf("stopping %s: %w", s.stops[i].what, err))
		}
	}
	s.stops = nil
	return errors.Join(failed...)
}

// background starts loop and pushes its ending: it cancels the loop's context
// and waits for it to return.
func (s *stack) background(what string, loop func(context.Context)) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		loop(ctx)
	}()
	s.push(what, func(ctx context.Context) error {
		cancel()
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	})
}
