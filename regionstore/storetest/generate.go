package storetest

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Generate makes a random transcript of n ops that starts at Start and in
// FirstLife, for stores that run with Config. It plays each op on a memory
// store of its own, so that most of what it asks for names leases, sequences
// and generations that exist. Its budgets share a tenant, and so a slot. Kept
// answers outlive the transcript, because a real server may expire them by its
// own clock.
func Generate(r *rand.Rand, n int) []Op {
	g := &generator{Rand: r, subject: Memory(Config()), at: Start}
	ops := make([]Op, 0, n)
	for range n {
		op := g.next()
		g.learn(op, op.Apply(g.subject))
		ops = append(ops, op)
	}
	return ops
}

// generator remembers what replies named.
type generator struct {
	*rand.Rand
	subject *Subject
	at      lease.Time
	nonces  int
	lives   int
	// seen is the last View.Time or TakeResult.Time.
	seen    lease.Time
	reports []begun
	parts   []held
	leases  []named
}

type begun struct {
	budget string
	report lease.Report
}

type held struct {
	budget string
	part   regionstore.Part
}

type named struct {
	budget string
	kind   lease.Kind
	inc    lease.Incarnation
}

var budgets = []string{"t/a", "t/b", "t/c"}

var (
	someTokens = []lease.Tokens{0, 1, 1, 2, 3, 5, 8, 40, 100, 1000, 1 << 40, lease.MaxTokens}
	someHolds  = []time.Duration{0, time.Second, 5 * time.Second, lease.LongestProcessDeadline, time.Hour}
	someRates  = []lease.Rate{
		{},
		{Per: time.Second},
		{Tokens: 1000, Per: time.Second},
		{Tokens: 1000, Per: time.Second},
		{Tokens: 333, Per: time.Second},
		{Tokens: 1001, Per: 7 * time.Minute},
		{Tokens: 7, Per: lease.MaxPeriod},
		{Tokens: lease.MaxTokens, Per: lease.MaxPeriod},
		{Tokens: lease.MaxTokens - 1, Per: time.Microsecond},
		{Tokens: 1<<52 + 1, Per: 999_983 * time.Microsecond},
	}
	someTimes = []time.Duration{
		0, time.Microsecond, time.Millisecond, 20 * time.Millisecond, 300 * time.Millisecond, time.Second,
		2 * time.Second, 5 * time.Second, 10 * time.Second, time.Minute, time.Hour,
	}
)

func oneOf[T any](g *generator, from []T) T { return from[g.IntN(len(from))] }

func (g *generator) chance(percent int) bool { return g.IntN(100) < percent }

func (g *generator) budget() string { return budgets[min(g.IntN(4), 2)%len(budgets)] }

// tick moves the clock: mostly a little, sometimes far, sometimes back.
func (g *generator) tick() {
	switch p := g.IntN(100); {
	case p < 15:
	case p < 70:
		g.at += lease.Time(g.IntN(60_000))
	case p < 85:
		g.at += lease.Time(g.IntN(3_000_000))
	case p < 95:
		g.at = max(Start, g.at-lease.Time(g.IntN(250_000)))
	case p < 99:
		g.at = g.at.Add(oneOf(g, someTimes[:8+g.IntN(4)]))
	default:
		g.at = max(Start, g.at.Add(-oneOf(g, someTimes)))
	}
}

// now is a caller's bound: none, in step with the clock, behind it or ahead.
func (g *generator) now() regionstore.Now {
	switch p := g.IntN(100); {
	case p < 12:
		return regionstore.Now{}
	case p < 60:
		return regionstore.Now{NotAfter: g.at + lease.Time(g.IntN(3000))}
	case p < 80:
		return regionstore.Now{NotAfter: g.at - lease.Time(g.IntN(1_100_000))}
	}
	return regionstore.Now{NotAfter: max(1, g.seen+lease.Time(g.IntN(100_000)))}
}

