package agent

import (
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// A ward's round: read the row; open, return or close what needs it; begin,
// send, install. Begin stands before send, so that a crash anywhere leaves a
// pending sequence that any agent sends again exactly as it was.

func (k *Keeper) onRowsRead(e RowsRead) {
	for i, name := range e.Budgets {
		w := k.wards[name]
		if w == nil || w.phase != reading {
			continue
		}
		if e.Err != nil {
			k.fail(w)
			continue
		}
		w.seen(&e.Views[i], k.now)
		k.plan(w)
	}
}

// fail ends a round that an error broke.
func (k *Keeper) fail(w *ward) {
	w.failures++
	if k.closing && w.failures > 5 {
		k.retire(w)
		return
	}
	k.sleep(w, k.now+k.backoff(int(w.failures)))
}

// plan decides what the round does next, after its row was read or changed.
func (k *Keeper) plan(w *ward) {
	switch {
	case k.closing:
		k.planClose(w)
	case w.missing:
		if k.wanted(w) && (k.leader || w.urgent) {
			k.open(w)
			return
		}
		k.idle(w)
	case k.wanted(w) && (k.leader || w.urgent) && k.reopens(w):
		k.open(w)
	case k.leader && k.closeUnused(w):
	case k.leader && k.returnSurplus(w):
	case w.urgent && k.worthAsking(w):
		k.enter(w, gathering)
		k.press(w)
	case k.hasToSay(w):
		k.gather(w)
	default:
		k.idle(w)
	}
}

// open asks for the row, or for new incarnations in it.
func (k *Keeper) open(w *ward) {
	k.enter(w, opening)
	nonce := k.cfg.Nonce() // one for all, which a store may keep once
	req := regionstore.OpenRequest{Budget: w.budget.Name, LocalNonce: nonce + "0"}
	for i := range req.Nonces {
		req.Nonces[i] = lease.Incarnation(nonce + string(rune('1'+i)))
	}
	k.do(OpenRow{Request: req, Rank: w.rank()})
}

// reopens reports whether some kind needs a new incarnation and the store
// would give one.
func (k *Keeper) reopens(w *ward) bool {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		l := w.lease(kind)
		switch {
		case l.Incarnation == "", l.Ended:
			return true
		case l.Closed && reported(l) && counted(l) == 0:
			return true
		case l.Deadline != 0 && w.view.Time >= l.Deadline.Add(k.cfg.Clocks.Guard(lease.LongestProcessDeadline)):
			return true
		}
	}
	return false
}

func (k *Keeper) onRowOpened(e RowOpened) {
	w := k.wards[e.Budget]
	if w == nil || w.phase != opening {
		return
	}
	if e.Err != nil {
		k.fail(w)
		return
	}
	if e.Reply.Created {
		k.cfg.Stats.Opened.Add(1)
	}
	if e.Reply.Void {
		k.cfg.Stats.Voided.Add(1)
	}
	var before regionstore.Row
	if w.round != nil {
		before = w.view.Row
	}
	w.seen(&e.Reply.View, k.now)
	for i := range w.told {
		if w.view.Row.Leases[i].Incarnation != before.Leases[i].Incarnation {
			k.cfg.Stats.Incarnations.Add(1)
			w.told[i], w.refusals[i] = told{}, 0
			w.askNow()
			if lease.Kind(i+1) == lease.Lump {
				w.keep, w.hold = 0, 0
			}
		}
	}
	if k.reopens(w) { // the store thinks otherwise: look again later
		k.fail(w)
		return
	}
	k.plan(w)
}

// closeUnused fences what a budget that nobody uses still holds, other than
// its standing share, one lease at a time.
func (k *Keeper) closeUnused(w *ward) bool {
	if w.final || !w.budget.Deleted && (w.urgent || w.usedUntil > k.now) {
		return false
	}
	for _, kind := range [...]lease.Kind{lease.Lump, lease.Paced, lease.Reserve} {
		if kind == lease.Reserve && k.standing(w) {
			continue
		}
		if w.alive(kind) && !w.lease(kind).Closed {
			k.close(w, kind)
			return true
		}
	}
	return false
}

func (k *Keeper) close(w *ward, kind lease.Kind) {
	k.enter(w, changing)
	k.do(CloseLease{Request: regionstore.CloseRequest{
		Budget: w.budget.Name, Kind: kind, Incarnation: w.lease(kind).Incarnation,
	}})
}

// returnSurplus takes lump tokens that the ledger wants back, or that this
// region does not need while tokens are scarce, out of the wallet: first out,
// then reported.
func (k *Keeper) returnSurplus(w *ward) bool {
	if !w.alive(lease.Lump) {
		return false
	}
	keep := w.keep
	if w.told[lease.Lump-1].ttl == 0 {
		keep = lease.MaxTokens // this process has heard nothing yet
	}
	if k.now < w.scarce {
		keep = min(keep, w.demand.need(k.rtt, k.cfg.SyncEvery))
	}
	surplus := w.view.Live[lease.Lump-1] + counted(w.lease(lease.Lump)) - keep
	if surplus <= keep/8 || w.view.Live[lease.Lump-1] == 0 || w.waiting > 0 {
		return false
	}
	k.enter(w, changing)
	k.do(ReturnTokens{Request: regionstore.ReturnRequest{
		Budget: w.budget.Name, Incarnation: w.lease(lease.Lump).Incarnation, Keep: keep,
	}})
	return true
}

func (k *Keeper) onRowChanged(e RowChanged) {
	w := k.wards[e.Budget]
	if w == nil || w.phase != changing {
		return
	}
	if e.Err != nil || e.View.Outcome != regionstore.OK {
		k.fail(w)
		return
	}
	w.seen(e.View, k.now)
	k.plan(w)
}

