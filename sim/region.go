package sim

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	regionmemory "github.com/ration-dev/ration/regionstore/memory"
)

// region is one region: its store, its agents, and its wires to the
// allocators.
type region struct {
	w     *world
	index int
	spec  Region
	clock *hostClock
	store *regionmemory.Store
	// old is a primary that was replaced and goes on serving the agents with
	// odd indexes; nil if there is none.
	old *regionmemory.Store
	// rivalry is until when a share may still be spent that one primary asked
	// to have regranted while another one served it.
	rivalry time.Duration
	lives   int
	// behind is how far the store's clock was stepped back and not forward
	// again: agents that saw it before do not see that it catches up.
	behind time.Duration
	// stalls counts the faults that stall the store; unknown is the probability
	// that a step's answer is lost.
	stalls   int
	unknown  float64
	rand     *rand.Rand
	up, down *wire
	agents   []*slot
	turn     int
	latency  time.Duration
	pick     *rand.Rand
}

func newRegion(w *world, index int, spec Region) *region {
	if spec.Down == (Link{}) {
		spec.Down = spec.Up
	}
	r := &region{
		w: w, index: index, spec: spec, clock: newClock(w.o.Epoch, spec.Store),
		rand: source(w.o.Seed, "store/"+spec.Name), pick: source(w.o.Seed, "pick/"+spec.Name),
		up:      &wire{w: w, link: spec.Up, rand: source(w.o.Seed, "up/"+spec.Name)},
		down:    &wire{w: w, link: spec.Down, rand: source(w.o.Seed, "down/"+spec.Name)},
		latency: orDefault(spec.StoreLatency, 200*time.Microsecond),
	}
	r.store = r.newStore()
	for i := range max(1, spec.Agents) {
		s := &slot{region: r, index: i, clock: newClock(w.o.Epoch, spec.Agent)}
		r.agents = append(r.agents, s)
	}
	return r
}

func (r *region) newStore() *regionmemory.Store {
	return regionmemory.New(func() lease.Time { return r.clock.time(r.w.now) }, r.newLife,
		regionstore.Config{Clocks: r.w.declared, KeepMargin: regionstore.DefaultConfig().KeepMargin})
}

func (r *region) newLife() string {
	r.lives++
	return fmt.Sprintf("%s-%d", r.spec.Name, r.lives)
}

// running returns the agent that gets the next request, nil if none can.
func (r *region) running() *process {
	n := len(r.agents)
	first := r.turn
	if r.w.o.RandomAgents && n > 1 {
		first = r.pick.IntN(n)
	}
	for i := range n {
		s := r.agents[(first+i)%n]
		if p := s.process; p != nil && p.serving() {
			r.turn = (first + i + 1) % n
			return p
		}
	}
	return nil
}

// gate is one process's connection to its region's store: a
// regionstore.Store that reaches the primary the process knows, and fails as
// the store does at the moment.
type gate struct {
	p *process
}

var _ regionstore.Store = (*gate)(nil)

var (
	errStalled = errors.New("sim: the store did not answer in time")
	errLost    = errors.New("sim: the answer was lost")
)

func (g *gate) store() *regionmemory.Store {
	r := g.p.region
	if r.old != nil && g.p.slot.index%2 == 1 {
		return r.old
	}
	return r.store
}

// isolated reports whether the process still talks to a replaced primary.
func (g *gate) isolated() bool { return g.p.region.old != nil && g.p.slot.index%2 == 1 }

func (g *gate) enter() (*regionmemory.Store, error) {
	if g.p.region.stalls > 0 || g.p.skew > 0 { // after a freeze the call's time is over
		return nil, errStalled
	}
	return g.store(), nil
}

// lost reports whether a step that was done is not answered.
func (g *gate) lost() bool {
	r := g.p.region
	if !chance(r.rand, r.unknown) {
		return false
	}
	r.w.coverage.StoreUnknown++
	return true
}

// step does one step on one budget's row.
func step[T any](g *gate, budget string, do func(*regionmemory.Store) (T, error)) (T, error) {
	var none T
	s, err := g.enter()
	if err != nil {
		return none, err
	}
	reply, err := do(s)
	g.p.w.touched(budget)
	if g.lost() {
		return none, errLost
	}
	return reply, err
}

func (g *gate) Open(ctx context.Context, req regionstore.OpenRequest) (regionstore.OpenReply, error) {
	reply, err := step(g, req.Budget, func(s *regionmemory.Store) (regionstore.OpenReply, error) { return s.Open(ctx, req) })
	if err == nil && reply.Void {
		g.p.w.coverage.VoidRow++
	}
	return reply, err
}

func (g *gate) Begin(ctx context.Context, req regionstore.BeginRequest) (regionstore.BeginReply, error) {
	var before regionstore.Row
	if g.p.w.o.Check == CheckAll {
		before = g.store().Peek(req.Budget).Row
	}
	reply, err := step(g, req.Budget, func(s *regionmemory.Store) (regionstore.BeginReply, error) { return s.Begin(ctx, req) })
	for i := range reply.Reports {
		r := &reply.Reports[i]
		if old := &before.Leases[max(r.Report.Kind, 1)-1]; r.Outcome == regionstore.OK && old.Pending && old.Incarnation == r.Report.Incarnation {
			g.p.w.coverage.SupersededSequence++
		}
	}
	return reply, err
}

