package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// World is one region's wallet for one budget, two agents, their processes'
// memory, and a ledger, under every fault that the protocol is to survive:
// messages lost, repeated, reordered and late; a store that restarts empty, or
// from a snapshot, or loses a row; agents that forget; clocks that drift within
// their bound and step. After every step it checks, by the design's names:
// 5 no spending past the deadline or beyond what was granted, 6 nothing mints
// but time, 7 a missing wallet is an empty wallet, 9 bounded degradation (the
// regional half), 10 the wallet never exceeds the hold.
type World struct {
	subject *Subject
	pick    func(n int) int
	ledger  ledger

	// now is true time in microseconds since the start; the store's clock is
	// Start + now at its own pace + offset.
	now                    lease.Time
	storePPM, ledgerPPM    int64
	offset, furthestOffset lease.Time

	agents  [3]agent // the last one only observes
	row     regionstore.Row
	life    int
	nonces  int
	opened  bool
	reports []lease.Report
	replies []lease.State

	processes []process
	settles   []regionstore.Settle
	levels    map[lease.Incarnation]*level
	// used is what was really spent of each lump.
	used map[lease.Incarnation]lease.Tokens
	// localLevel is the allowance that time alone has made, from empty.
	localLevel level
	localTotal lease.Tokens
}

// agent is what one agent remembers of the store's clock.
type agent struct {
	ppm    int64
	seen   lease.Time
	seenAt lease.Time // true time
}

// process is one take's tokens in a process's memory.
type process struct {
	part  regionstore.Part
	until lease.Time // true time
}

const worldBudget = "t/world"

// NewWorld makes a world over an empty subject that runs with Config. pick
// chooses a number below n and decides everything that happens.
func NewWorld(s *Subject, pick func(n int) int) *World {
	clocks := Config().Clocks
	ppm := func() int64 { return int64(pick(3)-1) * clocks.DriftPPM }
	w := &World{
		subject: s, pick: pick, storePPM: ppm(), ledgerPPM: ppm(),
		ledger: ledger{clocks: clocks, pick: pick, holds: make(map[lease.Incarnation]*hold)},
		levels: make(map[lease.Incarnation]*level), used: make(map[lease.Incarnation]lease.Tokens),
	}
	for i := range w.agents {
		w.agents[i].ppm = ppm()
	}
	w.setClock()
	return w
}

// Run takes steps until an invariant breaks, and says which and after what.
func (w *World) Run(steps int) error {
	for range steps {
		name := w.Step()
		if err := w.Check(); err != nil {
			return fmt.Errorf("after %s: %w", name, err)
		}
	}
	return nil
}

// Step does one thing and names it.
func (w *World) Step() string {
	steps := []struct {
		name   string
		weight int
		do     func()
	}{
		{"time passing", 5, w.pass},
		{"a step of the store's clock", 1, w.stepClock},
		{"open", 2, w.open},
		{"begin", 5, w.begin},
		{"sync", 6, w.sync},
		{"install", 6, w.install},
		{"take", 4, w.take},
		{"prefetch", 3, w.prefetch},
		{"a process's use", 3, w.settle},
		{"a late settle", 1, w.lateSettle},
		{"return", 1, w.giveBack},
		{"close", 1, w.close},
		{"a local admission", 1, w.local},
		{"a fault", 1, w.fault},
	}
	total := 0
	for _, s := range steps {
		total += s.weight
	}
	n := w.pick(total)
	for _, s := range steps {
		if n -= s.weight; n < 0 {
			s.do()
			return s.name
		}
	}
	panic("unreachable")
}

// at is a clock's reading that runs ppm faster than true time.
func at(now lease.Time, ppm int64) lease.Time {
	return now + lease.Time(int64(now)*ppm/1_000_000)
}

func (w *World) ledgerNow() lease.Time { return at(w.now, w.ledgerPPM) }

func (w *World) storeNow() lease.Time { return Start + at(w.now, w.storePPM) + w.offset }

func (w *World) setClock() { w.subject.SetTime(w.storeNow()) }

func (w *World) pass() {
	most := []int{2_000, 100_000, 500_000, 2_500_000}[w.pick(4)]
	w.now += lease.Time(1 + w.pick(most))
	w.setClock()
	w.ledger.sweep(w.ledgerNow())
}

// stepClock steps the store's clock: forward as far as it likes, back by no
// more than is declared.
func (w *World) stepClock() {
	back := lease.Time(Config().Clocks.BackStep / time.Microsecond)
	if w.pick(2) == 0 {
		w.offset = w.furthestOffset - lease.Time(w.pick(int(back)+1))
	} else {
		w.offset += lease.Time(w.pick(4_000_000))
	}
	w.furthestOffset = max(w.furthestOffset, w.offset)
	w.setClock()
}