// gather lets w wait for company before it begins: the deadline counts from
// begin, so that waiting comes first.
func (k *Keeper) gather(w *ward) {
	k.enter(w, gathering)
	w.gatherUntil = k.now
	if c := w.budget.Contract; !k.closing && (c.IsQuota() || !w.tiny() && float64(c.Burst) >= c.Rate.PerSecond()*gatherWhere.Seconds()) {
		w.gatherUntil += gatherFor
	}
	if k.pressing(w) {
		w.gatherUntil = min(w.gatherUntil, k.now+gatherNews)
	}
	k.gathering = append(k.gathering, w)
	k.gatherEnd = min(k.gatherUntil(), w.gatherUntil)
}

// press makes w ready to begin for somebody who waits.
func (k *Keeper) press(w *ward) {
	if len(k.pressed) == 0 {
		k.pressedAt = k.now
	}
	k.pressed = append(k.pressed, w)
}

// flush begins everything that is ready: the others once one of them cannot
// wait any more, urgent wards at once, unless many calls are under way for such:
// then they share one.
func (k *Keeper) flush() {
	if n := len(k.gathering); n > 0 && (k.now >= k.gatherUntil() || n >= maxItems) {
		k.begin(k.gathering, false)
		k.gathering, k.gatherEnd = nil, 0
	}
	if n := len(k.pressed); n > 0 && (k.urgentCalls < freeCalls || n >= maxItems || k.now >= k.pressedAt+gatherUrgent) {
		k.begin(k.pressed, true)
		k.pressed = nil
	}
}

// gatherUntil is when the first of those that gather cannot wait any more.
func (k *Keeper) gatherUntil() time.Duration {
	if k.gatherEnd == 0 {
		for i, w := range k.gathering {
			if i == 0 || w.gatherUntil < k.gatherEnd {
				k.gatherEnd = w.gatherUntil
			}
		}
	}
	return k.gatherEnd
}

// begin starts batches for these wards.
func (k *Keeper) begin(list []*ward, urgent bool) {
	for part := range slices.Chunk(list, maxItems) {
		k.lastID++
		b := &batch{id: k.lastID, urgent: urgent}
		k.batches[b.id] = b
		if urgent {
			k.urgentCalls++
		}
		for _, w := range part {
			b.unbegun++
			w.batch = b.id
			k.enter(w, beginning)
			k.do(BeginSync{Rank: w.rank(), Request: regionstore.BeginRequest{
				Budget: w.budget.Name, Intents: k.intents(w), MinAge: 2 * k.rtt,
			}})
		}
	}
}

// ended forgets a batch.
func (k *Keeper) ended(b *batch) {
	delete(k.batches, b.id)
	if b.urgent {
		k.urgentCalls--
	}
}

func (k *Keeper) onSyncBegun(e SyncBegun) {
	w := k.wards[e.Budget]
	if w == nil || w.phase != beginning {
		return
	}
	b := k.batches[w.batch]
	b.unbegun--
	switch {
	case e.Err != nil:
		k.fail(w)
	case !k.compose(w, e.Reply):
		k.again(w)
	default:
		k.enter(w, sending)
		b.wards = append(b.wards, w)
	}
	k.sendIfComplete(b)
}

// again looks at a row at once that was not what it was thought to be, but
// not for ever without a pause.
func (k *Keeper) again(w *ward) {
	w.failures++
	if w.failures > 3 {
		k.sleep(w, k.now+k.backoff(int(w.failures-3)))
		return
	}
	k.sleep(w, k.now+time.Millisecond)
}

// compose makes the item from what begin wrote, exactly. It reports false
// when there is nothing to send.
func (k *Keeper) compose(w *ward, reply *regionstore.BeginReply) bool {
	w.seen(&reply.View, k.now)
	item := &lease.Item{
		Budget: w.budget.Name, Demand: w.asked(), DemandTotal: w.view.Row.DemandTotal,
		RTT: k.measuredRTT(),
	}
	if w.budget.Wait > 0 || w.trouble.orNone().refused(k.now) {
		// The ledger may hold the answer back until tokens come. A caller that
		// knows nothing yet is served better by a quick refusal.
		item.Waiting = w.waiting
	}
	if item.Demand == 0 && w.waiting > 0 {
		item.Demand = float64(w.waiting)
	}
	for _, r := range reply.Reports {
		switch r.Outcome {
		case regionstore.Busy:
			k.cfg.Stats.Resumed.Add(1)
			item.Leases = append(item.Leases, r.Report)
		case regionstore.OK:
			item.Leases = append(item.Leases, r.Report)
		}
	}
	if n := w.view.Row.Local.Total; n > 0 && w.view.Row.Local.Nonce != "" {
		item.Local = append(item.Local, lease.LocalUse{Source: w.view.Row.Local.Nonce, Total: n})
	}
	if n := w.local(); n > 0 {
		item.Local = append(item.Local, lease.LocalUse{Source: k.cfg.Process, Total: n})
	}
	w.item = item
	return len(item.Leases) > 0 || len(item.Local) > 0
}

func (k *Keeper) measuredRTT() time.Duration {
	if k.rtt == firstRTT {
		return 0
	}
	return k.rtt
}

func (k *Keeper) sendIfComplete(b *batch) {
	if b.unbegun > 0 {
		return
	}
	if len(b.wards) == 0 {
		k.ended(b)
		return
	}
	items, rank := make([]lease.Item, 0, len(b.wards)), Routine
	for _, w := range b.wards {
		items, rank = append(items, *w.item), max(rank, w.rank())
	}
	k.cfg.Stats.SyncCalls.Add(1)
	k.do(SendSync{ID: b.id, Items: items, Timeout: max(2*time.Second, 4*k.rtt), Rank: rank})
}
