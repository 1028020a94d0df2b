package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	regionmemory "github.com/ration-dev/ration/regionstore/memory"
)

// world is one run.
type world struct {
	o        Options
	declared lease.Clocks
	now      time.Duration
	events   events

	db         *database
	allocators []*allocator
	regions    []*region
	budgets    []*budget
	byName     map[string]*budget
	streams    []*stream

	commitTime, storeTimeout, flushEvery, sampleEvery time.Duration
	// yardstick runs have no deployment at all.
	yardstick bool
	// fastest is how much faster than true time anything may mint, allowed how
	// much the deployment declares, both in parts per million.
	fastest, allowed int64

	dirty     []*budget
	checks    int64
	coverage  Coverage
	found     []Violation
	marks     []Mark
	eventsRun int64
	decisions int64
	rpcs      int64
	items     int64
	heldNow   []lease.Tokens
	ended     bool
}

// maxFound bounds the violations that a result lists.
const maxFound = 20

const defaultEpoch = lease.Time(1_800_000_000_000_000) // 2027-01-15 08:00 UTC

func orDefault(d, otherwise time.Duration) time.Duration {
	switch {
	case d == 0:
		return otherwise
	case d < 0:
		return 0
	}
	return d
}

func newWorld(o Options) (*world, error) {
	o = o.withDefaults()
	w := &world{
		o: o, declared: o.Topology.Declared, byName: map[string]*budget{},
		commitTime:   orDefault(o.Topology.Ledger.Commit, 2*time.Millisecond),
		storeTimeout: orDefault(o.StoreTimeout, 250*time.Millisecond),
		flushEvery:   max(50*time.Millisecond, o.Bulk),
		sampleEvery:  max(100*time.Millisecond, (o.Length / 2000).Truncate(time.Millisecond)),
		yardstick:    o.Strategy == Central || o.Strategy == CountLocally,
	}
	w.db = newDatabase(w)
	for i := range max(1, o.Topology.Ledger.Allocators) {
		w.allocators = append(w.allocators, newAllocator(w, i))
	}
	for i, spec := range o.Topology.Regions {
		w.regions = append(w.regions, newRegion(w, i, spec))
	}
	w.allowed = w.declared.DriftPPM
	w.heldNow = make([]lease.Tokens, len(w.regions))
	w.noteDrift()
	if err := w.addBudgets(); err != nil {
		return nil, err
	}
	for i := range o.Workloads {
		w.streams = append(w.streams, newStreams(w, i)...)
	}
	w.addMoves()
	return w, nil
}

func (o Options) withDefaults() Options {
	if o.Epoch == 0 {
		o.Epoch = defaultEpoch
	}
	if o.Topology.Declared == (lease.Clocks{}) {
		o.Topology.Declared = lease.DefaultClocks()
	}
	if o.WriteBack <= 0 {
		o.WriteBack = time.Second
	}
	o.Workloads = slices.Clone(o.Workloads)
	for i := range o.Workloads {
		if o.Workloads[i].Name == "" {
			o.Workloads[i].Name = strconv.Itoa(i)
		}
	}
	return o
}

func (w *world) deployment() policy.Deployment {
	t := &w.o.Topology
	return policy.Deployment{
		Clocks: w.declared, ReplicatedStores: t.ReplicatedStores,
		StoreIsolation: t.StoreIsolation, StoreOutage: t.StoreOutage,
	}
}

// played returns a budget as the run's strategy plays it.
func (w *world) played(b policy.Budget) policy.Budget {
	switch w.o.Strategy {
	case Static, Independent, Dynamic:
		b.Strategy = policy.Strategy(w.o.Strategy)
	}
	if b.Strategy == policy.Independent {
		b.Float, b.OverAdmission = 0, policy.OverAdmission{}
	}
	if b.Strategy == policy.Dynamic || b.Strategy == "" {
		return b
	}
	b.Regions = slices.Clone(b.Regions)
	if len(b.Regions) == 0 {
		for _, r := range w.o.Topology.Regions {
			b.Regions = append(b.Regions, policy.Region{Name: r.Name})
		}
	}
	for i := range b.Regions {
		b.Regions[i].Floor, b.Regions[i].Reserve = lease.Rate{}, policy.Reserve{}
	}
	return b
}