func (g *generator) next() Op {
	g.tick()
	op := Op{At: g.at}
	switch p := g.IntN(100); {
	case p < 12:
		op.Open = g.open()
	case p < 25:
		op.Begin = g.begin()
	case p < 42:
		op.Install = g.install()
	case p < 62:
		op.Take = g.take()
	case p < 66:
		op.Refill = g.take().Takes
	case p < 74:
		op.Settle = g.settles()
	case p < 78:
		l := g.lease()
		op.Return = &regionstore.ReturnRequest{Budget: l.budget, Incarnation: l.inc, Keep: oneOf(g, someTokens), Now: g.now()}
	case p < 81:
		l := g.lease()
		op.Close = &regionstore.CloseRequest{Budget: l.budget, Kind: l.kind, Incarnation: l.inc, Now: g.now()}
	case p < 88:
		op.Local = g.local()
	case p < 93:
		op.Read = &ReadRequest{Budgets: budgets, Now: []regionstore.Now{g.now(), g.now(), g.now()}}
	case p < 98:
		op.Name = g.name()
	default:
		op.Fault = g.fault()
	}
	return op
}

func (g *generator) open() *regionstore.OpenRequest {
	req := &regionstore.OpenRequest{Budget: g.budget(), LocalNonce: g.nonce(), Now: g.now()}
	for i := range req.Nonces {
		req.Nonces[i] = lease.Incarnation(g.nonce())
	}
	return req
}

func (g *generator) nonce() string {
	g.nonces++
	return fmt.Sprintf("n%d", g.nonces)
}

// lease names a lease that was seen lately, or one that never was.
func (g *generator) lease() named {
	if len(g.leases) == 0 || g.chance(3) {
		return named{budget: g.budget(), kind: lease.Kind(g.IntN(5)), inc: "nobody"}
	}
	return g.leases[max(0, len(g.leases)-1-g.IntN(9))]
}

func (g *generator) begin() *regionstore.BeginRequest {
	first := g.lease()
	req := &regionstore.BeginRequest{Budget: first.budget, MinAge: oneOf(g, someTimes[:6]), Now: g.now()}
	for _, l := range []named{first, g.lease(), g.lease()} {
		if l.budget != first.budget {
			continue
		}
		in := regionstore.Intent{
			Kind: l.kind, Incarnation: l.inc, Want: oneOf(g, someTokens),
			Regrant: g.chance(30), LowerBeta: -1, Supersede: g.chance(20),
		}
		if g.chance(25) {
			in.LowerX, in.LowerBeta = oneOf(g, someRates), oneOf(g, someTokens)
		}
		req.Intents = append(req.Intents, in)
	}
	return req
}

// install answers a report lately begun, often the last.
func (g *generator) install() *regionstore.InstallRequest {
	if len(g.reports) == 0 {
		return &regionstore.InstallRequest{Budget: g.budget(), States: []lease.State{{Kind: lease.Lump}}, Now: g.now()}
	}
	last := len(g.reports) - 1
	if g.chance(25) {
		last = max(0, last-g.IntN(6))
	}
	b := g.reports[last]
	req := &regionstore.InstallRequest{Budget: b.budget, Now: g.now()}
	for i := last; i >= 0 && i > last-3; i-- {
		if g.reports[i].budget == b.budget {
			req.States = append(req.States, g.state(g.reports[i].report))
		}
	}
	return req
}

func (g *generator) state(r lease.Report) lease.State {
	st := lease.State{
		Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.Active,
		Granted: oneOf(g, someTokens[4:]), TTL: oneOf(g, someTimes[6:]),
	}
	if r.Kind.IsShare() {
		st.X, st.Beta = oneOf(g, someRates), oneOf(g, someTokens[3:])
	}
	switch p := g.IntN(100); {
	case p < 4:
		st.Status = lease.Ended
	case p < 10:
		if st.Status = lease.NotPlanned; g.chance(50) {
			st.Holder = lease.Incarnation(g.nonce())
		}
	case p < 14:
		st.TTL = oneOf(g, someTimes)
	}
	return st
}

