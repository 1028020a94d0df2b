package sim

import (
	"fmt"
	"time"

	ledgermemory "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
	regionmemory "github.com/ration-dev/ration/regionstore/memory"
)

// inject schedules the faults, and, for those that bring back something old,
// the copy that they will need.
func (w *world) inject() {
	for i := range w.o.Faults {
		f := &w.o.Faults[i]
		switch f.Kind {
		case DatabaseFailover:
			w.injectFailover(f)
		case StoreRestore, StoreFailover:
			for _, r := range w.regionsOf(f) {
				w.injectStore(f, r)
			}
		default:
			w.at(f.At, call(func() {
				w.mark(f.For, "%s", f)
				w.begins(f)
			}))
		}
	}
}

func (f *Fault) String() string {
	where := f.Region
	if where == "" {
		where = "all"
	}
	switch f.Kind {
	case KillAgent, StopAgent, PauseAgent, SuspendAgent, FreezeInTake, FreezeInDecision:
		return fmt.Sprintf("%s %s/%d", f.Kind, where, f.Agent)
	case KillAllocator, PauseAllocator:
		return fmt.Sprintf("%s %d", f.Kind, f.Allocator)
	case DatabaseDown, UnknownCommits, DatabaseFailover, StepDatabaseClock, DriftDatabaseClock, DriftAllocator:
		return string(f.Kind)
	}
	return fmt.Sprintf("%s %s", f.Kind, where)
}

func (w *world) regionsOf(f *Fault) []*region {
	if f.Region == "" {
		return w.regions
	}
	return []*region{w.regionNamed(f.Region)}
}

func (w *world) slotsOf(f *Fault) []*slot {
	var all []*slot
	for _, r := range w.regionsOf(f) {
		for _, s := range r.agents {
			if f.Agent < 0 || f.Agent == s.index {
				all = append(all, s)
			}
		}
	}
	return all
}

func (w *world) allocatorsOf(f *Fault) []*allocator {
	if f.Allocator < 0 {
		return w.allocators
	}
	return w.allocators[f.Allocator : f.Allocator+1]
}

// ends schedules the end of a fault that has one.
func (w *world) ends(f *Fault, undo func()) {
	if f.For > 0 {
		w.after(f.For, call(undo))
	}
}

func (f *Fault) probability() float64 {
	if f.Probability == 0 {
		return 1
	}
	return f.Probability
}

// begins lets a fault happen.
func (w *world) begins(f *Fault) {
	switch f.Kind {
	case CutRequests, CutReplies, Partition, DegradeLinks, LoseReplies:
		for _, r := range w.regionsOf(f) {
			w.breakLinks(f, r)
		}
	case KillAgent, StopAgent, PauseAgent, SuspendAgent, FreezeInTake, FreezeInDecision:
		for _, s := range w.slotsOf(f) {
			w.breakAgent(f, s)
		}
	case KillAllocator, PauseAllocator, DriftAllocator:
		for _, a := range w.allocatorsOf(f) {
			w.breakAllocator(f, a)
		}
	case StoreRestart, LoseRow, StoreStall, StoreUnknown, StepStoreClock, DriftStoreClock:
		for _, r := range w.regionsOf(f) {
			w.breakStore(f, r)
		}
	case DriftAgentClock:
		for _, s := range w.slotsOf(f) {
			w.drift(f, s.clock)
		}
	case DatabaseDown, UnknownCommits, StepDatabaseClock, DriftDatabaseClock:
		w.breakDatabase(f)
	}
}

func (w *world) breakLinks(f *Fault, r *region) {
	var wires []*wire
	if f.Kind != CutReplies && f.Kind != LoseReplies {
		wires = append(wires, r.up)
	}
	if f.Kind != CutRequests {
		wires = append(wires, r.down)
	}
	for _, l := range wires {
		switch f.Kind {
		case DegradeLinks:
			before := l.link
			l.link = f.Link
			w.ends(f, func() { l.link = before })
		case LoseReplies:
			before := l.loss
			l.loss = f.probability()
			w.ends(f, func() { l.loss = before })
		default:
			l.cuts++
			w.ends(f, func() { l.cuts-- })
		}
	}
}