// addBudgets applies the budgets before anything else happens.
func (w *world) addBudgets() error {
	for i, b := range w.o.Budgets {
		m := newBudget(w, i, b)
		w.budgets = append(w.budgets, m)
		w.byName[b.Name] = m
		if w.o.Strategy == CountLocally {
			for range w.regions {
				m.yard = append(m.yard, &localCount{})
			}
		}
	}
	return w.apply(w.o.Budgets, true)
}

// apply puts budgets in force, in the ledger and for the measures.
func (w *world) apply(budgets []policy.Budget, first bool) error {
	played := make([]policy.Budget, len(budgets))
	for i, b := range budgets {
		played[i] = w.played(b)
		normal, err := played[i].Normalize(w.deployment())
		if err != nil {
			return fieldError(fmt.Sprintf("budgets[%d] (%s)", i, b.Name), "%v", err)
		}
		if w.yardstick {
			w.byName[b.Name].put(normal, first)
		}
	}
	if w.yardstick {
		return nil
	}
	inForce, err := w.allocators[0].core.Apply(context.Background(), played)
	if err != nil {
		return fieldError("budgets", "%v", err)
	}
	for _, b := range inForce {
		w.inForce(b, first)
	}
	return nil
}

// inForce tells the measures of a changed policy.
func (w *world) inForce(b policy.Budget, first bool) {
	m := w.byName[b.Name]
	if m == nil {
		return
	}
	if !first {
		m.advance()
		m.put(b, false)
		m.blame.cut += m.excess()
		return
	}
	m.put(b, true)
}

// excess is what a change leaves to spend above what the new contract has left
// and its float: tokens that were within the old one. What is out is not made
// less by a pool's debt.
func (b *budget) excess() lease.Tokens {
	s := b.w.db.mem.Peek(b.name)
	if s == nil {
		return 0
	}
	left := max(0, b.police.level) + b.policy.Float
	var n lease.Tokens
	for i := range s.Pools {
		n += max(0, s.Pools[i].Available) + s.Pools[i].Outstanding
	}
	return max(0, n-left)
}

func (w *world) regionNamed(name string) *region {
	for _, r := range w.regions {
		if r.spec.Name == name {
			return r
		}
	}
	return nil
}

func (w *world) budgetNamed(name string) *budget { return w.byName[name] }

// addMoves finds when demand moves, for the time that it takes to rebalance.
func (w *world) addMoves() {
	for i := range w.o.Workloads {
		spec := &w.o.Workloads[i]
		mover, ok := spec.Pattern.(Mover)
		if !ok || len(spec.Budgets) != 1 {
			continue
		}
		b, r := w.byName[spec.Budgets[0]], w.regionNamed(spec.Region)
		for _, at := range mover.Moves(w.o.Length) {
			b.moves = append(b.moves, move{at, r.index})
		}
	}
	for _, b := range w.budgets {
		slices.SortStableFunc(b.moves, func(x, y move) int { return int(x.at - y.at) })
	}
}

// at schedules an action; not before now.
func (w *world) at(t time.Duration, do action) {
	if t >= never {
		return
	}
	w.events.push(max(w.now, roundUp(t)), do)
}

func roundUp(t time.Duration) time.Duration {
	if rest := t % time.Microsecond; rest > 0 {
		t += time.Microsecond - rest
	}
	return t
}

func (w *world) after(d time.Duration, do action) { w.at(w.now+d, do) }

