package agent

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/allocation"
	ledgermemory "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	regionmemory "github.com/ration-dev/ration/regionstore/memory"
)

// world is a small simulator for these tests: one ledger in memory that checks
// itself after every write, regions with a store each, agents, a network that
// loses, repeats, delays and reorders, all on one virtual clock, from one seed.
type world struct {
	t      rapid.TB
	rand   *rand.Rand
	now    time.Duration
	events eventHeap
	seq    int
	nonces int

	ledger  *allocation.Allocator
	store   *ledgermemory.Store
	regions map[string]*site
	agents  []*node
	faults  faults
	// admitted has every admission, for the checks of windows.
	admitted map[string][]admission
	check    bool
}

type admission struct {
	at   time.Duration
	cost lease.Tokens
}

// faults of the network between regions and ledger, each a probability.
type faults struct {
	loseRequest, loseReply, duplicate float64
	jitter                            time.Duration
	// cut makes every message of a region be lost.
	cut map[string]bool
}

type site struct {
	name   string
	store  *regionmemory.Store
	rtt    time.Duration
	replid int
	// skew is added to the store's clock.
	skew time.Duration
}

// node is one agent process.
type node struct {
	w        *world
	site     *site
	name     string
	decider  *Decider
	keeper   *Keeper
	executor *Executor
	stats    *Stats
	dead     bool
	stopped  bool
	wakeAt   time.Duration
	urgent   []Urgent
	// killAt, when set, is asked before and after every effect; true kills.
	killAt func(stage string, f Effect) bool
}

type timed struct {
	at  time.Duration
	seq int
	do  func()
}

type eventHeap []timed