func (w *world) breakAgent(f *Fault, s *slot) {
	p := s.process
	if p == nil || p.dead || p.stopping {
		return
	}
	c := &w.coverage
	switch f.Kind {
	case KillAgent:
		c.AgentKilled++
		p.kill()
		w.ends(f, func() { s.start() })
	case StopAgent:
		c.AgentStopped++
		p.do(call(p.stop))
		w.ends(f, func() {
			if !p.dead {
				p.kill()
			}
			s.start()
		})
	case FreezeInTake:
		p.freeze = f.For
	case FreezeInDecision:
		p.stumble = f.For
	case PauseAgent:
		c.AgentPaused++
		p.frozen++
		w.ends(f, p.thaw)
	case SuspendAgent:
		c.AgentSuspended++
		p.frozen++
		if p.suspended++; p.suspended == 1 {
			p.clock.stop(w.now)
		}
		w.ends(f, func() { p.unsuspend() })
	}
}

// unsuspend lets the clock go on from where it stood.
func (p *process) unsuspend() {
	if p.suspended--; p.suspended == 0 {
		p.clock.start(p.w.now)
		p.resumedAt = p.w.now
	}
	p.thaw()
}

func (w *world) breakAllocator(f *Fault, a *allocator) {
	switch f.Kind {
	case KillAllocator:
		if a.dead {
			return
		}
		a.kill()
		w.ends(f, a.start)
	case PauseAllocator:
		w.coverage.AllocatorPaused++
		a.paused++
		w.ends(f, a.resume)
	case DriftAllocator:
		w.drift(f, a.clock)
	}
}

func (w *world) breakStore(f *Fault, r *region) {
	c := &w.coverage
	switch f.Kind {
	case StoreRestart:
		c.StoreRestarted++
		r.store.Restart()
	case LoseRow:
		for _, b := range w.budgets {
			if f.Budget == "" || f.Budget == b.name {
				c.RowLost++
				r.store.LoseRow(b.name)
			}
		}
	case StoreStall:
		c.Stalled++
		r.stalls++
		w.ends(f, func() { r.stalls-- })
	case StoreUnknown:
		before := r.unknown
		r.unknown = f.probability()
		w.ends(f, func() { r.unknown = before })
	case StepStoreClock:
		c.ClockStepped++
		r.clock.step(f.Step)
		w.stepped(f.Step, regionstore.MaxLag+r.behind)
		r.behind = max(0, r.behind-f.Step)
	case DriftStoreClock:
		w.drift(f, r.clock)
	}
}

func (w *world) breakDatabase(f *Fault) {
	db := w.db
	switch f.Kind {
	case DatabaseDown:
		db.down++
		w.ends(f, func() { db.down-- })
	case UnknownCommits:
		before := db.unknown
		db.unknown = f.probability()
		w.ends(f, func() { db.unknown = before })
	case StepDatabaseClock:
		w.coverage.ClockStepped++
		db.step(f.Step)
	case DriftDatabaseClock:
		w.drift(f, db.clock)
	}
}

func (w *world) drift(f *Fault, c *hostClock) {
	before := c.ppm
	c.setDrift(w.now, f.PPM)
	w.noteDrift()
	w.ends(f, func() { c.setDrift(w.now, before) })
}

// stepped notes that a clock jumped ahead, and by how much nobody can tell:
// whoever bounds it by his own clock allows for the declared drift.
func (w *world) stepped(d, unseen time.Duration) {
	if d <= 0 {
		return
	}
	w.noteDrift()
	w.fastest += w.declared.DriftPPM
	w.allowed += w.declared.DriftPPM
	for _, b := range w.budgets {
		n, rest := b.policy.Contract.Rate.Mint(min(d, unseen), 0)
		if rest > 0 {
			n++
		}
		b.blame.stepped += n
	}
}

func (db *database) step(d time.Duration) {
	db.clock.step(d)
	db.jumped = db.jumped || d > 0
	db.w.stepped(d, db.unseen())
}

// unseen is how far the database's clock can jump without an allocator that
// knows better: none if one of them has read it.
func (db *database) unseen() time.Duration {
	const fresh = 3 * time.Second // allocation.Clock believes a stored time that is so old
	for _, a := range db.w.allocators {
		if !a.dead && a.store.governs {
			return 0
		}
	}
	return fresh
}