// run lets the time pass.
func (w *world) run(ctx context.Context) {
	w.begin()
	progress := w.o.Length / 100
	next := progress
	for len(w.events.list) > 0 && w.events.list[0].at <= w.o.Length && !w.ended {
		e := w.events.pop()
		w.now = e.at
		e.do.fire()
		w.eventsRun++
		if len(w.dirty) > 0 {
			w.verify()
		}
		if w.eventsRun%4096 == 0 && ctx.Err() != nil {
			return
		}
		if w.now >= next {
			next += progress
			if w.o.Progress != nil {
				w.o.Progress(w.now)
			}
		}
	}
	if !w.ended {
		w.now = w.o.Length
	}
}

func (w *world) begin() {
	if !w.yardstick {
		for _, r := range w.regions {
			for _, s := range r.agents {
				s.start()
			}
		}
		w.inject()
	}
	for i := range w.o.Changes {
		c := &w.o.Changes[i]
		w.at(c.At, call(func() { w.change(c) }))
	}
	for _, s := range w.streams {
		s.begin()
	}
	if w.o.Strategy == CountLocally {
		w.after(w.o.WriteBack, call(w.exchange))
	}
	w.after(w.sampleEvery, call(w.sample))
	if w.o.Warmup > 0 {
		w.at(w.o.Warmup, call(w.warm))
	}
}

// warm begins to count.
func (w *world) warm() {
	w.rpcs, w.items, w.decisions = 0, 0, 0
	for _, b := range w.budgets {
		b.advance()
		b.warm()
	}
}

// change makes a change of budgets; while the ledger is away it is tried
// again, as its owner would.
func (w *world) change(c *Change) {
	var err error
	if len(c.Apply) > 0 {
		err = w.apply(c.Apply, false)
	}
	if err == nil && len(c.Delete) > 0 {
		err = w.remove(c.Delete)
	}
	if err != nil && w.now < c.At+time.Hour {
		w.after(time.Second, call(func() { w.change(c) }))
		return
	}
	w.coverage.PolicyChanged++
	var names []string
	for _, b := range c.Apply {
		names = append(names, b.Name)
	}
	w.mark(0, "budgets changed: %s", strings.Join(append(names, c.Delete...), ", "))
}

func (w *world) remove(names []string) error {
	if w.yardstick {
		for _, n := range names {
			b := w.byName[n]
			gone := b.policy
			gone.Deleted = true
			b.put(gone, false)
		}
		return nil
	}
	gone, err := w.allocators[0].core.Delete(context.Background(), names)
	for _, b := range gone {
		w.inForce(b, false)
	}
	return err
}

func (w *world) sample() {
	for _, b := range w.budgets {
		b.advance()
		b.sample()
		if b.series != nil && !w.yardstick {
			b.series.look(b)
		}
	}
	w.after(w.sampleEvery, call(w.sample))
}

// sent counts a call to the ledger.
func (w *world) sent(items []lease.Item) {
	w.rpcs++
	w.items += int64(len(items))
	for i := range items {
		if b := w.byName[items[i].Budget]; b != nil {
			b.items++
		}
	}
}

// cover counts what the ledger answered.
func (w *world) cover(reply *lease.SyncReply, err error) {
	for i := range reply.Items {
		if reply.Items[i].Err != nil {
			w.coverage.RefusedItem++
		}
		for _, s := range reply.Items[i].Leases {
			switch s.Status {
			case lease.Ended:
				w.coverage.EndedAnswer++
			case lease.NotPlanned:
				w.coverage.NotPlanned++
			}
		}
	}
}

// coverSequences counts repetitions that a request brings to the ledger.
func (w *world) coverSequences(req *lease.SyncRequest) {
	if w.o.Check != CheckAll {
		return
	}
	for i := range req.Items {
		s := w.db.mem.Peek(req.Items[i].Budget)
		if s == nil {
			continue
		}
		for _, r := range req.Items[i].Leases {
			for k := range s.Leases {
				l := &s.Leases[k]
				switch {
				case l.Incarnation != r.Incarnation:
				case l.Seq == r.Seq:
					w.coverage.ReplayedSequence++
				case l.Seq > r.Seq:
					w.coverage.OlderSequence++
				}
			}
		}
	}
}

