package agent

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

const (
	// prefetchLimit is the smallest contract for which a process takes tokens
	// ahead: tiny budgets stay exact.
	prefetchLimit lease.Tokens = 100
	// prefetchSpan is how much of its own demand a process takes ahead, and
	// prefetchPart the most of the wallet.
	prefetchSpan = 20 * time.Millisecond
	prefetchPart = 8
	// smallPart of a contract is a small change, and tinyPart a tiny one: a process
	// holds as much ahead for smallFor or tinyFor, and does not hurry to tell of it.
	// Plans and ceilings do not feel it, and so the decisions of one of very many
	// budgets, a few in that time, share a store step instead of taking one each.
	smallPart, smallFor = 200, 8 * time.Second
	tinyPart, tinyFor   = 4 * smallPart, lease.LongestProcessDeadline
	// backBefore is how long before that what nobody used goes back.
	backBefore = 500 * time.Millisecond
	// usedUp is how much of a slow budget's demand in that time is held. It is so
	// much less than all that most of it is used up before: of very many budgets
	// whose first tokens came at once, all would give back and ask again in one
	// instant otherwise, time and again.
	usedUp = 0.75
)

// small is the most that is a small change to a budget; 0 where every token
// counts.
func small(b *terms) lease.Tokens { return partOfLimit(b, smallPart) }

// tiny is the most that is a tiny change.
func tiny(b *terms) lease.Tokens { return partOfLimit(b, tinyPart) }

func partOfLimit(b *terms, part lease.Tokens) lease.Tokens {
	if b.Contract.Limit() < prefetchLimit {
		return 0
	}
	return b.Contract.Limit() / part
}

// patience is for how long n tokens, or a demand of n, need not be told of: hurry
// where that is more than a small change.
func patience(b *terms, n lease.Tokens, hurry time.Duration) time.Duration {
	switch {
	case n <= tiny(b):
		return tinyFor - backBefore
	case n <= small(b):
		return smallFor - backBefore
	}
	return hurry
}

// worthHolding is how many tokens are worth taking ahead for a slow budget that is
// asked for so many a second, of a wallet that lasts for so long, and for how long:
// most of what is used in that time. Of fewer than two, the step that gives back
// costs more than it saves.
func worthHolding(b *terms, rate float64, lasts time.Duration) (n lease.Tokens, span time.Duration) {
	in := func(span time.Duration) lease.Tokens { return lease.Tokens(usedUp * rate * span.Seconds()) }
	n, span = min(in(smallFor), small(b)), smallFor
	if few := min(in(tinyFor), tiny(b)); few >= n && lasts >= tinyFor {
		n, span = few, tinyFor
	}
	if n < 2 {
		return 0, 0
	}
	return n, span
}

// takeOf makes one budget's part of a store step, with the demand that was
// not told yet.
func (d *Decider) takeOf(e *entry, b *terms, cost lease.Tokens, ahead bool, now time.Duration) regionstore.Take {
	e.lock()
	defer e.unlock()
	e.harvest()
	t := regionstore.Take{Budget: b.Name, Cost: cost, Demand: e.offered}
	e.offered = 0
	e.told = now
	if !ahead {
		return t
	}
	t.Settles = e.pocket.settleAlong(now)
	for i := range t.Settles {
		d.stats.GivenBack.Add(int64(t.Settles[i].Back))
	}
	if b.Contract.Limit() < prefetchLimit {
		return t
	}
	want := lease.Tokens(e.rate * prefetchSpan.Seconds())
	if few, span := e.ahead(b, now); few > want {
		want, t.HoldFor = few, span
	}
	t.Prefetch = max(0, min(want, e.last.Live/prefetchPart)-e.pocket.live(now))
	return t
}

// ahead is worthHolding of what the entry knows. Its mutex is held.
func (e *entry) ahead(b *terms, now time.Duration) (lease.Tokens, time.Duration) {
	return worthHolding(b, e.rate, e.last.until-now)
}

// take sends one take and books what came back: the store's clock, the
// prefetch, and what the wallet holds. sent is from before it was sent.
func (d *Decider) take(ctx context.Context, lots []*lot, req regionstore.TakeRequest) (reply regionstore.TakeReply, sent time.Duration, err error) {
	s := d.send(req.Takes[0].Budget)
	for i, l := range lots {
		req.Takes[i].Now = d.bound(l.entry, s)
	}
	req.Late = func(reply regionstore.TakeReply) { d.late(lots, &req, &reply, s.at) }
	err = d.call(ctx, s.primary, "take", func(ctx context.Context) error {
		reply, err = d.opt.Store.Take(ctx, req)
		return err
	})
	if err != nil || reply.Conflict || reply.Replayed { // a kept answer's clock and figures are of long ago
		return reply, s.at, err
	}
	got := d.opt.Now()
	for i, l := range lots {
		r := &reply.Results[i]
		d.saw(l.entry, s, got, r.Time, r.Outcome)
		d.booked(l.entry, r, req.Hold, s.at, got)
		d.heat(l.entry, got)
	}
	return reply, s.at, nil
}