// bound is an agent's Now: what it saw, and (1 + rho) times its own clock
// since.
func (w *World) bound(a *agent) regionstore.Now {
	if a.seen == 0 {
		return regionstore.Now{}
	}
	mono := at(w.now, a.ppm) - at(a.seenAt, a.ppm)
	return regionstore.Now{NotAfter: a.seen + at(mono, Config().Clocks.DriftPPM) + 2}
}

// agent chooses who acts; remember what it saw with saw.
func (w *World) agent() *agent { return &w.agents[w.pick(2)] }

func (w *World) saw(a *agent, t lease.Time) { a.seen, a.seenAt = t, w.now }

// inc is the row's incarnation as last observed.
func (w *World) inc(kind lease.Kind) lease.Incarnation { return w.row.Leases[kind-1].Incarnation }

func (w *World) kind() lease.Kind { return lease.Kind(1 + w.pick(lease.Kinds)) }

func (w *World) nonce() string {
	w.nonces++
	return fmt.Sprintf("n%d", w.nonces)
}

func (w *World) open() {
	a := w.agent()
	req := regionstore.OpenRequest{Budget: worldBudget, LocalNonce: w.nonce(), Now: w.bound(a)}
	for i := range req.Nonces {
		req.Nonces[i] = lease.Incarnation(w.nonce())
	}
	r := must(w.subject.Store.Open(context.Background(), req))
	if r.Created {
		w.localTotal = 0
	}
	w.opened = true
	w.saw(a, r.View.Time)
}

func (w *World) begin() {
	a := w.agent()
	req := regionstore.BeginRequest{
		Budget: worldBudget, MinAge: []time.Duration{0, 200 * time.Millisecond, 2 * time.Second}[w.pick(3)], Now: w.bound(a),
	}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if w.pick(2) == 0 {
			continue
		}
		in := regionstore.Intent{
			Kind: kind, Incarnation: w.inc(kind), Want: lease.Tokens(w.pick(40)),
			Regrant: w.pick(2) == 0, LowerBeta: -1,
		}
		if w.pick(4) == 0 {
			in.Supersede = true
			in.LowerX = lease.Rate{Tokens: lease.Tokens(w.pick(20)), Per: time.Second}
			in.LowerBeta = lease.Tokens(w.pick(40))
		}
		req.Intents = append(req.Intents, in)
	}
	r := must(w.subject.Store.Begin(context.Background(), req))
	for _, b := range r.Reports {
		if b.Outcome == regionstore.OK || b.Outcome == regionstore.Busy {
			w.reports = append(w.reports, b.Report)
		}
	}
	w.saw(a, r.View.Time)
}

// recent picks an index below n, mostly one of the last.
func (w *World) recent(n int) int {
	if w.pick(4) == 0 {
		return w.pick(n)
	}
	return n - 1 - w.pick(min(n, 3))
}

// sync delivers any report ever made.
func (w *World) sync() {
	if len(w.reports) == 0 {
		return
	}
	r := w.reports[w.recent(len(w.reports))]
	w.replies = append(w.replies, w.ledger.sync(w.ledgerNow(), r))
}

// install delivers any answer ever given.
func (w *World) install() {
	if len(w.replies) == 0 {
		return
	}
	a, st := w.agent(), w.replies[w.recent(len(w.replies))]
	r := must(w.subject.Store.Install(context.Background(),
		regionstore.InstallRequest{Budget: worldBudget, States: []lease.State{st}, Now: w.bound(a)}))
	w.saw(a, r.View.Time)
	if r.Outcomes[0] == regionstore.OK && st.Status == lease.Active && st.Kind.IsShare() && w.levels[st.Incarnation] == nil {
		w.levels[st.Incarnation] = &level{tokens: float64(st.Granted), at: w.now}
	}
}

func (w *World) giveBack() {
	a := w.agent()
	v := must(w.subject.Store.Return(context.Background(), regionstore.ReturnRequest{
		Budget: worldBudget, Incarnation: w.inc(lease.Lump), Keep: lease.Tokens(w.pick(20)), Now: w.bound(a),
	}))
	w.saw(a, v.Time)
}

func (w *World) close() {
	a, kind := w.agent(), w.kind()
	v := must(w.subject.Store.Close(context.Background(), regionstore.CloseRequest{
		Budget: worldBudget, Kind: kind, Incarnation: w.inc(kind), Now: w.bound(a),
	}))
	w.saw(a, v.Time)
}

// fault loses the store's content in some way, or an agent's memory.
func (w *World) fault() {
	w.life++
	replid := fmt.Sprintf("life-%d", w.life)
	switch w.pick(6) {
	case 0:
		w.subject.Restart(replid)
	case 1:
		w.subject.Restore(replid)
	case 2:
		w.subject.LoseRow(worldBudget)
		w.opened = false
		return
	case 3, 4:
		w.subject.Save()
		return
	case 5:
		w.agents[w.pick(2)] = agent{}
		return
	}
	w.opened = false
	for i := range w.agents {
		w.agents[i].seen = 0
	}
}