// observe hears of what allocators only log.
func (w *world) observe(err error) {
	if v, ok := errors.AsType[allocation.Violation](err); ok {
		w.violate(fmt.Sprintf("%d %s", v.Invariant, v.Name), v.Budget, "%s: %s", v.Row, v.Detail)
		return
	}
	switch {
	case errors.Is(err, allocation.ErrUnknownCommit):
		w.coverage.UnknownCommit++
	case errors.Is(err, errDown):
		w.coverage.FailedCommit++
	default:
		w.violate("fault", "", "%v", err)
	}
}

// violate notes an invariant that does not hold.
func (w *world) violate(invariant, budget, format string, args ...any) {
	if len(w.found) < maxFound {
		w.found = append(w.found, Violation{At: w.now, Invariant: invariant, Budget: budget, Detail: fmt.Sprintf(format, args...)})
	}
	if w.o.StopAtViolation {
		w.ended = true
	}
}

func (w *world) mark(length time.Duration, format string, args ...any) {
	if len(w.marks) < 1000 {
		w.marks = append(w.marks, Mark{At: w.now, Until: w.now + length, Text: fmt.Sprintf(format, args...)})
	}
}

// touched says that a budget's row in a region changed.
func (w *world) touched(budget string) {
	if w.o.Check == CheckNone {
		return
	}
	if b := w.byName[budget]; b != nil && !b.dirty {
		b.dirty = true
		w.dirty = append(w.dirty, b)
	}
}

// wrote says that the ledger's states of these budgets changed.
func (w *world) wrote(budgets []string) {
	for _, name := range budgets {
		b := w.byName[name]
		if b == nil {
			continue
		}
		s := w.db.mem.Peek(name)
		if s == nil {
			continue
		}
		b.noteExcess(s)
		w.touched(name)
		if w.o.Check == CheckSome && w.db.writes%100 == 0 {
			if err := allocation.Check(s); err != nil {
				w.observe(err)
			}
		}
	}
}

// noteExcess keeps by how much the leased rates stand above the limit.
func (b *budget) noteExcess(s *allocation.State) {
	var excess lease.Rate
	for i := range s.Pools {
		if p := &s.Pools[i]; p.X > p.Rate.Tokens {
			excess = lease.Rate{Tokens: p.X - p.Rate.Tokens, Per: p.Rate.Per}
		}
	}
	if excess != b.blame.excess {
		b.blame.accrue(b.w.now)
		b.blame.excess = excess
	}
}

// verify proves invariant 10 of the budgets that were touched.
func (w *world) verify() {
	dirty := w.dirty
	w.dirty = w.dirty[:0]
	w.checks++
	for _, b := range dirty {
		b.dirty = false
		if w.o.Check == CheckSome && w.checks%100 != 0 {
			continue
		}
		b.verify()
	}
}

// verify asserts that regions can spend no more than the ledger counts, save
// for what the budget's bound declares: prefetch of a suspended machine, and
// shares that were regranted while an old primary serves some.
func (b *budget) verify() {
	w := b.w
	s := w.db.mem.Peek(b.name)
	if s == nil || w.now < b.excused {
		return
	}
	var counted, held lease.Tokens
	for i := range s.Leases {
		counted += s.Leases[i].Hold
	}
	for _, r := range w.regions {
		held += b.heldIn(r, true)
	}
	if held > counted {
		w.violate("10 the wallet never exceeds the hold", b.name, "regions can spend %d, the ledger counts %d", held, counted)
	}
}

// held is what each region could spend of a budget now. The slice is valid
// until the next call.
func (w *world) held(b *budget) []lease.Tokens {
	for i, r := range w.regions {
		w.heldNow[i] = 0
		switch {
		case w.o.Strategy == Central:
			w.heldNow[i] = b.ideal.level / lease.Tokens(len(w.regions))
		case w.yardstick:
			w.heldNow[i] = max(0, b.yard[i].level)
		default:
			w.heldNow[i] = b.heldIn(r, false)
		}
	}
	return w.heldNow
}