func (h eventHeap) Len() int { return len(h) }
func (h eventHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].seq < h[j].seq
}
func (h eventHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventHeap) Push(x any)   { *h = append(*h, x.(timed)) }
func (h *eventHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

const epoch = lease.Time(1_800_000_000_000_000)

func newWorld(t rapid.TB, seed uint64) *world {
	w := &world{
		t: t, rand: rand.New(rand.NewPCG(seed, 1)), regions: map[string]*site{},
		admitted: map[string][]admission{}, check: true,
	}
	w.store = ledgermemory.New(func() lease.Time { return epoch.Add(w.now) }, ledgermemory.WithCheck())
	w.ledger = allocation.NewAllocator(w.store, allocation.Config{}, allocation.WithObserver(func(err error) {
		w.t.Errorf("ledger: %v", err)
	}))
	w.after(time.Second, w.sweep)
	return w
}

func (w *world) sweep() {
	if _, err := w.ledger.Sweep(context.Background()); err != nil {
		w.t.Errorf("sweep: %v", err)
	}
	w.after(200*time.Millisecond, w.sweep)
}

func (w *world) nonce() string { w.nonces++; return fmt.Sprintf("nonce-%d", w.nonces) }

func (w *world) after(d time.Duration, do func()) {
	w.seq++
	heap.Push(&w.events, timed{at: w.now + d, seq: w.seq, do: do})
}

// run lets virtual time pass.
func (w *world) run(d time.Duration) {
	end := w.now + d
	for len(w.events) > 0 && w.events[0].at <= end {
		e := heap.Pop(&w.events).(timed)
		w.now = max(w.now, e.at)
		e.do()
		if w.t.Failed() {
			w.t.FailNow()
		}
	}
	w.now = end
}

func (w *world) apply(budgets ...policy.Budget) {
	w.t.Helper()
	if _, err := w.ledger.Apply(context.Background(), budgets); err != nil {
		w.t.Fatalf("apply: %v", err)
	}
}

func (w *world) region(name string, rtt time.Duration) *site {
	s := &site{name: name, rtt: rtt}
	s.store = regionmemory.New(
		func() lease.Time { return epoch.Add(w.now+s.skew) + 12345 },
		func() string { s.replid++; return fmt.Sprintf("%s-%d", name, s.replid) },
		regionstore.DefaultConfig())
	w.regions[name] = s
	return s
}

func (w *world) agent(s *site) *node {
	n := &node{w: w, site: s, name: w.nonce(), stats: &Stats{}}
	opt := Options{
		Region: s.name, Process: n.name, Store: s.store,
		Now:  func() time.Duration { return w.now + time.Hour },
		Wall: func() time.Time { return time.UnixMicro(int64(epoch.Add(w.now))) },

		StoreDeadline: -1, // it would be the machine's clock that ends a call
	}
	n.decider = NewDecider(opt, n.stats, func(u Urgent) { n.urgent = append(n.urgent, u) })
	n.keeper = NewKeeper(KeeperConfig{
		Region: s.name, Process: n.name, Rand: rand.New(rand.NewPCG(w.rand.Uint64(), 2)),
		Nonce: w.nonce, Stats: n.stats,
	})
	n.executor = &Executor{Decider: n.decider, Leases: w.ledger, Policies: w.ledger, StoreTimeout: -1}
	w.agents = append(w.agents, n)
	w.after(0, func() { n.step(Tick{}) })
	w.after(flushEvery, n.flush)
	return n
}

func (n *node) flush() {
	if n.dead || n.stopped {
		return
	}
	n.decider.Flush(context.Background(), false)
	n.w.verify()
	n.w.after(flushEvery, n.flush)
}

func (n *node) step(ev Event) {
	if n.dead || n.stopped {
		return
	}
	effects, wake := n.keeper.Step(n.w.now+time.Hour, ev)
	for _, f := range effects {
		n.do(f)
	}
	at := max(wake-time.Hour, n.w.now+time.Microsecond)
	n.wakeAt = at
	n.w.after(at-n.w.now, func() {
		if n.wakeAt == at {
			n.wakeAt = 0
			n.step(Tick{})
		}
	})
}

// kill makes the process vanish with all it had in memory.
func (n *node) kill() { n.dead = true }

func (n *node) do(f Effect) {
	if n.dead {
		return
	}
	if n.killAt != nil && n.killAt("before", f) {
		n.kill()
		return
	}
	switch f := f.(type) {
	case Tell, SetBudgets:
		n.executor.Do(context.Background(), f)
	case Stopped:
		n.stopped = true
	case SendSync:
		n.send(f)
	default:
		n.w.after(200*time.Microsecond, func() { n.finish(f) })
	}
}

func (n *node) finish(f Effect) {
	if n.dead {
		return
	}
	ev := n.executor.Do(context.Background(), f)
	n.w.verify()
	if n.killAt != nil && n.killAt("after", f) {
		n.kill()
		return
	}
	if ev != nil {
		n.step(ev)
	}
}

var errLost = errors.New("lost")

// send is a round trip through the faulty network.
func (n *node) send(f SendSync) {
	w, sent := n.w, n.w.now
	answered := false
	answer := func(reply lease.SyncReply, err error) {
		if answered || n.dead {
			return
		}
		answered = true
		if n.killAt != nil && n.killAt("reply", f) {
			n.kill()
			return
		}
		n.step(SyncDone{ID: f.ID, Reply: reply, Took: w.now - sent, Err: err})
	}
	w.after(f.Timeout, func() { answer(lease.SyncReply{}, errLost) })
	copies := 1
	if w.rand.Float64() < w.faults.duplicate {
		copies++
	}
	for range copies {
		if w.faults.cut[n.site.name] || w.rand.Float64() < w.faults.loseRequest {
			continue
		}
		w.after(w.delay(n.site), func() { n.arrive(f, answer) })
	}
}

func (w *world) delay(s *site) time.Duration {
	d := s.rtt / 2
	if w.faults.jitter > 0 {
		d += time.Duration(w.rand.Int64N(int64(w.faults.jitter)))
	}
	return d
}

func (n *node) arrive(f SendSync, answer func(lease.SyncReply, error)) {
	w := n.w
	if n.killAt != nil && n.killAt("commit", f) {
		n.kill()
	}
	req := lease.SyncRequest{Region: n.site.name, Items: f.Items}
	reply, err := w.ledger.SyncLeases(context.Background(), req)
	w.verify()
	if w.faults.cut[n.site.name] || w.rand.Float64() < w.faults.loseReply {
		return
	}
	w.after(w.delay(n.site), func() { answer(reply, err) })
}

// decide decides a check now and lets the keeper hear of urgent wishes; a
// Pending is resumed as the clock says, and done is called with the answer.
func (n *node) decide(c Check, done func(Answer)) {
	if n.dead || n.stopped {
		return
	}
	a, p, err := n.decider.Begin(context.Background(), c)
	n.after(c, a, p, err, done)
}

func (n *node) after(c Check, a Answer, p *Pending, err error, done func(Answer)) {
	if err != nil {
		n.w.t.Fatalf("decide: %v", err)
	}
	n.w.verify()
	urgent := n.urgent
	n.urgent = nil
	for _, u := range urgent {
		n.step(u)
	}
	if p == nil {
		if a.Outcome == Allowed && a.Mode != FromLocal {
			n.w.admit(c, a)
		}
		if done != nil {
			done(a)
		}
		return
	}
	n.await(c, p, done)
}

// await looks every millisecond whether p is to be resumed.
func (n *node) await(c Check, p *Pending, done func(Answer)) {
	n.w.after(time.Millisecond, func() {
		if n.dead {
			return
		}
		arrived := false
		select {
		case <-p.Arrived:
			arrived = true
		default:
		}
		if !arrived && n.w.now+time.Hour < p.At {
			n.await(c, p, done)
			return
		}
		a, next, err := n.decider.Resume(context.Background(), p)
		n.after(c, a, next, err, done)
	})
}

func (w *world) admit(c Check, a Answer) {
	if len(c.Budgets) == 0 {
		return
	}
	for _, b := range c.Budgets {
		w.admitted[b] = append(w.admitted[b], admission{at: w.now, cost: c.Cost})
	}
}

// state is the ledger's state of a budget.
func (w *world) state(budget string) *allocation.State {
	for s, err := range w.ledger.States(context.Background()) {
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		if s.Budget.Name == budget {
			return &s
		}
	}
	w.t.Fatalf("no budget %q", budget)
	return nil
}

// verify asserts invariants 2, 5 and 10 as they stand now: what all regions'
// wallets and processes could still spend is never more than what the ledger
// counts as outstanding.
func (w *world) verify() {
	if !w.check {
		return
	}
	for s, err := range w.ledger.States(context.Background()) {
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		if err := allocation.Check(&s); err != nil {
			w.t.Fatalf("at %v: %v", w.now, err)
		}
		var spendable, out lease.Tokens
		for _, r := range w.regions {
			spendable += w.spendable(r, s.Budget.Name)
		}
		for i := range s.Leases {
			out += s.Leases[i].Hold
		}
		if spendable > out {
			w.t.Fatalf("invariant 10: at %v regions can spend %d of %s, the ledger counts %d outstanding", w.now, spendable, s.Budget.Name, out)
		}
	}
}

// spendable is what one region could admit now without another word: its
// wallet's live tokens and what lies in processes, before its deadline.
func (w *world) spendable(r *site, budget string) lease.Tokens {
	views, err := r.store.Read(context.Background(), []string{budget}, []regionstore.Now{{NotAfter: epoch.Add(w.now+r.skew) + 12345}})
	if err != nil {
		return 0
	}
	n := views[0].Live[0] + views[0].Live[1] + views[0].Live[2]
	for _, a := range w.agents {
		if a.site != r || a.dead {
			continue
		}
		e := a.decider.entry(budget)
		if e == nil || e.usage == nil {
			continue
		}
		for _, q := range e.pocket.parts {
			if w.now+time.Hour < q.deadline {
				n += lease.Tokens(q.free.Load()) + q.held
			}
		}
	}
	return n
}

// excess is by how much the worst window's admissions stood above a bucket of
// rate and burst (Lindley's recursion).
func (w *world) excess(budget string, rate float64, burst lease.Tokens) float64 {
	var level, worst float64
	var last time.Duration
	for _, a := range w.admitted[budget] {
		level = max(0, level-rate*(a.at-last).Seconds())
		last = a.at
		level += float64(a.cost)
		worst = max(worst, level-float64(burst))
	}
	return worst
}

func (w *world) total(budget string) (n lease.Tokens) {
	for _, a := range w.admitted[budget] {
		n += a.cost
	}
	return n
}

// load offers cost-1 checks to an agent, evenly spread with jitter.
func (n *node) load(budget string, rate float64, until time.Duration) {
	if rate <= 0 {
		return
	}
	gap := time.Duration(n.w.rand.ExpFloat64() / rate * float64(time.Second))
	n.w.after(gap, func() {
		if n.w.now > until || n.dead {
			return
		}
		n.decide(Check{Budgets: []string{budget}, Cost: 1}, nil)
		n.load(budget, rate, until)
	})
}

// audit proves conservation from the stored rows.
func (w *world) audit() {
	w.t.Helper()
	for v, err := range w.ledger.Audit(context.Background()) {
		if err != nil {
			w.t.Fatalf("%v", err)
		}
		w.t.Errorf("audit: %v", v)
	}
}
