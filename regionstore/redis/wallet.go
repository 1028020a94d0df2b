package redis

import (
	"context"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// onRow is a step on one budget's row.
func (s *Store) onRow(sc *script, budget string, args arguments) call {
	return call{script: sc, slot: s.keys.slot(budget), keys: []string{s.keys.row(budget)}, args: args}
}

// Open is regionstore.Store's.
func (s *Store) Open(ctx context.Context, req regionstore.OpenRequest) (regionstore.OpenReply, error) {
	var args arguments
	args.now(req.Now)
	for _, nonce := range req.Nonces {
		args.str(string(nonce))
	}
	args.str(req.LocalNonce)
	r, err := s.run(ctx, s.onRow(s.scripts.open, req.Budget, args))
	if err != nil {
		return regionstore.OpenReply{}, err
	}
	reply := regionstore.OpenReply{Created: r.bool(), Void: r.bool(), View: r.view()}
	return reply, r.err
}

// Begin is regionstore.Store's.
func (s *Store) Begin(ctx context.Context, req regionstore.BeginRequest) (regionstore.BeginReply, error) {
	var args arguments
	args.now(req.Now)
	args.duration(req.MinAge)
	args.num(int64(len(req.Intents)))
	for i := range req.Intents {
		args.intent(&req.Intents[i])
	}
	r, err := s.run(ctx, s.onRow(s.scripts.begin, req.Budget, args))
	if err != nil {
		return regionstore.BeginReply{}, err
	}
	reply := regionstore.BeginReply{Reports: make([]regionstore.BegunReport, len(req.Intents))}
	for i := range reply.Reports {
		b := &reply.Reports[i]
		b.Outcome = r.outcome()
		if b.Outcome == regionstore.OK || b.Outcome == regionstore.Busy {
			b.Report = r.report(req.Intents[i].Kind, req.Intents[i].Incarnation)
		}
	}
	reply.View = r.view()
	return reply, r.err
}

func (a *arguments) intent(in *regionstore.Intent) {
	a.num(int64(in.Kind))
	a.str(string(in.Incarnation))
	a.tokens(in.Want)
	a.bool(in.Regrant)
	a.rate(in.LowerX)
	a.tokens(in.LowerBeta)
	a.bool(in.Supersede)
}

// Install is regionstore.Store's.
func (s *Store) Install(ctx context.Context, req regionstore.InstallRequest) (regionstore.InstallReply, error) {
	var args arguments
	args.now(req.Now)
	args.num(int64(len(req.States)))
	for i := range req.States {
		args.state(&req.States[i])
	}
	r, err := s.run(ctx, s.onRow(s.scripts.install, req.Budget, args))
	if err != nil {
		return regionstore.InstallReply{}, err
	}
	reply := regionstore.InstallReply{Outcomes: make([]regionstore.Outcome, len(req.States))}
	for i := range reply.Outcomes {
		reply.Outcomes[i] = r.outcome()
	}
	reply.View = r.view()
	return reply, r.err
}

func (a *arguments) state(st *lease.State) {
	a.num(int64(st.Kind))
	a.str(string(st.Incarnation))
	a.id(st.Seq)
	a.num(int64(st.Status))
	a.tokens(st.Granted)
	a.rate(st.X)
	a.tokens(st.Beta)
	a.duration(st.TTL)
	a.str(string(st.Holder))
}

// Take is regionstore.Store's.
func (s *Store) Take(ctx context.Context, req regionstore.TakeRequest) (regionstore.TakeReply, error) {
	if len(req.Takes) == 0 {
		return regionstore.TakeReply{Took: true, Results: []regionstore.TakeResult{}}, nil
	}
	var late func(*reply)
	if req.Late != nil {
		late = func(r *reply) {
			if taken, err := r.taken(); err == nil {
				req.Late(taken)
			}
		}
	}
	r, err := s.runOr(ctx, s.takeCall(&req), late)
	if err != nil {
		return regionstore.TakeReply{}, err
	}
	return r.taken()
}

// taken reads the answer to a take.
func (r *reply) taken() (regionstore.TakeReply, error) {
	reply := regionstore.TakeReply{Took: r.bool(), Replayed: r.bool(), Conflict: r.bool()}
	if reply.Conflict || r.err != nil {
		return reply, r.err
	}
	// a kept answer has as many results as its own request had takes
	reply.Results = make([]regionstore.TakeResult, min(r.num(), int64(len(r.vals))))
	for i := range reply.Results {
		reply.Results[i] = r.takeResult()
	}
	for r.more() {
		i := r.num() - 1
		if i < 0 || i >= int64(len(reply.Results)) {
			return regionstore.TakeReply{}, lease.Errorf(lease.Internal, "", "a part belongs to take %d", i)
		}
		reply.Results[i].Parts = append(reply.Results[i].Parts, r.part())
	}
	return reply, r.err
}

func (s *Store) takeCall(req *regionstore.TakeRequest) call {
	first := req.Takes[0].Budget
	c := call{script: s.scripts.take, slot: s.keys.slot(first)}
	var args arguments
	args.num(int64(len(req.Takes)))
	args.bool(req.Hold)
	args.str(digest('c', "", req.Content))
	args.duration(req.KeepAnswer)
	for i := range req.Takes {
		t := &req.Takes[i]
		c.keys = append(c.keys, s.keys.row(t.Budget))
		args.tokens(t.Cost)
		args.tokens(t.Prefetch)
		args.duration(t.Holds())
		args.tokens(t.Demand)
		args.now(t.Now)
		args.num(int64(len(t.Settles)))
		for j := range t.Settles {
			args.settle(&t.Settles[j])
		}
	}
	if req.RequestID != "" {
		c.keys = append(c.keys, s.keys.answer(first, req.RequestID))
	}
	c.args = args
	return c
}

// Refill is regionstore.Store's.
func (s *Store) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	calls := make([]call, len(takes))
	for i := range takes {
		calls[i] = s.takeCall(&regionstore.TakeRequest{Takes: takes[i : i+1]})
	}
	return eachOf(ctx, s, calls, (*reply).refilled)
}

