package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// wallet drives one budget's row in the words of the protocol. Its caller has
// always just seen the store's clock.
type wallet struct {
	testing.TB
	s      *Subject
	budget string
	at     lease.Time
	nonces int
}

func newWallet(t testing.TB, newSubject Make) *wallet {
	return &wallet{TB: t, s: newSubject(t, Config()), budget: "t/wallet", at: Start}
}

func (w *wallet) now() regionstore.Now { return regionstore.Now{NotAfter: w.at} }

func (w *wallet) pass(d time.Duration) {
	w.at = w.at.Add(d)
	w.s.SetTime(w.at)
}

func (w *wallet) openRequest() regionstore.OpenRequest {
	w.nonces++
	req := regionstore.OpenRequest{Budget: w.budget, LocalNonce: fmt.Sprint("local", w.nonces), Now: w.now()}
	for i := range req.Nonces {
		req.Nonces[i] = lease.Incarnation(fmt.Sprintf("%v%d", lease.Kind(i+1), w.nonces))
	}
	return req
}

func (w *wallet) open() regionstore.OpenReply {
	return must(w.s.Store.Open(context.Background(), w.openRequest()))
}

func (w *wallet) view() regionstore.View {
	return must(w.s.Store.Read(context.Background(), []string{w.budget}, []regionstore.Now{w.now()}))[0]
}

func (w *wallet) lease(kind lease.Kind) regionstore.Lease { return w.view().Row.Leases[kind-1] }

func (w *wallet) live(kind lease.Kind) lease.Tokens { return w.view().Live[kind-1] }

func (w *wallet) rows(budgets []string) []regionstore.Row {
	nows := make([]regionstore.Now, len(budgets))
	for i := range nows {
		nows[i] = w.now()
	}
	rows := make([]regionstore.Row, len(budgets))
	for i, v := range must(w.s.Store.Read(context.Background(), budgets, nows)) {
		rows[i] = v.Row
	}
	return rows
}

// intent is one for the row's lease of that kind.
func (w *wallet) intent(kind lease.Kind) regionstore.Intent {
	return regionstore.Intent{Kind: kind, Incarnation: w.lease(kind).Incarnation, LowerBeta: -1}
}

func (w *wallet) beginWith(minAge time.Duration, in regionstore.Intent) regionstore.BegunReport {
	return must(w.s.Store.Begin(context.Background(), regionstore.BeginRequest{
		Budget: w.budget, Intents: []regionstore.Intent{in}, MinAge: minAge, Now: w.now(),
	})).Reports[0]
}

func (w *wallet) begin(kind lease.Kind) lease.Report {
	w.Helper()
	b := w.beginWith(0, w.intent(kind))
	w.outcome("begin", b.Outcome, regionstore.OK)
	return b.Report
}

// active is an answer to a report: a state with nothing in it yet.
func active(r lease.Report, ttl time.Duration) lease.State {
	return lease.State{Kind: r.Kind, Incarnation: r.Incarnation, Seq: r.Seq, Status: lease.Active, TTL: ttl}
}

func (w *wallet) install(st lease.State) regionstore.Outcome {
	return must(w.s.Store.Install(context.Background(), regionstore.InstallRequest{
		Budget: w.budget, States: []lease.State{st}, Now: w.now(),
	})).Outcomes[0]
}

// lump makes the lump's granted total what is given, for ten seconds.
func (w *wallet) lump(granted lease.Tokens) {
	w.Helper()
	st := active(w.begin(lease.Lump), 10*time.Second)
	st.Granted = granted
	w.outcome("install", w.install(st), regionstore.OK)
}

// share installs a share of x tokens per second for ten seconds.
func (w *wallet) share(kind lease.Kind, x, beta, given lease.Tokens) {
	w.Helper()
	w.shareAt(kind, lease.Rate{Tokens: x, Per: time.Second}, beta, given)
}

func (w *wallet) shareAt(kind lease.Kind, x lease.Rate, beta, given lease.Tokens) {
	w.Helper()
	st := active(w.begin(kind), 10*time.Second)
	st.Granted, st.X, st.Beta = given, x, beta
	w.outcome("install", w.install(st), regionstore.OK)
}

func (w *wallet) takeOf(t regionstore.Take) regionstore.TakeReply {
	t.Budget, t.Now = w.budget, w.now()
	return must(w.s.Store.Take(context.Background(), regionstore.TakeRequest{Takes: []regionstore.Take{t}}))
}

func (w *wallet) take(cost lease.Tokens) bool { return w.takeOf(regionstore.Take{Cost: cost}).Took }

func (w *wallet) prefetch(n lease.Tokens) []regionstore.Part {
	return w.takeOf(regionstore.Take{Prefetch: n}).Results[0].Parts
}

func (w *wallet) settle(p regionstore.Part, used, back lease.Tokens) regionstore.Outcome {
	return must(w.s.Store.Settle(context.Background(), []regionstore.Settle{{
		Budget: w.budget, Kind: p.Kind, Incarnation: p.Incarnation, Generation: p.Generation,
		Used: used, Back: back, Now: w.now(),
	}}))[0]
}

func (w *wallet) giveBack(keep lease.Tokens) regionstore.View {
	return must(w.s.Store.Return(context.Background(), regionstore.ReturnRequest{
		Budget: w.budget, Incarnation: w.lease(lease.Lump).Incarnation, Keep: keep, Now: w.now(),
	}))
}

func (w *wallet) close(kind lease.Kind) regionstore.View {
	return must(w.s.Store.Close(context.Background(), regionstore.CloseRequest{
		Budget: w.budget, Kind: kind, Incarnation: w.lease(kind).Incarnation, Now: w.now(),
	}))
}

func (w *wallet) local(cost lease.Tokens, rate lease.Rate, burst lease.Tokens) regionstore.LocalReply {
	return must(w.s.Store.TakeLocal(context.Background(), regionstore.LocalRequest{
		Budget: w.budget, Cost: cost, Rate: rate, Burst: burst, Demand: cost, Now: w.now(),
	}))
}

func (w *wallet) outcome(what string, got, want regionstore.Outcome) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: outcome %d, want %d", what, got, want)
	}
}

// equal fails unless got is want.
func equal[T comparable](w *wallet, what string, got, want T) {
	w.Helper()
	if got != want {
		w.Fatalf("%s: %+v, want %+v", what, got, want)
	}
}
