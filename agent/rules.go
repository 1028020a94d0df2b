package agent

import (
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// The rules of the dynamic plan on the region's side: when to say something, what to
// ask for, and when to look again.

// worthAsking reports whether an urgent Sync may bring tokens.
func (k *Keeper) worthAsking(w *ward) bool {
	if k.now < w.askAfter() {
		return false
	}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if l := w.lease(kind); l.Incarnation != "" && !l.Ended && k.now >= k.growsFrom(w, kind) {
			return true
		}
	}
	return false
}

// growsFrom is from when on an answer could give the region more of a kind. A
// reserve that is as planned never grows by asking; one that is short does.
func (k *Keeper) growsFrom(w *ward, kind lease.Kind) time.Duration {
	l := w.lease(kind)
	switch {
	case unborn(l) && !l.Pending:
		return w.told[kind-1].notBefore
	case kind == lease.Reserve && w.alive(kind) && w.fullReserve:
		return k.now + askFull
	}
	return k.now
}

// hasToSay reports whether a Sync is due that nobody waits for: the leader's,
// save for what this process admitted without a lease.
func (k *Keeper) hasToSay(w *ward) bool {
	if w.final || k.now < w.sentAt+k.cfg.SyncEvery && w.sentAt > 0 && !k.pressing(w) {
		return false
	}
	if w.localUnsaid() {
		return true
	}
	if !k.leader || k.pendingYoung(w) {
		return false
	}
	return w.storeUnsaid() || k.leaseHasToSay(w) || k.wanted(w) && k.figuresToSay(w)
}

// pendingYoung reports whether another agent's sequence is on its way.
func (k *Keeper) pendingYoung(w *ward) bool {
	for i := range w.view.Row.Leases {
		l := &w.view.Row.Leases[i]
		if l.Pending && w.view.Time < l.Anchor.Add(2*k.rtt) {
			return true
		}
	}
	return false
}

// leaseHasToSay looks for a lease that needs the ledger.
func (k *Keeper) leaseHasToSay(w *ward) bool {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := w.lease(kind)
		switch {
		case l.Incarnation == "" || l.Ended:
		case l.Closed:
			if !reported(l) || counted(l) != l.Sent.Prefetched {
				return true
			}
		case w.dead(kind):
			return true
		case !k.wanted(w):
			if !reported(l) && l.Deadline != 0 {
				return true
			}
		case unborn(l):
			if k.asks(w, kind) {
				return true
			}
		case l.Pending, l.Returned > l.Sent.Returned, k.nearEnd(w, kind):
			return true
		case kind.IsShare() && (l.X != l.Sent.X || l.Beta != l.Sent.Beta) && smaller(l):
			return true
		}
	}
	return false
}

// smaller reports whether a share holds less than was said last, which the
// ledger counts until it is told.
func smaller(l *regionstore.Lease) bool {
	return l.Beta < l.Sent.Beta || l.X.Per == l.Sent.X.Per && l.X.Tokens < l.Sent.X.Tokens
}

// asks reports whether an unborn lease is reason enough for a Sync: a standing
// share, or a lump for a budget in use. A paced share is only asked for along
// with others, because what it follows is said by them.
func (k *Keeper) asks(w *ward, kind lease.Kind) bool {
	t := &w.told[kind-1]
	if k.now < t.notBefore || k.now < w.askAfter() {
		return false
	}
	if w.lease(kind).Seq > 0 && t.notBefore == 0 && k.now < w.sentAt+time.Second {
		return false
	}
	return kind == lease.Reserve && k.standing(w) || kind == lease.Lump && w.usedUntil > k.now
}

func (k *Keeper) nearEnd(w *ward, kind lease.Kind) bool {
	left := w.remains(kind) - (k.now - w.viewAt)
	return left < time.Duration(extendEarly*float64(w.ttl(kind)))
}

// figuresToSay looks at use and demand.
func (k *Keeper) figuresToSay(w *ward) bool {
	since := k.now - w.sentAt
	if w.sentVersion != 0 && w.sentVersion < w.budget.Version {
		return true
	}
	if !w.elastic(k.now) {
		return since >= shareBeat && w.usedUntil > k.now
	}
	if w.usedUntil <= k.now {
		return false
	}
	if k.now >= w.askAfter() && w.live() < k.low(w) {
		return true
	}
	l := w.lease(lease.Lump)
	regions := max(w.budget.regions, 3)
	if unsaid := float64(l.Used - l.Sent.Used); unsaid >= 1 && unsaid > 0.1*float64(w.budget.Contract.Limit())/float64(regions) {
		return true
	}
	if w.demandMoved() {
		return true
	}
	return since >= k.beat(w) && (l.Used > l.Sent.Used || w.asked() != w.sentDemand)
}

