package sim

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// slot is an agent's place in its region: its host outlives its processes.
type slot struct {
	region  *region
	index   int
	clock   *hostClock
	process *process
	lives   int
}

// process is one agent process: the production Keeper, Decider and Executor,
// stepped by the heap.
type process struct {
	w        *world
	region   *region
	slot     *slot
	clock    *hostClock
	name     string
	gate     gate
	decider  *agent.Decider
	keeper   *agent.Keeper
	executor *agent.Executor
	stats    agent.Stats

	dead, stopping bool
	// frozen counts what keeps the process from running; suspended whether its
	// clock stands too.
	frozen    int
	suspended int
	// backlog is what came while it was frozen.
	backlog []action
	// wake is when the Keeper is to be stepped next; an event for another time
	// is out of date.
	wake   time.Duration
	urgent []agent.Urgent
	// waiting are decisions that wait for tokens.
	waiting []*waiting
	// allocator is whom it asks.
	allocator int
	nonces    int
	// freeze makes the next take last this long; skew is how far the process is
	// ahead of the heap because one did.
	freeze, skew time.Duration
	// stumble makes the next decision from memory last this long; looks counts
	// how often that decision has read the clock, -1 outside of one.
	stumble    time.Duration
	looks      int
	wakeEvent  wakeEvent
	flushEvent flushEvent
	// resumedAt is when a suspension ended last, 0 for never.
	resumedAt time.Duration
	folded    bool
}

// start begins a new process in the slot.
func (s *slot) start() *process {
	s.lives++
	r := s.region
	p := &process{
		w: r.w, region: r, slot: s, clock: s.clock, wake: -1, looks: -1,
		name:      fmt.Sprintf("%s/%d/%d", r.spec.Name, s.index, s.lives),
		allocator: (r.index + s.index) % len(r.w.allocators),
	}
	s.process = p
	p.gate.p = p
	p.wakeEvent.p, p.flushEvent.p = p, p
	opt := agent.Options{
		Region: r.spec.Name, Process: p.name, Store: &p.gate, Clocks: r.w.declared,
		Now: p.now, Wall: func() time.Time { return time.UnixMicro(int64(p.clock.time(r.w.now))) },
		StoreDeadline: -1, // in real time; a stall is the gate's affair
		MaxAgents:     r.w.o.MaxAgents,
	}
	p.decider = agent.NewDecider(opt, &p.stats, func(u agent.Urgent) { p.urgent = append(p.urgent, u) })
	p.keeper = agent.NewKeeper(agent.KeeperConfig{
		Region: r.spec.Name, Process: p.name, Clocks: r.w.declared,
		Rand: source(r.w.o.Seed, "keeper/"+p.name), Nonce: p.nonce, Stats: &p.stats,
		SyncEvery: r.w.o.SyncEvery,
	})
	p.executor = &agent.Executor{Decider: p.decider, StoreTimeout: -1}
	p.schedule(r.w.now)
	r.w.after(r.w.flushEvery, &p.flushEvent)
	return p
}

func (p *process) nonce() string {
	p.nonces++
	return fmt.Sprintf("%s#%d", p.name, p.nonces)
}

// now is the process's monotonic clock.
func (p *process) now() time.Duration {
	if p.looks >= 0 {
		if p.looks++; p.looks == 2 {
			p.skew, p.stumble = p.skew+p.stumble, 0
			p.w.coverage.FrozenInDecision++
		}
	}
	return p.clock.mono(p.w.now + p.skew)
}

// decides lets a decision stand still between taking tokens and looking at the
// clock if the process is to, and the decision may rest on what is in its
// memory.
func (p *process) decides(c *agent.Check, do func()) {
	if p.stumble > 0 && p.skew == 0 && p.holds(c) {
		p.looks = 0
		if len(c.Budgets) == 1 {
			p.looks = 1 // a hot decision looks only once, after it took
		}
		defer func() { p.looks = -1 }()
	}
	do()
}

func (p *process) holds(c *agent.Check) bool {
	now := p.now()
	for _, b := range c.Budgets {
		if p.decider.Prefetched(b, now) < c.Cost {
			return false
		}
	}
	return c.Cost > 0
}

func (p *process) serving() bool { return !p.dead && !p.stopping && p.frozen == 0 }

type wakeEvent struct{ p *process }

func (e *wakeEvent) fire() {
	p := e.p
	if p.wake != p.w.now {
		return // another wake time was set meanwhile
	}
	p.do(call(func() { p.step(agent.Tick{}) }))
}

type flushEvent struct{ p *process }

func (e *flushEvent) fire() {
	p := e.p
	if p.dead || p.stopping {
		return
	}
	if p.frozen == 0 {
		p.decider.Flush(context.Background(), false)
		p.caught()
	}
	p.w.after(p.w.flushEvery, e)
}

// do runs an action of this process, later if it is frozen, never if it is
// dead.
func (p *process) do(a action) {
	switch {
	case p.dead:
	case p.frozen > 0:
		p.backlog = append(p.backlog, a)
	default:
		a.fire()
	}
}