func (g *generator) take() *regionstore.TakeRequest {
	req := &regionstore.TakeRequest{Hold: g.chance(15)}
	for _, i := range g.Perm(len(budgets))[:max(1, g.IntN(len(budgets)+3)-2)] {
		t := regionstore.Take{Budget: budgets[i], Cost: oneOf(g, someTokens[:8]), Demand: oneOf(g, someTokens), Now: g.now()}
		if g.chance(40) {
			t.Prefetch, t.HoldFor = oneOf(g, someTokens), oneOf(g, someHolds)
		}
		for range g.IntN(6) - 3 {
			t.Settles = append(t.Settles, g.settle()) // often of another budget: nothing to settle here
		}
		req.Takes = append(req.Takes, t)
	}
	if g.chance(30) {
		req.RequestID = fmt.Sprintf("q%d", g.IntN(8))
		req.Content = fmt.Sprint(g.IntN(4) / 3)
		req.KeepAnswer = 5000 * time.Hour
	}
	return req
}

func (g *generator) settles() []regionstore.Settle {
	list := make([]regionstore.Settle, 0, 3)
	for range 1 + g.IntN(3) {
		list = append(list, g.settle())
	}
	return list
}

func (g *generator) settle() regionstore.Settle {
	st := regionstore.Settle{Budget: g.budget(), Kind: lease.Lump, Incarnation: "nobody", Generation: 1, Now: g.now()}
	if len(g.parts) > 0 {
		h := g.parts[max(0, len(g.parts)-1-g.IntN(6))]
		st.Budget, st.Kind, st.Incarnation, st.Generation = h.budget, h.part.Kind, h.part.Incarnation, h.part.Generation
		st.Used = lease.Tokens(g.Int64N(int64(h.part.Tokens) + 1))
		st.Back = h.part.Tokens - st.Used
	}
	if g.chance(10) {
		st.Used, st.Back = oneOf(g, someTokens), oneOf(g, someTokens)
	}
	if g.chance(30) {
		st.Demand = oneOf(g, someTokens)
	}
	if g.chance(5) {
		st.Kind = 0
	}
	return st
}

func (g *generator) local() *regionstore.LocalRequest {
	return &regionstore.LocalRequest{
		Budget: g.budget(), Cost: oneOf(g, someTokens[:8]), Rate: oneOf(g, someRates),
		Burst: oneOf(g, someTokens), Demand: oneOf(g, someTokens[:8]), Now: g.now(),
	}
}

func (g *generator) name() *NameRequest {
	calls := []string{"Touch", "InUse", "Disused", "Lead", "Unlead", "Join", "Leave"}
	return &NameRequest{
		Call: oneOf(g, calls), Name: fmt.Sprintf("p%d", g.IntN(3)),
		Budgets: budgets[g.IntN(len(budgets)):], TTL: oneOf(g, someTimes[3:9]),
	}
}

func (g *generator) fault() *Fault {
	g.lives++
	return &Fault{
		Lever:  oneOf(g, []string{"Restart", "Save", "Save", "Save", "Restore", "LoseRow"}),
		Replid: fmt.Sprintf("life-%d", g.lives), Budget: g.budget(),
	}
}

// learn remembers what a reply names, so that later ops can.
func (g *generator) learn(op Op, reply any) {
	switch r := reply.(type) {
	case regionstore.OpenReply:
		g.learnView(op.Open.Budget, r.View)
	case regionstore.BeginReply:
		g.seen = r.View.Time
		for _, b := range r.Reports {
			if b.Outcome == regionstore.OK {
				g.reports = append(g.reports, begun{op.Begin.Budget, b.Report})
			}
		}
	case regionstore.TakeReply:
		g.learnTakes(op.Take.Takes, r.Results)
	case []regionstore.TakeResult:
		g.learnTakes(op.Refill, r)
	}
}

func (g *generator) learnTakes(takes []regionstore.Take, results []regionstore.TakeResult) {
	for i, res := range results {
		g.seen = res.Time
		for _, p := range res.Parts {
			g.parts = append(g.parts, held{takes[i].Budget, p})
		}
	}
}

func (g *generator) learnView(budget string, v regionstore.View) {
	g.seen = v.Time
	for i, l := range v.Row.Leases {
		g.leases = append(g.leases, named{budget, lease.Kind(i + 1), l.Incarnation})
	}
}