// late books what a take brought after its decision went on without it. What was
// used there is lost, unless the request is repeated. What came to be held is as
// good as any: nobody else knows of it, and its time counts from before it was
// asked for.
func (d *Decider) late(lots []*lot, req *regionstore.TakeRequest, reply *regionstore.TakeReply, sent time.Duration) {
	d.stats.LateTakes.Add(1)
	if !reply.Took || reply.Replayed {
		return
	}
	got := d.opt.Now()
	for i, l := range lots {
		if !req.Hold && !req.Keeps(reply) {
			d.stats.LateTokens.Add(int64(req.Takes[i].Cost))
		}
		l.entry.lock()
		l.entry.keep(reply.Results[i].Parts, sent, got)
		l.entry.unlock()
		if l.entry.inUse.Load() {
			d.wakeUp(l.entry)
		}
	}
}

// send notes what a call on a budget's row that is sent now starts from.
func (d *Decider) send(budget string) callStart {
	return d.primary.send(d.opt.Store.Primary(budget), d.opt.Now())
}

// bound says how the store's clock is bounded for this row.
func (d *Decider) bound(e *entry, s callStart) regionstore.Now {
	e.mu.Lock()
	touched := e.touched
	e.mu.Unlock()
	return d.primary.bound(s, touched)
}

