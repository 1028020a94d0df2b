// Package memory keeps a region's wallets in memory: the pure step of
// regionstore under a mutex. It is the embedded store, and the reference that
// other stores are compared with.
package memory

import (
	"context"
	"sync"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Store is a regionstore.Store. Make one with New. Its faults (Restart,
// Restore, LoseRow, Stall) are what can happen to a real store.
type Store struct {
	clock     func() lease.Time
	newReplid func() string
	config    regionstore.Config

	mu      sync.Mutex
	replid  string
	rows    map[string]*regionstore.Row
	answers answers
	inUse   map[string]lease.Time
	alive   map[string]lease.Time
	leader  string
	led     lease.Time
	// swept is when expired rows and names were last removed.
	swept lease.Time
	// stalled is open while calls wait; nil otherwise.
	stalled chan struct{}
}

var _ regionstore.Store = (*Store)(nil)

// New returns an empty store. clock is the store's clock and may step; newReplid
// makes a replication id, never empty and never the same twice, now and at
// every Restart and Restore. Both are called with the store locked.
func New(clock func() lease.Time, newReplid func() string, config regionstore.Config) *Store {
	s := &Store{clock: clock, newReplid: newReplid, config: config}
	s.clear()
	return s
}

// clear makes the store empty under a new replication id.
func (s *Store) clear() {
	s.replid = s.newReplid()
	s.rows = make(map[string]*regionstore.Row)
	s.answers = newAnswers()
	s.inUse = make(map[string]lease.Time)
	s.alive = make(map[string]lease.Time)
	s.leader, s.led = "", 0
}

// enter locks the store for one step. It waits while the store is stalled and
// gives up with ctx.
func (s *Store) enter(ctx context.Context) (regionstore.Step, error) {
	for {
		if err := ctx.Err(); err != nil {
			return regionstore.Step{}, err
		}
		s.mu.Lock()
		if s.stalled == nil {
			break
		}
		wait := s.stalled
		s.mu.Unlock()
		select {
		case <-wait:
		case <-ctx.Done():
		}
	}
	step := regionstore.Step{Config: s.config, Time: s.clock(), Replid: s.replid}
	s.sweep(step)
	return step, nil
}

// row returns the budget's row, a zero one for a missing row: save keeps it if
// the step made something of it.
func (s *Store) row(step regionstore.Step, budget string) *regionstore.Row {
	r := s.rows[budget]
	if r == nil || step.Time >= step.Expiry(r) {
		return &regionstore.Row{}
	}
	return r
}

func (s *Store) save(budget string, r *regionstore.Row) {
	if r.Replid != "" {
		s.rows[budget] = r
	}
}

// Open is regionstore.Store's.
func (s *Store) Open(ctx context.Context, req regionstore.OpenRequest) (regionstore.OpenReply, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.OpenReply{}, err
	}
	defer s.mu.Unlock()
	r := s.row(step, req.Budget)
	defer s.save(req.Budget, r)
	return step.Open(r, req), nil
}

// Begin is regionstore.Store's.
func (s *Store) Begin(ctx context.Context, req regionstore.BeginRequest) (regionstore.BeginReply, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.BeginReply{}, err
	}
	defer s.mu.Unlock()
	return step.Begin(s.row(step, req.Budget), req), nil
}

// Install is regionstore.Store's.
func (s *Store) Install(ctx context.Context, req regionstore.InstallRequest) (regionstore.InstallReply, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.InstallReply{}, err
	}
	defer s.mu.Unlock()
	r := s.row(step, req.Budget)
	defer s.save(req.Budget, r)
	return step.Install(r, req), nil
}

// Take is regionstore.Store's.
func (s *Store) Take(ctx context.Context, req regionstore.TakeRequest) (regionstore.TakeReply, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.TakeReply{}, err
	}
	defer s.mu.Unlock()
	if a, ok := s.answers.find(&req, step.Time); ok {
		if a.content != req.Content {
			return regionstore.TakeReply{Conflict: true}, nil
		}
		return a.reply.Replay(), nil
	}
	var few [4]*regionstore.Row
	rows := few[:0]
	for i := range req.Takes {
		rows = append(rows, s.row(step, req.Takes[i].Budget))
	}
	reply := step.Take(rows, &req)
	if req.Keeps(&reply) {
		s.answers.keep(&req, reply.Replay(), step.Time)
	}
	return reply, nil
}

// Settle is regionstore.Store's.
func (s *Store) Settle(ctx context.Context, settles []regionstore.Settle) ([]regionstore.Outcome, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	outcomes := make([]regionstore.Outcome, len(settles))
	for i := range settles {
		outcomes[i] = step.Settle(s.row(step, settles[i].Budget), &settles[i])
	}
	return outcomes, nil
}

// Refill is regionstore.Store's.
func (s *Store) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	results := make([]regionstore.TakeResult, len(takes))
	for i := range takes {
		req := regionstore.TakeRequest{Takes: takes[i : i+1]}
		results[i] = step.Take([]*regionstore.Row{s.row(step, takes[i].Budget)}, &req).Results[0]
	}
	return results, nil
}

// Return is regionstore.Store's.
func (s *Store) Return(ctx context.Context, req regionstore.ReturnRequest) (regionstore.View, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.View{}, err
	}
	defer s.mu.Unlock()
	return step.Return(s.row(step, req.Budget), req), nil
}

// Close is regionstore.Store's.
func (s *Store) Close(ctx context.Context, req regionstore.CloseRequest) (regionstore.View, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.View{}, err
	}
	defer s.mu.Unlock()
	return step.Close(s.row(step, req.Budget), req), nil
}

// TakeLocal is regionstore.Store's.
func (s *Store) TakeLocal(ctx context.Context, req regionstore.LocalRequest) (regionstore.LocalReply, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return regionstore.LocalReply{}, err
	}
	defer s.mu.Unlock()
	return step.TakeLocal(s.row(step, req.Budget), &req), nil
}

// Read is regionstore.Store's. now has one entry per budget.
func (s *Store) Read(ctx context.Context, budgets []string, now []regionstore.Now) ([]regionstore.View, error) {
	step, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	views := make([]regionstore.View, len(budgets))
	for i, b := range budgets {
		views[i] = step.Read(s.row(step, b), now[i])
	}
	return views, nil
}

// Slot is the same for all budgets: they can all be taken in one step.
func (s *Store) Slot(string) uint32 { return 0 }

// Primary is the replication id: another life may have another clock.
func (s *Store) Primary(string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.replid
}
