package storetest

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// level is a reference bucket: what time can have minted since its start, less
// what was spent.
type level struct {
	tokens float64
	at     lease.Time // true time
}

// rise mints up to now: x tokens per second at the fastest clock, up to beta.
func (v *level) rise(now lease.Time, x, beta lease.Tokens) {
	seconds := float64(now-v.at) / 1e6 * (1 + 3e-6*float64(Config().Clocks.DriftPPM))
	v.tokens = min(float64(beta), v.tokens+float64(x)*seconds)
	v.at = now
}

// spent books n tokens spent of an incarnation, by whomever.
func (w *World) spent(kind lease.Kind, inc lease.Incarnation, n lease.Tokens) {
	if !kind.IsShare() {
		w.used[inc] += n
		return
	}
	v, h := w.levels[inc], w.ledger.holds[inc]
	if v == nil || h == nil {
		return
	}
	v.rise(w.now, h.mostX, h.mostBeta)
	v.tokens -= float64(n)
}

// take uses tokens at once. Which lease they come from follows from what was
// live at the same instant for the same agent.
func (w *World) take() {
	a := w.agent()
	before := w.read(a)
	cost := lease.Tokens(w.pick(12))
	r := must(w.subject.Store.Take(context.Background(), regionstore.TakeRequest{
		Takes: []regionstore.Take{{Budget: worldBudget, Cost: cost, Demand: cost, Now: w.bound(a)}},
	}))
	w.saw(a, r.Results[0].Time)
	if !r.Took {
		return
	}
	for i, live := range before.Live {
		n := min(cost, live)
		cost -= n
		w.spent(lease.Kind(i+1), before.Row.Leases[i].Incarnation, n)
	}
}

// prefetch takes tokens into a process's memory; its clock may be slow.
func (w *World) prefetch() {
	a := w.agent()
	t := regionstore.Take{
		Budget: worldBudget, Cost: lease.Tokens(w.pick(3)), Prefetch: lease.Tokens(w.pick(15)), Now: w.bound(a),
		HoldFor: time.Duration(w.pick(20)) * time.Second,
	}
	if w.pick(2) == 0 {
		t.Settles, w.settles = w.settles, nil
	}
	r := must(w.subject.Store.Take(context.Background(), regionstore.TakeRequest{Takes: []regionstore.Take{t}, Hold: true}))
	w.saw(a, r.Results[0].Time)
	for _, p := range r.Results[0].Parts {
		us := int64(p.Remains / time.Microsecond)
		us = us * 1_000_000 / (1_000_000 - Config().Clocks.DriftPPM)
		w.processes = append(w.processes, process{part: p, until: w.now + lease.Time(us)})
	}
}

// settle lets a process spend or give back some of what it has, and says so,
// now, later, or never. Past its deadline it only gives back.
func (w *World) settle() {
	if len(w.processes) == 0 {
		return
	}
	i := w.pick(len(w.processes))
	p := &w.processes[i]
	n := lease.Tokens(1 + w.pick(int(p.part.Tokens)))
	s := regionstore.Settle{
		Budget: worldBudget, Kind: p.part.Kind, Incarnation: p.part.Incarnation, Generation: p.part.Generation,
	}
	if w.now < p.until && w.pick(3) > 0 {
		s.Used = n
		w.spent(s.Kind, s.Incarnation, n)
	} else {
		s.Back = n
	}
	if p.part.Tokens -= n; p.part.Tokens == 0 {
		w.processes = slices.Delete(w.processes, i, i+1)
	}
	switch w.pick(4) {
	case 0:
	case 1:
		w.settles = append(w.settles, s)
	default:
		w.send(s)
	}
}

func (w *World) lateSettle() {
	if len(w.settles) == 0 {
		return
	}
	i := w.pick(len(w.settles))
	w.send(w.settles[i])
	w.settles = slices.Delete(w.settles, i, i+1)
}

func (w *World) send(s regionstore.Settle) {
	s.Now = w.bound(w.agent())
	must(w.subject.Store.Settle(context.Background(), []regionstore.Settle{s}))
}

// localRate and localBurst are the world's local allowance.
var localRate = lease.Rate{Tokens: 3, Per: time.Second}

const localBurst = 5

func (w *World) local() {
	a := w.agent()
	cost := lease.Tokens(w.pick(4))
	r := must(w.subject.Store.TakeLocal(context.Background(), regionstore.LocalRequest{
		Budget: worldBudget, Cost: cost, Rate: localRate, Burst: localBurst, Now: w.bound(a),
	}))
	w.saw(a, r.Time)
	if r.Outcome == regionstore.OK {
		w.localLevel.rise(w.now, localRate.Tokens, localBurst)
		w.localLevel.tokens -= float64(cost)
		w.localTotal += cost
	}
}

// read views the row as an agent does.
func (w *World) read(a *agent) regionstore.View {
	v := must(w.subject.Store.Read(context.Background(), []string{worldBudget}, []regionstore.Now{w.bound(a)}))[0]
	w.saw(a, v.Time)
	return v
}
