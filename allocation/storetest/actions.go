package storetest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The actions of the state machine. Each draws what it needs and does one
// thing in the ledger, in a region, or between them.

func (w *world) passTime(rt *rapid.T) {
	span := rapid.SampledFrom([]time.Duration{
		time.Microsecond, time.Millisecond, 300 * time.Millisecond, time.Second, 2200 * time.Millisecond,
		5 * time.Second, 9 * time.Second, 10100 * time.Millisecond, 31 * time.Second, time.Minute, time.Hour,
	}).Draw(rt, "span")
	w.h.Advance(span)
	w.tick(rt)
	w.requests = slices.DeleteFunc(w.requests, func(m message) bool { return w.now.Sub(m.sent) > keepEnded/2 })
}

// someone draws a region and a kind; the wallet may be nil.
func (w *world) someone(rt *rapid.T) (*region, *wallet) {
	r := rapid.SampledFrom(w.regions).Draw(rt, "region")
	return r, r.wallets[rapid.IntRange(0, lease.Kinds-1).Draw(rt, "kind")]
}

func (w *world) tokens(rt *rapid.T, what string) lease.Tokens {
	return lease.Tokens(rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 10, 40}).Draw(rt, what))
}

// begin makes a region say something about one or all of its leases, opening
// a new incarnation where none is in use.
func (w *world) begin(rt *rapid.T) {
	i := rapid.IntRange(0, len(w.regions)-1).Draw(rt, "region")
	r := w.regions[i]
	it := lease.Item{
		Budget: w.name,
		Demand: float64(rapid.IntRange(0, 50).Draw(rt, "demand")),
		Local:  []lease.LocalUse{{Source: "store", Total: r.local}},
		RTT:    80 * time.Millisecond,
	}
	want := w.tokens(rt, "want")
	it.Waiting = rapid.SampledFrom([]lease.Tokens{0, want}).Draw(rt, "waiting")
	only := rapid.IntRange(0, lease.Kinds).Draw(rt, "kind")
	for k := range r.wallets {
		if only != 0 && only != k+1 {
			continue
		}
		if w.over(r, r.wallets[k]) {
			w.incarnations++
			r.replace(k, lease.Incarnation(fmt.Sprintf("i%d", w.incarnations)))
		}
		r.wallets[k].begin(want, w.clock(r))
		it.Leases = append(it.Leases, r.wallets[k].sent)
	}
	w.requests = append(w.requests, message{i, it, w.now})
}

// over reports whether a wallet's lease is of no more use.
func (w *world) over(r *region, l *wallet) bool {
	return l == nil || l.ended || l.void || l.deadline != 0 && w.clock(r) >= l.deadline && l.closed
}

// replace puts a new incarnation in the place of an old one, which is voided:
// what the process holds of it stays spendable.
func (r *region) replace(k int, inc lease.Incarnation) {
	next := &wallet{kind: lease.Kind(k + 1), inc: inc}
	if old := r.wallets[k]; old != nil {
		if !old.ended && old.deadline != 0 {
			next.holder = old.inc
		}
		old.void, old.balance = true, 0
		r.lost = append(r.lost, old)
	}
	r.wallets[k] = next
}

func (w *world) deliver(rt *rapid.T) {
	if len(w.requests) == 0 {
		rt.Skip("nothing was sent")
	}
	w.send(rt, rapid.SampledFrom(w.requests).Draw(rt, "request"))
}

func (w *world) deliverLast(rt *rapid.T) {
	if len(w.requests) == 0 {
		rt.Skip("nothing was sent")
	}
	w.send(rt, w.requests[len(w.requests)-1])
}

// sync is a region's talk with the ledger when nothing goes wrong.
func (w *world) sync(rt *rapid.T) {
	w.begin(rt)
	w.deliverLast(rt)
	w.installLast(rt)
}