// pressing reports whether there is news that moves tokens or rate between
// regions, which is said as soon as it can be: demand that changed, and what this
// region has given back or no longer mints while others may lack it. While nobody
// lacks anything that waits for company, for of many budgets some always hold a
// little too much.
func (k *Keeper) pressing(w *ward) bool {
	lump, paced := w.lease(lease.Lump), w.lease(lease.Paced)
	return w.demandMoved() || k.now < w.scarce && (lump.Returned > lump.Sent.Returned || smaller(paced))
}

// demandMoved reports whether what is asked for left the noise around what was
// said last.
func (w *ward) demandMoved() bool {
	asked := w.asked()
	moved := math.Abs(asked - w.sentDemand)
	return moved > 0.1*max(asked, w.sentDemand)+2*w.demand.noise()
}

// beat is the heartbeat of a budget in use: max(1 s, min(ttl/3, 1/rate)), and
// slower where very many budgets are in use.
func (k *Keeper) beat(w *ward) time.Duration {
	beat := w.ttl(lease.Lump) / 3
	if r := w.budget.Contract.Rate; !r.Zero() {
		beat = min(beat, time.Duration(float64(time.Second)/r.PerSecond()))
	}
	return max(beat, time.Second, time.Duration(k.active())*time.Second/beatsPerSecond)
}

// intents says what begin is to write. A reserve share that is well is left
// out where other leases are alive: most Syncs are about those.
func (k *Keeper) intents(w *ward) []regionstore.Intent {
	var intents []regionstore.Intent
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := w.lease(kind)
		if l.Incarnation == "" || l.Ended || l.Closed && reported(l) && counted(l) == l.Sent.Prefetched {
			continue
		}
		if unborn(l) && !k.asksAlong(w, kind) {
			continue
		}
		in := regionstore.Intent{
			Kind: kind, Incarnation: l.Incarnation, LowerBeta: -1,
			Regrant: k.regrants(w, kind), Supersede: l.Closed,
		}
		if kind == lease.Lump && !l.Closed {
			in.Want = k.want(w)
		}
		if kind == lease.Paced {
			k.cutSelf(w, &in)
		}
		intents = append(intents, in)
	}
	return intents
}

// asksAlong reports whether an unborn lease is asked for in a Sync that is
// sent anyway. A paced share always is: whether one is planned changes with
// demand, and asking along costs nothing.
func (k *Keeper) asksAlong(w *ward, kind lease.Kind) bool {
	l := w.lease(kind)
	if k.closing || !k.wanted(w) {
		return false
	}
	return l.Pending || kind == lease.Paced || k.now >= w.told[kind-1].notBefore || k.regrants(w, kind)
}

// regrants reports whether the report is to name a share that the store lost.
func (k *Keeper) regrants(w *ward, kind lease.Kind) bool {
	return kind.IsShare() && w.lease(kind).Lost != "" && w.budget.OnStoreLoss == policy.Regrant
}

// want is the total hold wanted of the lump.
func (k *Keeper) want(w *ward) lease.Tokens {
	if !k.wanted(w) {
		return 0
	}
	want := max(w.demand.need(k.rtt, k.cfg.SyncEvery), w.waiting)
	return min(want+counted(w.lease(lease.Lump)), lease.MaxTokens)
}

// spendDown is the part of its demand that a region takes out of its share's
// balance, not out of the rate, while the ledger wants the balance lower.
const spendDown = 0.2

// asked is the rate that the region asks for: its demand, or less of it while
// its paced share holds more than the ledger wants to lie there. What its reserve
// mints comes whatever it asks for, so that only the rest can be less.
func (w *ward) asked() float64 {
	full := partOf(w.held[lease.Paced-1], w.lease(lease.Paced).Beta)
	if !w.alive(lease.Paced) || w.keepPaced == 0 || full <= w.keepPaced {
		return w.demand.rate
	}
	reserved := 0.0
	if w.alive(lease.Reserve) {
		reserved = w.lease(lease.Reserve).X.PerSecond()
	}
	return w.demand.rate - spendDown*max(0, w.demand.rate-reserved)
}

// partOf is the part that n is of all, in 255ths, rounded up.
func partOf(n, all lease.Tokens) uint8 {
	switch {
	case n <= 0:
		return 0
	case n >= all:
		return 255
	}
	return uint8(math.Ceil(255 * float64(n) / float64(all)))
}