// schedule sets when the Keeper is stepped with a Tick.
func (p *process) schedule(at time.Duration) {
	if p.wake == at {
		return
	}
	p.wake = at
	p.w.at(at, &p.wakeEvent)
}

// step steps the Keeper and begins what it wants done.
func (p *process) step(ev agent.Event) {
	if p.dead {
		return
	}
	effects, wake := p.keeper.Step(p.now(), ev)
	var later []agent.Effect
	told := false
	for _, f := range effects {
		switch f := f.(type) {
		case agent.Tell, agent.SetBudgets:
			p.executor.Do(context.Background(), f)
			told = true
		case agent.Stopped:
			p.dead = true
		case agent.SendSync:
			p.sendSync(f)
		case agent.ListBudgets:
			p.sendList(f)
		default:
			later = append(later, f)
		}
	}
	if len(later) > 0 {
		p.onStore(later)
	}
	if p.dead {
		return
	}
	p.schedule(max(p.clock.when(wake, p.w.now), p.w.now+time.Microsecond))
	if told {
		p.arrived()
	}
}

// storeCall is effects on the store on their way.
type storeCall struct {
	p       *process
	effects []agent.Effect
}

func (c *storeCall) fire() { c.p.do((*storeDone)(c)) }

type storeDone storeCall

func (c *storeDone) fire() {
	for _, f := range c.effects {
		if c.p.dead {
			return
		}
		if ev := c.p.executor.Do(context.Background(), f); ev != nil {
			c.p.step(ev)
		}
	}
	c.p.caught()
}

// onStore does effects on the store after its latency; while it is stalled
// they fail after the Keeper's timeout.
func (p *process) onStore(effects []agent.Effect) {
	latency := p.region.latency
	if p.region.stalls > 0 {
		latency = p.w.storeTimeout
	}
	if latency == 0 {
		latency = time.Microsecond // a step in the Keeper's own step would nest
	}
	p.w.after(latency, &storeCall{p: p, effects: effects})
}

// sendSync crosses the network, there and back, or times out.
func (p *process) sendSync(f agent.SendSync) {
	w := p.w
	w.sent(f.Items)
	req := lease.SyncRequest{Region: p.region.spec.Name, Items: f.Items}
	sent, answered := p.now(), false
	done := func(reply lease.SyncReply, err error) {
		p.do(call(func() {
			if answered {
				w.coverage.LateReply++
				return
			}
			answered = true
			if err != nil {
				p.allocator = (p.allocator + 1) % len(w.allocators)
			}
			p.step(agent.SyncDone{ID: f.ID, Reply: reply, Took: p.now() - sent, Err: err})
		}))
	}
	w.at(p.clock.when(p.now()+f.Timeout, w.now), call(func() {
		if !answered {
			done(lease.SyncReply{}, errLost)
		}
	}))
	to := w.allocators[p.allocator]
	p.region.up.send(func() {
		to.sync(cloneRequest(req), func(reply lease.SyncReply, err error) {
			p.region.down.send(func() { done(cloneReply(reply), err) })
		})
	})
}

// listTimeout is how long the agent waits for a list of budgets.
const listTimeout = 5 * time.Second

func (p *process) sendList(f agent.ListBudgets) {
	w, answered := p.w, false
	done := func(list policy.List, err error) {
		p.do(call(func() {
			if !answered {
				answered = true
				p.step(agent.Listed{List: list, Err: err})
			}
		}))
	}
	w.after(listTimeout, call(func() {
		if !answered {
			done(policy.List{}, errLost)
		}
	}))
	to := w.allocators[p.allocator]
	p.region.up.send(func() {
		to.list(f.Since, func(list policy.List, err error) {
			p.region.down.send(func() { done(cloneList(list), err) })
		})
	})
}

// caught passes on what decisions asked the Keeper for, and lets the process
// stand still for as long as it is ahead of the heap.
func (p *process) caught() {
	for len(p.urgent) > 0 && !p.dead {
		list := p.urgent
		p.urgent = nil
		for _, u := range list {
			p.step(u)
		}
	}
	if p.skew > 0 {
		ahead := p.skew
		p.skew = 0
		p.frozen++
		p.w.after(ahead, call(p.thaw))
	}
}

// thaw ends one reason to stand still, and works off what came meanwhile.
func (p *process) thaw() {
	p.frozen--
	if p.frozen > 0 || p.dead {
		return
	}
	backlog := p.backlog
	p.backlog = nil
	for _, a := range backlog {
		p.do(a)
	}
	p.schedule(p.w.now + time.Microsecond)
}

// kill ends the process with all that it had in memory.
func (p *process) kill() {
	p.dead = true
	p.backlog, p.waiting = nil, nil
	p.w.fold(p)
}

// stop ends it cleanly.
func (p *process) stop() {
	p.stopping = true
	p.decider.Flush(context.Background(), true)
	p.step(agent.Stopping{})
}