// send has the ledger answer a request, be it the first time or not.
func (w *world) send(rt *rapid.T, m message) {
	var reply lease.ItemReply
	w.ledger(rt, func(now allocation.Now, s *allocation.State) {
		reply = allocation.Sync(w.cfg, now, s, w.regions[m.region].name, m.item)
	})
	if reply.Err == nil && len(reply.Leases) != len(m.item.Leases) {
		rt.Fatalf("%d answers to %d reports", len(reply.Leases), len(m.item.Leases))
	}
	w.replies = append(w.replies, answer{m.region, reply})
}

func (w *world) install(rt *rapid.T) {
	if len(w.replies) == 0 {
		rt.Skip("nothing was answered")
	}
	w.receive(rapid.SampledFrom(w.replies).Draw(rt, "reply"))
}

func (w *world) installLast(rt *rapid.T) {
	if len(w.replies) == 0 {
		rt.Skip("nothing was answered")
	}
	w.receive(w.replies[len(w.replies)-1])
}

func (w *world) receive(a answer) {
	r := w.regions[a.region]
	for _, st := range a.reply.Leases {
		if l := r.wallets[st.Kind-1]; l != nil {
			l.install(st, w.clock(r))
		}
	}
}

func (w *world) spend(rt *rapid.T) {
	if r, l := w.someone(rt); l != nil {
		w.admitted += l.spend(w.tokens(rt, "cost"), w.clock(r))
	}
}

func (w *world) take(rt *rapid.T) {
	if r, l := w.someone(rt); l != nil {
		l.take(w.tokens(rt, "batch"), w.clock(r))
	}
}

// settle uses or gives back prefetched tokens, of lost wallets too.
func (w *world) settle(rt *rapid.T) {
	r := rapid.SampledFrom(w.regions).Draw(rt, "region")
	all := r.all()
	if len(all) == 0 {
		rt.Skip("no lease was ever opened")
	}
	l, n := rapid.SampledFrom(all).Draw(rt, "lease"), w.tokens(rt, "tokens")
	if rapid.Bool().Draw(rt, "used") {
		w.admitted += l.use(n)
	} else {
		l.giveBack(n)
	}
}

func (w *world) giveUp(rt *rapid.T) {
	if r, l := w.someone(rt); l != nil {
		l.giveUp(w.tokens(rt, "tokens"), w.clock(r))
	}
}

func (w *world) closeLease(rt *rapid.T) {
	if _, l := w.someone(rt); l != nil {
		l.close()
	}
}

func (w *world) lower(rt *rapid.T) {
	if _, l := w.someone(rt); l != nil && l.kind.IsShare() {
		l.lower(l.x.Tokens/2, l.beta/2)
	}
}

// lose empties a region's store. Its next incarnations name the lost shares.
func (w *world) lose(rt *rapid.T) {
	r := rapid.SampledFrom(w.regions).Draw(rt, "region")
	for k := range r.wallets {
		if r.wallets[k] != nil {
			w.incarnations++
			r.replace(k, lease.Incarnation(fmt.Sprintf("i%d", w.incarnations)))
		}
	}
}

func (w *world) sweep(rt *rapid.T) {
	w.ledger(rt, func(now allocation.Now, s *allocation.State) { allocation.Sweep(w.cfg, now, s) })
}

// stepBack sets the regions' clocks back, once.
func (w *world) stepBack(*rapid.T) { w.stepped = true }

func (w *world) admitAlone(rt *rapid.T) {
	rapid.SampledFrom(w.regions).Draw(rt, "region").local += w.tokens(rt, "cost")
}