func (g *gate) Install(ctx context.Context, req regionstore.InstallRequest) (regionstore.InstallReply, error) {
	reply, err := step(g, req.Budget, func(s *regionmemory.Store) (regionstore.InstallReply, error) { return s.Install(ctx, req) })
	for _, o := range reply.Outcomes {
		switch o {
		case regionstore.Stale:
			g.p.w.coverage.StaleInstall++
		case regionstore.Dead:
			g.p.w.coverage.DeadInstall++
		}
	}
	return reply, err
}

func (g *gate) Take(ctx context.Context, req regionstore.TakeRequest) (regionstore.TakeReply, error) {
	s, err := g.enter()
	if err != nil {
		return regionstore.TakeReply{}, err
	}
	reply, err := s.Take(ctx, req)
	for i := range req.Takes {
		g.p.w.touched(req.Takes[i].Budget)
	}
	if g.p.freeze > 0 {
		g.p.skew, g.p.freeze = g.p.freeze, 0
		g.p.w.coverage.FrozenInTake++
	}
	if g.lost() {
		g.answerLate(req.Late, reply)
		return regionstore.TakeReply{}, errLost
	}
	return reply, err
}

// longestLate is how long after its decision the answer to a take may still come:
// also when no token in it may be spent any more.
const longestLate = lease.LongestProcessDeadline + time.Second

// answerLate hands the process every other lost answer after all.
func (g *gate) answerLate(late func(regionstore.TakeReply), reply regionstore.TakeReply) {
	r, p := g.p.region, g.p
	if late == nil || !chance(r.rand, 0.5) {
		return
	}
	r.w.after(time.Duration(r.rand.Int64N(int64(longestLate))), call(func() {
		p.do(call(func() {
			r.w.coverage.LateTake++
			late(reply)
		}))
	}))
}

func (g *gate) Settle(ctx context.Context, settles []regionstore.Settle) ([]regionstore.Outcome, error) {
	s, err := g.enter()
	if err != nil {
		return nil, err
	}
	outcomes, err := s.Settle(ctx, settles)
	for i := range settles {
		g.p.w.touched(settles[i].Budget)
		if err == nil && outcomes[i] == regionstore.Stale {
			g.p.w.coverage.StaleSettle++
		}
	}
	if g.lost() {
		return nil, errLost
	}
	return outcomes, err
}

func (g *gate) Refill(ctx context.Context, takes []regionstore.Take) ([]regionstore.TakeResult, error) {
	s, err := g.enter()
	if err != nil {
		return nil, err
	}
	results, err := s.Refill(ctx, takes)
	for i := range takes {
		g.p.w.touched(takes[i].Budget)
	}
	if g.lost() {
		if slices.ContainsFunc(results, func(r regionstore.TakeResult) bool { return len(r.Parts) > 0 }) {
			g.p.w.coverage.LostRefill++
		}
		return nil, errLost
	}
	return results, err
}

func (g *gate) Return(ctx context.Context, req regionstore.ReturnRequest) (regionstore.View, error) {
	return step(g, req.Budget, func(s *regionmemory.Store) (regionstore.View, error) { return s.Return(ctx, req) })
}

func (g *gate) Close(ctx context.Context, req regionstore.CloseRequest) (regionstore.View, error) {
	return step(g, req.Budget, func(s *regionmemory.Store) (regionstore.View, error) { return s.Close(ctx, req) })
}

func (g *gate) TakeLocal(ctx context.Context, req regionstore.LocalRequest) (regionstore.LocalReply, error) {
	return step(g, req.Budget, func(s *regionmemory.Store) (regionstore.LocalReply, error) { return s.TakeLocal(ctx, req) })
}

func (g *gate) Read(ctx context.Context, budgets []string, now []regionstore.Now) ([]regionstore.View, error) {
	s, err := g.enter()
	if err != nil {
		return nil, err
	}
	views, err := s.Read(ctx, budgets, now)
	for _, b := range budgets {
		g.p.w.touched(b)
	}
	if g.lost() {
		return nil, errLost
	}
	return views, err
}

func (g *gate) Touch(ctx context.Context, budgets []string, ttl time.Duration) error {
	s, err := g.enter()
	if err != nil {
		return err
	}
	return s.Touch(ctx, budgets, ttl)
}

func (g *gate) InUse(ctx context.Context) ([]string, error) {
	s, err := g.enter()
	if err != nil {
		return nil, err
	}
	return s.InUse(ctx)
}

func (g *gate) Disused(ctx context.Context, within time.Duration) ([]string, error) {
	s, err := g.enter()
	if err != nil {
		return nil, err
	}
	return s.Disused(ctx, within)
}

func (g *gate) Lead(ctx context.Context, holder string, ttl time.Duration) (bool, error) {
	s, err := g.enter()
	if err != nil {
		return false, err
	}
	return s.Lead(ctx, holder, ttl)
}

func (g *gate) Unlead(ctx context.Context, holder string) error {
	s, err := g.enter()
	if err != nil {
		return err
	}
	return s.Unlead(ctx, holder)
}

func (g *gate) Join(ctx context.Context, process string, ttl time.Duration) (int, error) {
	s, err := g.enter()
	if err != nil {
		return 0, err
	}
	return s.Join(ctx, process, ttl)
}

func (g *gate) Leave(ctx context.Context, process string) (int, error) {
	s, err := g.enter()
	if err != nil {
		return 0, err
	}
	return s.Leave(ctx, process)
}

// Slot is one for each tenant, as a cluster's key tags make it.
func (g *gate) Slot(budget string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(policy.Tenant(budget))) // never fails
	return h.Sum32()
}

func (g *gate) Primary(budget string) string { return g.store().Primary(budget) }