// noteDrift keeps how much faster than true time anything has been able to
// mint.
func (w *world) noteDrift() {
	fastest := w.db.clock.ppm
	for _, r := range w.regions {
		fastest = max(fastest, r.clock.ppm)
	}
	w.fastest = max(w.fastest, fastest)
}

// injectFailover replaces the ledger by a copy of it that is f.Lag old.
func (w *world) injectFailover(f *Fault) {
	var copied *ledgermemory.Snapshot
	w.at(max(0, f.At-f.Lag), call(func() { copied = w.db.mem.Snapshot() }))
	w.at(f.At, call(func() {
		w.mark(f.For, "%s", f)
		w.coverage.LedgerFailover++
		if f.Lag > 0 {
			w.coverage.LedgerLostCommits++
			w.loseCommits(copied)
		}
		if f.Step != 0 {
			w.coverage.ClockStepped++
			w.db.step(f.Step)
		}
	}))
}

// loseCommits goes on from an old ledger, and notes how many tokens exist
// twice from then on.
func (w *world) loseCommits(old *ledgermemory.Snapshot) {
	before := make([]lease.Tokens, len(w.budgets))
	for i, b := range w.budgets {
		before[i] = b.available()
	}
	w.db.mem.Restore(old)
	for i, b := range w.budgets {
		b.blame.failover += max(0, b.available()-before[i])
		for _, r := range w.regions {
			b.blame.failover += b.unknownShares(r)
		}
		ttl := max(b.policy.TTL, b.policy.ShareTTL)
		b.excused = w.now + ttl + w.declared.Guard(ttl)
	}
}

// longestLife is how long the ledger may count a lease after its last word.
func (w *world) longestLife() (life time.Duration) {
	for _, b := range w.budgets {
		ttl := max(b.policy.TTL, b.policy.ShareTTL)
		life = max(life, ttl+w.declared.Guard(ttl))
	}
	return life
}

func (b *budget) outstanding() (n lease.Tokens) {
	if s := b.w.db.mem.Peek(b.name); s != nil {
		for i := range s.Pools {
			n += s.Pools[i].Outstanding
		}
	}
	return n
}

func (b *budget) available() (n lease.Tokens) {
	if s := b.w.db.mem.Peek(b.name); s != nil {
		for i := range s.Pools {
			n += s.Pools[i].Available
		}
	}
	return n
}

// unknownShares is what shares mint that the restored ledger does not know,
// until they must be extended.
func (b *budget) unknownShares(r *region) (n lease.Tokens) {
	s := b.w.db.mem.Peek(b.name)
	v := r.store.Peek(b.name)
	for k := range v.Row.Leases {
		l := &v.Row.Leases[k]
		if l.X.Zero() || v.Remains[k] <= 0 {
			continue
		}
		known := lease.Rate{Per: l.X.Per}
		if s != nil {
			for i := range s.Leases {
				if s.Leases[i].Incarnation == l.Incarnation && len(s.Pools) > 0 {
					known = lease.Rate{Tokens: s.Leases[i].X, Per: s.Pools[0].Rate.Per}.In(l.X.Per, false)
				}
			}
		}
		extra := lease.Rate{Tokens: max(0, l.X.Tokens-known.Tokens), Per: l.X.Per}
		minted, _ := extra.Mint(v.Remains[k], 0)
		n += minted
	}
	return n
}

// injectStore replaces a region's store by what it held f.Lag ago.
func (w *world) injectStore(f *Fault, r *region) {
	var copied *regionmemory.Snapshot
	w.at(max(0, f.At-f.Lag), call(func() { copied = r.store.Snapshot() }))
	w.at(f.At, call(func() {
		w.mark(max(f.For, f.Isolated), "%s", f)
		if f.Kind == StoreRestore {
			w.coverage.StoreRestored++
			r.store.Restore(copied)
			return
		}
		w.coverage.StoreFailedOver++
		old := r.store
		r.store = r.newStore()
		r.store.Restore(copied)
		if f.Isolated > 0 {
			r.old = old
			r.rivalry = w.now + f.Isolated + w.longestLife()
			w.after(f.Isolated, call(func() { r.old = nil }))
		}
	}))
}