// setBudget puts a random contract in force, or deletes the budget.
func (w *world) setBudget(rt *rapid.T) {
	b := w.draw(rt)
	gone := w.state != nil && rapid.IntRange(0, 5).Draw(rt, "delete") == 0
	if w.state != nil {
		w.sweep(rt)
	}
	var after *allocation.State
	err := w.h.Store.Apply(context.Background(), []string{w.name}, func(now allocation.Now, states []*allocation.State) ([]*allocation.State, error) {
		s := states[0]
		switch {
		case s == nil:
			s = allocation.NewState(now, b)
		case gone:
			deleted := s.Budget
			deleted.Deleted = true
			s.SetBudget(w.cfg, now, deleted)
		default:
			s.SetBudget(w.cfg, now, b)
		}
		after = s
		return []*allocation.State{s}, nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	w.took(rt, clone(after))
}

func (w *world) draw(rt *rapid.T) policy.Budget {
	small := rapid.Int64Range(0, 40)
	b := bucket(w.name, lease.Tokens(small.Draw(rt, "rate")), lease.Tokens(small.Draw(rt, "burst")))
	b.Contract.Rate.Per = rapid.SampledFrom([]time.Duration{time.Second, 3 * time.Second, time.Minute}).Draw(rt, "per")
	b.Float = lease.Tokens(rapid.Int64Range(0, 9).Draw(rt, "float"))
	b.TTL = rapid.SampledFrom([]time.Duration{2 * time.Second, 10 * time.Second}).Draw(rt, "ttl")
	b.ShareTTL = rapid.SampledFrom([]time.Duration{5 * time.Second, 30 * time.Second}).Draw(rt, "share ttl")
	b.Strategy = rapid.SampledFrom([]policy.Strategy{policy.Dynamic, policy.Dynamic, policy.Static, policy.Independent}).Draw(rt, "strategy")
	b.OnStoreLoss = rapid.SampledFrom([]policy.OnStoreLoss{policy.Regrant, policy.Wait}).Draw(rt, "on store loss")
	for _, r := range w.regions {
		b.Regions = append(b.Regions, policy.Region{Name: r.name, Weight: rapid.Int64Range(1, 3).Draw(rt, "weight")})
	}
	if rapid.IntRange(0, 3).Draw(rt, "quota") == 0 {
		b.Float = 0
		b.Contract = policy.Contract{Quota: policy.Quota{N: lease.Tokens(small.Draw(rt, "n")), Per: policy.Hour, Zone: "UTC"}}
	}
	return b
}

// replan draws a plan that no planner would make, or goes back to the real one.
func (w *world) replan(rt *rapid.T) {
	w.plan = nil
	if rapid.Bool().Draw(rt, "real") {
		return
	}
	part := rapid.SampledFrom([]int{0, 0, 250, 500, 1000, 1500})
	for range w.regions {
		w.plan = append(w.plan, planned{
			reserveX: part.Draw(rt, "reserve x"), reserveBeta: part.Draw(rt, "reserve beta"),
			pacedX: part.Draw(rt, "paced x"), pacedBeta: part.Draw(rt, "paced beta"),
			lump: part.Draw(rt, "lump"), push: part.Draw(rt, "push"), keep: part.Draw(rt, "keep"),
			piece: lease.Tokens(rapid.Int64Range(0, 4).Draw(rt, "piece")),
		})
	}
}

func (w *world) planner(s *allocation.State, p *allocation.Pool, now lease.Time) []allocation.Target {
	if w.plan == nil {
		return allocation.Plan(s, p, now)
	}
	targets := make([]allocation.Target, len(w.regions))
	for i, t := range w.plan {
		of := func(n lease.Tokens, part int) lease.Tokens { return n * lease.Tokens(part) / 1000 }
		targets[i] = allocation.Target{
			Region:  w.regions[i].name,
			Reserve: allocation.Share{X: of(p.Rate.Tokens, t.reserveX), Beta: of(p.Burst, t.reserveBeta)},
			Paced:   allocation.Share{X: of(p.Rate.Tokens, t.pacedX), Beta: of(p.Burst, t.pacedBeta), Keep: of(p.Burst, t.keep)},
			Lump:    of(p.Burst, t.lump),
			Lumps:   t.lump > 0,
			Piece:   t.piece,
			Push:    of(p.Burst, min(t.lump, t.push)),
			Keep:    of(p.Burst, t.keep),
		}
	}
	return targets
}