// cutSelf lowers a paced share that stands above what is asked for: the region
// cuts itself, which saves the round trip of a recall. While nobody lacks tokens
// the plan spares a share a tenth, with which it fills up again.
func (k *Keeper) cutSelf(w *ward, in *regionstore.Intent) {
	l := w.lease(lease.Paced)
	enough := 0.9
	if k.now < w.scarce {
		enough = 0.95
	}
	if !w.alive(lease.Paced) || w.asked() >= enough*l.X.PerSecond() {
		return
	}
	in.LowerX = lease.Rate{Tokens: clampTokens(1.02 * w.asked() * l.X.Per.Seconds()), Per: l.X.Per}
	in.Supersede = true
}

// low is the live wallet below which a Sync is asked for at once; 0 where none
// could help.
func (k *Keeper) low(w *ward) lease.Tokens {
	if w.final || w.missing || !w.elastic(k.now) {
		return 0
	}
	if w.told[lease.Lump-1].ttl > 0 && w.keep == 0 && !w.alive(lease.Paced) {
		return 0 // nothing is kept here for callers that do not wait
	}
	low := w.demand.rate * (k.rtt + shortestRTT).Seconds()
	if w.alive(lease.Lump) && w.hold > 0 {
		low = min(low, 0.4*float64(w.hold))
	}
	if w.alive(lease.Paced) {
		low = min(low, 0.25*float64(w.lease(lease.Paced).Beta))
	}
	return max(1, clampTokens(low))
}

// idle ends a round with nothing more to do, and plans the next look.
func (k *Keeper) idle(w *ward) {
	if w.urgent && !w.missing && !w.final { // it was not worth asking
		k.holdOff(w)
		k.tell(w)
	}
	w.urgent = false
	if w.final {
		k.sleep(w, 0)
		return
	}
	k.sleep(w, k.nextLook(w))
}

// nextLook is when the row is worth looking at again; 0 for "when something
// happens". Agents that do not lead look at what they use, for their
// estimates, and less often.
func (k *Keeper) nextLook(w *ward) time.Duration {
	next := time.Duration(0)
	sooner := func(at time.Duration) {
		if next == 0 || at < next {
			next = at
		}
	}
	if w.ownUntil > k.now || k.leader && w.usedUntil > k.now {
		sooner(k.now + k.lookEvery(w))
	}
	if !k.leader || w.missing {
		return next
	}
	if next == 0 && w.usedUntil > 0 && w.anyAlive() {
		sooner(max(w.usedUntil, k.now+time.Second)) // to close what is unused by then
	}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := w.lease(kind)
		switch {
		case l.Incarnation == "" || l.Ended:
		case w.alive(kind) && k.wanted(w):
			left := w.remains(kind) - time.Duration(extendEarly*float64(w.ttl(kind)))
			sooner(w.viewAt + max(left, time.Second) - time.Duration(k.cfg.Rand.Float64()*0.1*float64(w.ttl(kind))))
		case l.Closed && (!reported(l) || counted(l) > 0), l.Pending, w.dead(kind):
			sooner(k.now + max(k.cfg.SyncEvery, 2*k.rtt))
		case unborn(l) && k.standing(w) && kind == lease.Reserve:
			sooner(max(w.told[kind-1].notBefore, w.askAfter(), k.now+time.Second))
		}
	}
	return next
}

// active is how many budgets are looked at again and again.
func (k *Keeper) active() (n int) {
	for r := range k.order {
		n += len(k.order[r]) + k.busy[r]
	}
	return n
}

// lookEvery paces the looks at a budget in use, so that many budgets do not
// cost more reads than a store can bear.
func (k *Keeper) lookEvery(w *ward) time.Duration {
	every, elastic, around := k.cfg.SyncEvery, w.elastic(k.now), k.jitter
	if crowded := time.Duration(k.active()) * time.Second / looksPerSecond; crowded > every {
		most := mostSkipped
		if !elastic && w.budget.fixed {
			most = mostSkippedFixed
		}
		every = max(crowded, min(time.Duration(float64(crowded)*w.looksSkipped(crowded, most)), longestLook))
		if every > crowded {
			around = k.spread
		}
	}
	if !elastic {
		every = max(every, time.Second)
	}
	if !k.leader {
		every *= 4
	}
	return around(every)
}

const (
	// mostSkipped bounds looksSkipped: what nobody asks for, such as demand that
	// moved, the leader is to find within a beat or two on average. Where the region has a
	// fixed share there is nothing to find but what is to be booked as used.
	mostSkipped      = 4
	mostSkippedFixed = 16
	longestLook      = time.Minute // before it is spread
)

// looksSkipped is how many times as long as every it takes, most at the longest,
// until the budget's use is more than a small change to it. Where many others
// wait to be looked at there is nothing to find before; of a wallet that runs
// low, decisions tell.
func (w *ward) looksSkipped(every time.Duration, most int) float64 {
	used := max(1, w.demand.rate*every.Seconds())
	return max(1, min(float64(most), float64(small(w.budget))/used))
}