// eachOf runs independent steps and reads their answers. That of a step which failed
// is zero; the error is the first such.
func eachOf[T any](ctx context.Context, s *Store, calls []call, read func(*reply) (T, error)) ([]T, error) {
	answers := make([]T, len(calls))
	var failed error
	replies, errs := s.runAll(ctx, calls)
	for i, r := range replies {
		err := errs[i]
		if err == nil {
			answers[i], err = read(r)
		}
		if err != nil && failed == nil {
			failed = err
		}
	}
	return answers, failed
}

// refilled reads the answer to a take from one row.
func (r *reply) refilled() (regionstore.TakeResult, error) {
	reply, err := r.taken()
	if err != nil {
		return regionstore.TakeResult{}, err
	}
	if len(reply.Results) != 1 {
		return regionstore.TakeResult{}, lease.Errorf(lease.Internal, "", "%d results of one take", len(reply.Results))
	}
	return reply.Results[0], nil
}

// Settle is regionstore.Store's. The outcome of an entry whose own step failed
// is 0; the error is the first such.
func (s *Store) Settle(ctx context.Context, settles []regionstore.Settle) ([]regionstore.Outcome, error) {
	if len(settles) == 0 {
		return nil, nil
	}
	calls := make([]call, len(settles))
	for i := range settles {
		calls[i] = s.settleCall(&settles[i])
	}
	return eachOf(ctx, s, calls, func(r *reply) (regionstore.Outcome, error) {
		o := r.outcome()
		return o, r.err
	})
}

func (s *Store) settleCall(st *regionstore.Settle) call {
	var args arguments
	args.now(st.Now)
	args.tokens(st.Demand)
	args.settle(st)
	return s.onRow(s.scripts.settle, st.Budget, args)
}

func (a *arguments) settle(st *regionstore.Settle) {
	a.num(int64(st.Kind))
	a.str(string(st.Incarnation))
	a.id(st.Generation)
	a.tokens(st.Used)
	a.tokens(st.Back)
}

// Return is regionstore.Store's.
func (s *Store) Return(ctx context.Context, req regionstore.ReturnRequest) (regionstore.View, error) {
	var args arguments
	args.now(req.Now)
	args.str(string(req.Incarnation))
	args.tokens(req.Keep)
	return s.viewed(ctx, s.onRow(s.scripts.giveBack, req.Budget, args))
}

// Close is regionstore.Store's: it closes a lease, not the store.
func (s *Store) Close(ctx context.Context, req regionstore.CloseRequest) (regionstore.View, error) {
	var args arguments
	args.now(req.Now)
	args.num(int64(req.Kind))
	args.str(string(req.Incarnation))
	return s.viewed(ctx, s.onRow(s.scripts.close, req.Budget, args))
}

func (s *Store) viewed(ctx context.Context, c call) (regionstore.View, error) {
	r, err := s.run(ctx, c)
	if err != nil {
		return regionstore.View{}, err
	}
	v := r.view()
	return v, r.err
}

// TakeLocal is regionstore.Store's.
func (s *Store) TakeLocal(ctx context.Context, req regionstore.LocalRequest) (regionstore.LocalReply, error) {
	var args arguments
	args.now(req.Now)
	args.tokens(req.Cost)
	args.rate(req.Rate)
	args.tokens(req.Burst)
	args.tokens(req.Demand)
	r, err := s.run(ctx, s.onRow(s.scripts.local, req.Budget, args))
	if err != nil {
		return regionstore.LocalReply{}, err
	}
	reply := regionstore.LocalReply{
		Outcome: r.outcome(), Balance: r.tokens(), RetryIn: r.duration(), Time: r.time(),
	}
	return reply, r.err
}

// Read is regionstore.Store's.
func (s *Store) Read(ctx context.Context, budgets []string, now []regionstore.Now) ([]regionstore.View, error) {
	if len(budgets) == 0 {
		return nil, nil
	}
	calls := make([]call, len(budgets))
	for i, b := range budgets {
		var args arguments
		args.now(now[i])
		calls[i] = s.onRow(s.scripts.read, b, args)
	}
	views := make([]regionstore.View, len(budgets))
	replies, errs := s.runMany(ctx, calls)
	for i, r := range replies {
		if errs[i] != nil {
			return nil, errs[i]
		}
		views[i] = r.view()
		if r.err != nil {
			return nil, r.err
		}
	}
	return views, nil
}
