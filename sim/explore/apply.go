package explore

import (
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// model is a configuration with what applying an action needs. One goroutine
// uses it at a time.
type model struct {
	cfg    *Config
	stores regionstore.Config
	ledger allocation.Config
	// longest is the longest ttl in ticks, callers how many processes there are
	// with anything to remember.
	longest     int64
	callers     int
	rate        int64
	burst, over int64
	// exact keeps what only a broken rule would look at.
	exact bool
	plan  []allocation.Target
	list  []action
}

func newModel(c *Config, exact bool) *model {
	m := &model{cfg: c, stores: c.stores(), longest: c.longest(), callers: c.Processes, rate: c.rate(), exact: exact}
	if c.tracked() {
		m.callers = 2
	}
	m.burst, m.over = c.most()
	m.ledger = allocation.Config{
		Clocks: c.clocks(), KeepEnded: 1 << 20 * time.Hour, Silence: 1 << 20 * time.Hour,
		Planner: func(*allocation.State, *allocation.Pool, lease.Time) []allocation.Target { return m.plan },
	}
	return m
}

// apply does a to w, and reports whether that was possible.
func (m *model) apply(w *world, a action) bool {
	switch a.op {
	case opTick:
		return m.tick(w, a.a)
	case opSweep:
		allocation.Sweep(m.ledger, w.now(), &w.ledger)
	case opOpen:
		return m.open(w, int(a.a))
	case opBegin:
		return m.begin(w, int(a.a), m.cfg.Begins[a.b], a.c == 1)
	case opSync:
		m.sync(w, &w.requests[a.a], int(a.b))
	case opListen:
		r := &w.requests[a.a]
		allocation.Listen(m.ledger, w.now(), &w.ledger, region, r.item())
	case opInstall:
		return m.install(w, int(a.b), &w.replies[a.a])
	case opTake:
		return m.take(w, int(a.a), int(a.b), a.c)
	case opArrive:
		m.arrive(w, &w.processes[a.a])
	case opUse:
		q := &w.processes[a.a].parts[a.b]
		q.free--
		q.used++
		w.admit(1)
	case opSettle:
		return m.settle(w, &w.processes[a.a], int(a.b), a.c == 1)
	case opSettled:
		return m.settled(w, int(a.a), int(a.b))
	case opReturn:
		r := regionstore.ReturnRequest{Keep: lease.Tokens(a.b), Now: m.bound(w, 0)}
		r.Incarnation = w.stores[a.a].row.Leases[lease.Lump-1].Incarnation
		m.saw(w, 0, m.step(w, int(a.a)).Return(&w.stores[a.a].row, r))
	case opClose:
		r := regionstore.CloseRequest{Kind: lease.Kind(a.b), Now: m.bound(w, 0)}
		r.Incarnation = w.stores[a.a].row.Leases[a.b-1].Incarnation
		m.saw(w, 0, m.step(w, int(a.a)).Close(&w.stores[a.a].row, r))
	case opWorld:
		return m.spendElsewhere(w)
	case opFault:
		m.fault(w, Fault(a.a))
	case opCopy:
		w.copied = w.stores[0].row
	case opChange:
		w.left.changes--
		w.variant = int(a.a)
		allocation.Sweep(m.ledger, w.now(), &w.ledger)
		w.ledger.SetBudget(m.ledger, w.now(), m.cfg.Budgets[a.a])
	case opLocal:
		return m.admitLocally(w, int(a.a))
	case opStep:
		return m.stepClock(w, a.a == 1)
	}
	return true
}

// admit counts n tokens spent.
func (w *world) admit(n lease.Tokens) {
	w.level += int64(n) * thousandths
	w.life += int64(n) * thousandths
}

// tick lets time pass on some clocks, unless one would fall behind further
// than clocks are declared to.
func (m *model) tick(w *world, ticks uint8) bool {
	l, s, p := int(ticks&1), int(ticks>>1&1), int(ticks>>2&1)
	if m.callers == 0 {
		p = s
	}
	w.lag = max(0, w.lag+l-min(s, p))
	w.behind = max(0, w.behind+s-p)
	if d := m.cfg.Drift; w.lag > d || w.behind > d {
		return false
	}
	const unit = lease.Time(tick / time.Microsecond)
	w.ledgerNow += lease.Time(l) * unit
	w.storeNow += lease.Time(s) * unit
	w.processNow += lease.Time(p) * unit
	w.level = max(0, w.level-m.rate)
	w.declared = max(0, w.declared-m.rate)
	w.life = max(-m.over, w.life-m.rate)
	if f := m.cfg.Budgets[0].OnFailure; m.cfg.Locals > 0 {
		w.local = max(0, w.local-int64(f.Rate.Tokens)*thousandths*int64(tick)/int64(f.Rate.Per))
	}
	if m.cfg.Ticks > 0 {
		w.left.ticks--
	}
	for i := range w.processes {
		w.processes[i].bound += lease.Time(p) * unit
		w.processes[i].forget(w.processNow)
	}
	m.catchUp(w, l == 1, s == 1)
	return true
}

// catchUp does what steps do first anyway as time passes.
func (m *model) catchUp(w *world, ledger, stores bool) {
	if m.cfg.Lazy {
		return
	}
	if ledger {
		allocation.Sweep(m.ledger, w.now(), &w.ledger)
	}
	if m.cfg.tracked() {
		return
	}
	for at := range w.stores {
		if s := &w.stores[at]; s.on && stores {
			m.step(w, at).Read(&s.row, regionstore.Now{NotAfter: w.storeNow})
		}
	}
}

// forget drops what can neither be spent nor settled as used.
func (p *process) forget(now lease.Time) {
	kept := p.parts[:0]
	for _, q := range p.parts {
		if now >= q.deadline {
			q.free = 0
		}
		if q.free > 0 || q.used > 0 {
			kept = append(kept, q)
		}
	}
	p.parts = kept
}

// stepClock steps the store's clock back by one tick, as long as that is
// within its declared error, or forward by two, which only shortens leases.
func (m *model) stepClock(w *world, forward bool) bool {
	const unit = lease.Time(tick / time.Microsecond)
	w.left.steps--
	if forward {
		w.storeNow += 2 * unit
		w.lag = max(0, w.lag-2)
		return true
	}
	w.storeNow -= unit
	w.lag++
	w.behind = max(0, w.behind-1)
	return w.lag <= m.cfg.Drift
}

// bound is what a process knows of the store's clock. Where that is not
// modelled, it knows all.
func (m *model) bound(w *world, p int) regionstore.Now {
	if !m.cfg.tracked() {
		return regionstore.Now{NotAfter: w.storeNow}
	}
	if !w.processes[p].known {
		return regionstore.Now{}
	}
	if mutant.On(mutant.NotAfterStepped) {
		return regionstore.Now{NotAfter: 1<<62 - 1}
	}
	return regionstore.Now{NotAfter: w.processes[p].bound}
}

func (m *model) saw(w *world, p int, v regionstore.View) {
	m.sawAt(w, p, v.Time, v.Outcome != regionstore.Missing)
}

func (m *model) sawAt(w *world, p int, t lease.Time, there bool) {
	if m.cfg.tracked() {
		w.processes[p].known, w.processes[p].bound = there, t
	}
}

// open gives incarnations, as long as there are some left.
func (m *model) open(w *world, at int) bool {
	s := &w.stores[at]
	req := regionstore.OpenRequest{LocalNonce: lifeNames[w.lives], Now: m.bound(w, 0)}
	for _, k := range m.cfg.Kinds {
		if n := w.drawn[k-1] + 1; n < len(incarnations[k-1]) {
			req.Nonces[k-1] = incarnations[k-1][n]
		}
	}
	r := m.step(w, at).Open(&s.row, req)
	m.saw(w, 0, r.View)
	drew := r.Created
	for _, k := range m.cfg.Kinds {
		if l := &s.row.Leases[k-1]; l.Incarnation == req.Nonces[k-1] {
			w.drawn[k-1]++
			drew = true
		}
		if w.drawn[k-1] > m.cfg.Lives {
			return false
		}
	}
	return drew
}

// begin writes new sequences and puts what it wrote among the messages.
func (m *model) begin(w *world, at int, intents []regionstore.Intent, keep bool) bool {
	row := &w.stores[at].row
	req := regionstore.BeginRequest{Intents: make([]regionstore.Intent, 0, len(intents)), Now: m.bound(w, 0)}
	if keep {
		req.MinAge = time.Hour
	}
	for _, in := range intents {
		l := &row.Leases[in.Kind-1]
		if keep && !l.Pending || !keep && l.Seq >= uint64(m.cfg.Seqs) || l.Incarnation == "" {
			return false
		}
		in.Incarnation = l.Incarnation
		in.Supersede = !keep
		req.Intents = append(req.Intents, in)
	}
	r := m.step(w, at).Begin(row, req)
	m.saw(w, 0, r.View)
	sent := request{}
	for _, b := range r.Reports {
		if b.Outcome == regionstore.OK || b.Outcome == regionstore.Busy {
			sent.reports[sent.n] = b.Report
			sent.n++
		}
	}
	if m.cfg.Locals > 0 && row.Local.Total > 0 {
		sent.local = lease.LocalUse{Source: row.Local.Nonce, Total: row.Local.Total}
	}
	if sent.n > 0 {
		w.requests = append(w.requests, sent)
	}
	return true
}

func (r *request) item() lease.Item {
	it := lease.Item{Budget: "t/b", Leases: r.reports[:r.n]}
	if r.local.Source != "" {
		it.Local = []lease.LocalUse{r.local}
	}
	return it
}

func (m *model) sync(w *world, r *request, plan int) {
	m.plan = m.cfg.Plans[plan : plan+1]
	answer := allocation.Sync(m.ledger, w.now(), &w.ledger, region, r.item())
	if answer.Err != nil {
		panic("explore: " + answer.Err.Error())
	}
	var to reply
	for _, s := range answer.Leases {
		to.states[to.n] = s
		to.n++
	}
	w.replies = append(w.replies, to)
}

func (m *model) install(w *world, at int, r *reply) bool {
	v := m.step(w, at).Install(&w.stores[at].row, regionstore.InstallRequest{States: r.states[:r.n], Now: m.bound(w, 0)})
	m.saw(w, 0, v.View)
	return true
}

// take spends one token of the store's, or moves some into a process.
func (m *model) take(w *world, at, p int, how uint8) bool {
	s := &w.stores[at]
	t := regionstore.Take{Cost: 1, Now: m.bound(w, p)}
	if how == takeAhead {
		t.Cost, t.Prefetch = 0, m.cfg.Prefetch
	}
	before := s.row
	r := m.step(w, at).Take([]*regionstore.Row{&s.row}, &regionstore.TakeRequest{Takes: []regionstore.Take{t}, Hold: how == takeHeld})
	got := &r.Results[0]
	m.sawAt(w, p, got.Time, got.Outcome != regionstore.Missing)
	if how == takeOne {
		if r.Took {
			m.admitFrom(w, at, &before)
		}
		return r.Took || m.cfg.Lazy || m.cfg.tracked()
	}
	if len(got.Parts) == 0 {
		return false
	}
	process := &w.processes[p]
	for _, q := range got.Parts {
		process.coming = append(process.coming, part{
			kind: q.Kind, incarnation: q.Incarnation, generation: q.Generation, free: q.Tokens,
			deadline: w.processNow.Add(q.Remains),
		})
	}
	process.sent = w.processNow
	if !m.cfg.Late {
		m.arrive(w, process)
	}
	return true
}

// admitFrom counts a token that the row gave since before. What a regranted
// share goes on spending while two primaries accept writes is declared, and
// counted apart.
func (m *model) admitFrom(w *world, at int, before *regionstore.Row) {
	for i := range before.Leases {
		l, old := &w.stores[at].row.Leases[i], &before.Leases[i]
		spent := l.Used - old.Used
		if spent <= 0 || l.Incarnation != old.Incarnation {
			continue
		}
		if w.stores[1].on && m.replaced(w, lease.Kind(i+1), l.Incarnation) {
			w.declared += thousandths
			return
		}
		break
	}
	w.admit(1)
}

// replaced reports whether the lease was ended by a regrant.
func (m *model) replaced(w *world, k lease.Kind, inc lease.Incarnation) bool {
	for i := range w.ledger.Leases {
		l := &w.ledger.Leases[i]
		if l.Kind == k && l.Incarnation == inc {
			return l.Ending == allocation.Regranted
		}
	}
	return false
}

// arrive puts a take's reply into the process's pocket. The deadline counts
// from before the take was sent.
func (m *model) arrive(w *world, p *process) {
	for _, q := range p.coming {
		if mutant.On(mutant.ProcessDeadlineAtReply) {
			q.deadline += w.processNow - p.sent
		}
		p.parts = append(p.parts, q)
	}
	p.coming = p.coming[:0]
	p.forget(w.processNow)
}

// settle sends what became of a part, once; an earlier settlement that was not
// delivered is lost. A part that is given back is gone.
func (m *model) settle(w *world, p *process, j int, back bool) bool {
	q := &p.parts[j]
	s := regionstore.Settle{Kind: q.kind, Incarnation: q.incarnation, Generation: q.generation, Used: q.used}
	if q.used = 0; back {
		s.Back, q.free = q.free, 0
	}
	p.settling = s
	p.forget(w.processNow)
	return true
}

func (m *model) settled(w *world, p, at int) bool {
	s := w.processes[p].settling
	w.processes[p].settling = regionstore.Settle{}
	s.Now = m.bound(w, p)
	m.step(w, at).Settle(&w.stores[at].row, &s)
	return true
}

// spendElsewhere is the rest of the world: whatever the pool has it may take
// and spend at once.
func (m *model) spendElsewhere(w *world) bool {
	allocation.Sweep(m.ledger, w.now(), &w.ledger)
	p := w.pool()
	if p.Available <= 0 {
		return false
	}
	p.Available--
	p.Totals.Debt++
	w.admit(1)
	return true
}

func (m *model) fault(w *world, f Fault) {
	w.left.crashes--
	s := &w.stores[0]
	if f == FailOver {
		w.stores[1] = *s
	}
	if f != LoseRow {
		w.lives++
		s.life = w.lives
	}
	s.row = regionstore.Row{}
	if f == Restore || f == FailOver {
		s.row = w.copied
	}
	if w.left.crashes == 0 {
		w.copied = regionstore.Row{}
	}
}

func (m *model) admitLocally(w *world, at int) bool {
	f := m.cfg.Budgets[0].OnFailure
	r := m.step(w, at).TakeLocal(&w.stores[at].row, &regionstore.LocalRequest{Cost: 1, Rate: f.Rate, Burst: f.Burst, Now: m.bound(w, 0)})
	if r.Outcome != regionstore.OK {
		return m.cfg.Lazy
	}
	w.left.locals--
	w.local += thousandths
	return true
}