// heldIn is what one region could spend; without what is declared, if strict.
func (b *budget) heldIn(r *region, strict bool) lease.Tokens {
	n := b.liveIn(r, r.store, strict)
	if r.old != nil {
		n += b.liveIn(r, r.old, strict)
	}
	for _, s := range r.agents {
		p := s.process
		if p == nil || p.dead || strict && (p.suspended > 0 || p.woke() || r.old != nil && p.gate.isolated()) {
			continue
		}
		n += p.decider.Prefetched(b.name, p.now())
	}
	return n
}

// liveIn is what can be taken from a store's row; without the shares that were
// regranted while there were two primaries, if strict.
func (b *budget) liveIn(r *region, store *regionmemory.Store, strict bool) (n lease.Tokens) {
	v := store.Peek(b.name)
	for k, live := range v.Live {
		if strict && live > 0 && b.w.now < r.rivalry && b.regranted(v.Row.Leases[k].Incarnation) {
			continue
		}
		n += live
	}
	return n
}

// regranted reports whether the ledger has granted another share in this
// one's place.
func (b *budget) regranted(inc lease.Incarnation) bool {
	if s := b.w.db.mem.Peek(b.name); s != nil {
		for i := range s.Leases {
			if l := &s.Leases[i]; l.Incarnation == inc {
				return l.Ending == allocation.Regranted
			}
		}
	}
	return false
}

// woke reports whether the process may still hold what it prefetched before
// its machine was suspended.
func (p *process) woke() bool {
	return p.resumedAt > 0 && p.w.now < p.resumedAt+2*lease.LongestProcessDeadline
}

// offered books requests before they are decided.
func (s *stream) offered(n int64, cost lease.Tokens) {
	for _, b := range s.budgets {
		b.offer(s.region.index, n, cost)
	}
}

// outcome books what came of them.
func (s *stream) outcome(n, admitted int64, cost lease.Tokens, a agent.Answer, p *process) {
	for _, b := range s.budgets {
		b.outcome(s.region.index, n, admitted, cost, a, b.class(a, p))
	}
}

// class says whether admitted tokens were anything but legitimate.
func (b *budget) class(a agent.Answer, p *process) CauseName {
	switch {
	case p == nil:
		return ""
	case a.Mode == agent.FromLocal && b.locally:
		return CauseLocal
	case p.w.now < p.region.rivalry && b.mayBeRegranted(p):
		return CauseRegrant
	case a.Mode == agent.FromPrefetch && p.woke():
		return CauseSuspended
	}
	return ""
}

// regrants reports whether shares of a lost store are granted anew at once.
func (b *budget) regrants() bool { return b.policy.OnStoreLoss == policy.Regrant }

// mayBeRegranted reports whether what a process spends may come from a share
// that was regranted, or will be: of a replaced primary any, of the new one a
// share that the old one has asked for. A lump is none of regrant's concern: the
// ledger counts it until it has expired, whoever spends it.
func (b *budget) mayBeRegranted(p *process) bool {
	row := p.gate.store().Peek(b.name).Row
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := &row.Leases[kind-1]
		if kind.IsShare() && l.Deadline != 0 && (p.gate.isolated() && b.regrants() || b.regranted(l.Incarnation)) {
			return true
		}
	}
	return false
}

// fold takes over the counters of a process that has ended.
func (w *world) fold(p *process) {
	if p.folded {
		return
	}
	p.folded = true
	c, s := &w.coverage, &p.stats
	c.ResumedSequence += s.Resumed.Load()
	c.LocalStore += s.LocalStore.Load()
	c.LocalProcess += s.LocalProcess.Load()
	c.Discarded += s.Discarded.Load()
	c.BreakerOpened += s.BreakerOpened.Load()
	c.Prefetched += s.Prefetched.Load()
	c.GivenBack += s.GivenBack.Load()
	c.DeniedFromMemory += s.Decisions[agent.Denied][agent.FromMemory].Load()
}