// saw books the store's time in a reply about one row, which came at got; e
// is nil for a budget that is listed no more.
func (d *Decider) saw(e *entry, s callStart, got time.Duration, t lease.Time, outcome regionstore.Outcome) {
	clock := d.primary.saw(s, got, t)
	if e == nil {
		return
	}
	if outcome == regionstore.Missing {
		clock = 0
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.touched = clock
}

// booked takes in what a take brought and what it says of the wallet.
func (d *Decider) booked(e *entry, r *regionstore.TakeResult, hold bool, sent, got time.Duration) {
	e.lock()
	defer e.unlock()
	if !hold {
		e.keep(r.Parts, sent, got)
		for _, p := range r.Parts {
			d.stats.Prefetched.Add(int64(p.Tokens))
		}
	}
	e.last = holdings{Live: r.Live, Beta: r.Beta, X: r.X, until: sent + r.Lease}
}

// keep puts what a take brought into the pocket. Takes that were under way at once
// may each have brought as much as the process may hold: what is above that is
// not spent, and goes back with the next take or flush. The entry's mutex is held.
func (e *entry) keep(parts []regionstore.Part, sent, got time.Duration) {
	if len(parts) == 0 {
		return
	}
	first, live := len(e.pocket.parts), e.pocket.live(got)
	e.pocket.add(parts, sent, got, false)
	e.pocket.touched = got
	for _, q := range e.pocket.parts[first:] {
		if live += q.brought; live > e.last.Live/prefetchPart {
			q.ending = true
		}
	}
}

// settle tells the store what became of tokens of these entries, and demand that
// waited for a take for too long; with all set their pockets are emptied. It is
// one attempt: after an unknown outcome nothing is said again, and the tokens age
// out. Demand that is lost with a store steers nothing. Each store call has the
// time within.
func (d *Decider) settle(ctx context.Context, within time.Duration, entries []*entry, all bool) {
	byPrimary := map[string][]regionstore.Settle{}
	for _, e := range entries {
		if !e.tells() {
			continue
		}
		b := e.policy.Load()
		s := d.send(b.Name)
		bound := d.bound(e, s)
		e.lock()
		e.harvest()
		had := len(byPrimary[s.primary])
		list := e.pocket.settle(b, s.at, all, byPrimary[s.primary])
		if len(list) == had && e.offered > 0 && (all || s.at-e.told >= patience(b, e.offered, demandWithin)) {
			list = append(list, regionstore.Settle{Budget: b.Name})
		}
		if len(list) > had {
			list[had].Demand, e.offered, e.told = e.offered, 0, s.at
		}
		e.unlock()
		if len(list) == had {
			continue
		}
		d.heat(e, s.at)
		for i := had; i < len(list); i++ {
			list[i].Now = bound
			d.stats.GivenBack.Add(int64(list[i].Back))
		}
		byPrimary[s.primary] = list
	}
	for primary, list := range byPrimary {
		for some := range slices.Chunk(list, settlesAtOnce) {
			d.sendSettles(ctx, within, primary, some)
		}
	}
}

// settlePatience is how long a flush waits for the store, unless decisions wait
// longer: nobody waits for a flush, and what it could not send is lost.
const settlePatience = 250 * time.Millisecond

func (d *Decider) settleWithin() time.Duration {
	if d.opt.StoreDeadline <= 0 {
		return d.opt.StoreDeadline
	}
	return max(d.opt.StoreDeadline, settlePatience)
}

// settlesAtOnce is how many settlements have the time of one store call: what is
// not sent within it is lost.
const settlesAtOnce = 32

func (d *Decider) sendSettles(ctx context.Context, within time.Duration, primary string, list []regionstore.Settle) {
	send := func(ctx context.Context) error {
		_, err := d.opt.Store.Settle(ctx, list)
		return err
	}
	if err := d.callWithin(ctx, within, primary, "settle", send); err != nil && mutant.On(mutant.UseRepeated) {
		_ = d.callWithin(ctx, within, primary, "settle", send)
	}
}

// Flush settles used tokens in batches, gives back what lies idle or nears its
// deadline, tells demand that no take carried, along with that or once it waited for
// long, refills slow budgets, and renews the estimate of this process's own demand. It is to be called
// about every 50 ms; with all set, it empties every pocket and tells all demand.
func (d *Decider) Flush(ctx context.Context, all bool) {
	list := d.toFlush(d.opt.Now(), all)
	awake := list // should what follows panic
	defer func() { d.keepAwake(awake) }()
	d.settle(ctx, d.settleWithin(), list, all)
	now := d.opt.Now()
	var busy, resting, low []*entry
	for _, e := range list {
		rests, refill := d.refresh(e, now)
		if rests {
			resting = append(resting, e)
		} else {
			busy = append(busy, e)
		}
		if refill && !all {
			low = append(low, e)
		}
	}
	awake = busy
	d.forgetUnused(resting, now)
	d.refill(ctx, low)
}

// demandWithin is how long demand that is more than a small change may wait for a
// take or a settlement to carry it.
const demandWithin = 40 * time.Millisecond

// refresh renews the estimate of the process's demand, and reports whether the
// entry may rest now, and whether it is to be refilled.
func (d *Decider) refresh(e *entry, now time.Duration) (rests, low bool) {
	e.lock()
	defer e.unlock()
	e.harvest()
	b := e.policy.Load()
	low = e.runsLow(b, e.arrived > 0, now)
	if e.served > 0 {
		d.countMany(FromPrefetch, int64(e.served))
		e.served = 0
	}
	if dt := now - e.rateAt; dt >= prefetchSpan {
		seen := float64(e.arrived) / dt.Seconds()
		e.rate += (seen - e.rate) * dt.Seconds() / (dt + rateSpan(max(e.rate, seen))).Seconds()
		e.arrived, e.rateAt = 0, now
	}
	rests = e.restful(small(b), now)
	e.rests.Store(rests)
	return rests, low
}

// restful reports whether nothing is there to settle or to tell, or no more than
// a small change, before the next look. The entry's mutex is held.
func (e *entry) restful(few lease.Tokens, now time.Duration) bool {
	if e.offered == 0 && len(e.pocket.parts) == 0 {
		return true
	}
	for _, q := range e.pocket.parts {
		if now+restFor+flushEvery+endBefore >= q.deadline {
			return false
		}
	}
	return e.offered <= few && e.pocket.live(now) <= few && e.slow(few)
}

// slow reports whether fewer than that many are used from look to look.
func (e *entry) slow(few lease.Tokens) bool { return e.rate*restFor.Seconds() < float64(few) }

// rateSpan is over how long a rate is averaged: a few arrivals of a slow one.
func rateSpan(rate float64) time.Duration {
	const few, least, most = 4, 50 * time.Millisecond, smallFor
	if rate*most.Seconds() < few {
		return most
	}
	return max(least, time.Duration(few/rate*float64(time.Second)))
}

// busy reports whether the entry was used lately or has something to settle.
func (e *entry) busy(now time.Duration) bool {
	if now-time.Duration(e.lastUsed.Load()) < forgetAfter {
		return true
	}
	e.lock()
	defer e.unlock()
	return len(e.pocket.parts) > 0 || e.offered > 0
}

// retire ends the entry's use, unless a decision has just begun to use it: that
// one may have found it in the list still.
func (e *entry) retire(now time.Duration) bool {
	e.inUse.Store(false)
	if now-time.Duration(e.lastUsed.Load()) < forgetAfter && e.inUse.CompareAndSwap(false, true) {
		return false
	}
	e.lock()
	defer e.unlock() // which drops what is not used
	return true
}
