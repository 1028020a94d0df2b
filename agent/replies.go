package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func (k *Keeper) onSyncDone(e SyncDone) {
	b := k.batches[e.ID]
	if b == nil {
		return
	}
	k.ended(b)
	if e.Err != nil {
		k.syncFailed(b)
		return
	}
	k.failures = 0
	if len(b.wards) != 1 || b.wards[0].item.Waiting == 0 {
		k.measure(e.Took) // the answer for a waiting caller may have been held back
	}
	byName := make(map[string]*lease.ItemReply, len(e.Reply.Items))
	for i := range e.Reply.Items {
		byName[e.Reply.Items[i].Budget] = &e.Reply.Items[i]
	}
	for _, w := range b.wards {
		if w.phase != sending || w.batch != b.id {
			continue
		}
		if r := byName[w.budget.Name]; r != nil {
			k.answered(w, r)
			continue
		}
		k.count(SyncFailed)
		k.fail(w)
	}
}

func (k *Keeper) count(r SyncResult) { k.cfg.Stats.Syncs[r].Add(1) }

// syncFailed knows nothing of the outcome: what is pending stays pending, and
// is sent again as it was until two round trips have passed. A leader that
// reaches no ledger lets another try.
func (k *Keeper) syncFailed(b *batch) {
	k.failures++
	for _, w := range b.wards {
		if w.phase != sending || w.batch != b.id {
			continue
		}
		k.count(SyncFailed)
		w.urgent = false
		k.fail(w)
		t := w.trouble.orNone()
		t.Unreachable, t.AskAfter = true, w.due
		w.troubled(t)
		k.tell(w)
	}
	if k.leader && k.failures%3 == 0 && !k.closing {
		k.leader = false
		k.leadAt = k.now + k.jitter(leadFor)
		k.do(Unlead{})
	}
}

// measure follows the round trip: quickly down, slowly up, because a reply
// may have been held back on purpose.
func (k *Keeper) measure(took time.Duration) {
	took = max(took, time.Microsecond)
	switch {
	case k.rtt == firstRTT:
		k.rtt = took
	case took < k.rtt:
		k.rtt -= (k.rtt - took) / 2
	default:
		k.rtt += (took - k.rtt) / 8
	}
	if k.rtt == firstRTT {
		k.rtt--
	}
}

// answered takes in the ledger's answer for one budget.
func (k *Keeper) answered(w *ward, r *lease.ItemReply) {
	t := w.trouble.orNone()
	t.Unreachable = false
	w.troubled(t)
	if r.Version > w.budget.Version {
		k.listAt = k.now
	}
	if r.Err != nil {
		k.refusedItem(w, r.Err)
		return
	}
	w.sentAt, w.sentDemand, w.sentVersion = k.now, w.item.Demand, r.Version
	k.heardLocals(w)
	k.learn(w, r.Leases)
	if len(r.Leases) == 0 {
		k.settled(w)
		return
	}
	k.enter(w, installing)
	k.do(InstallStates{Budget: w.budget.Name, States: r.Leases, Rank: w.rank()})
}

// heardLocals notes which local admissions the ledger has heard of.
func (k *Keeper) heardLocals(w *ward) {
	for _, u := range w.item.Local {
		if l := w.ownLocals(); u.Source == k.cfg.Process {
			l.sent = u.Total
		} else {
			l.nonce, l.storeSent = u.Source, u.Total
		}
	}
}

// refusedItem tells final errors from passing ones: nobody asks for ever for
// what the ledger does not serve.
func (k *Keeper) refusedItem(w *ward, err *lease.Error) {
	k.count(SyncRefused)
	w.urgent, w.waiting = false, 0
	switch err.Code {
	case lease.Unavailable, lease.Internal, lease.Denied:
		k.fail(w)
		if err.RetryAfter > 0 {
			k.sleep(w, k.now+k.jitter(err.RetryAfter))
		}
		t := w.trouble.orNone()
		t.AskAfter = w.due
		w.troubled(t)
		k.tell(w)
		return
	}
	w.final = true
	t := w.trouble.orNone()
	t.Final = err.Code
	w.troubled(t)
	k.listAt = min(k.listAt, k.now+k.jitter(listEvery))
	k.tell(w)
	k.sleep(w, 0)
	if k.closing {
		k.retire(w)
	}
}

// learn takes in what the states say beyond what install does with them.
func (k *Keeper) learn(w *ward, states []lease.State) {
	var lump, share *lease.State
	standsInTheWay, short, active := false, false, false
	for i := range states {
		s := &states[i]
		switch {
		case s.Kind < 1 || s.Kind > lease.Kinds:
			continue
		case s.Kind == lease.Lump:
			lump = s
		case s.Short != lease.Enough || share == nil:
			share = s
		}
		standsInTheWay = standsInTheWay || s.Holder != ""
		active = active || s.Status == lease.Active
		short = short || s.Status == lease.Active && s.Short != lease.Enough
		k.learnKind(w, s)
	}
	switch {
	case short:
		w.scarce = k.now + scarceFor
	case active:
		w.scarce = 0
	}
	k.learnRefusal(w, lump, share, standsInTheWay)
}

func (k *Keeper) learnKind(w *ward, s *lease.State) {
	t, refusals := &w.told[s.Kind-1], &w.refusals[s.Kind-1]
	switch s.Status {
	case lease.Ended:
		k.count(SyncEnded)
	case lease.NotPlanned:
		k.count(SyncNotPlanned)
		if s.Short != lease.Enough || s.Holder != "" { // planned, but not to be had yet
			t.notBefore, *refusals = k.now+k.jitter(min(s.RetryAfter, askAtLeast)), 0
			return
		}
		t.notBefore = k.now + k.jitter(s.RetryAfter<<*refusals)
		*refusals = min(*refusals+1, notPlannedDoublings)
	case lease.Active:
		t.ttl, t.notBefore, *refusals = s.TTL, 0, 0
		switch s.Kind {
		case lease.Lump:
			w.keep = s.Keep
		case lease.Paced:
			w.keepPaced = partOf(s.Keep, s.Beta)
		case lease.Reserve:
			w.fullReserve = s.Short == lease.Enough
		}
		if s.Short == lease.Enough {
			k.count(SyncActive)
			return
		}
		k.count(SyncShort)
	}
}

// learnRefusal keeps the ledger's refusal as evidence for denials. Where lumps
// are planned the lump's counts; elsewhere the share's. A region for which the
// plan holds nothing at all has its part, unless an earlier lease stands in
// the way of it. An answer without a word on lumps, because they were refused
// until later, leaves that refusal as it is.
func (k *Keeper) learnRefusal(w *ward, lump, share *lease.State, standsInTheWay bool) {
	noLumps := lump == nil || lump.Status == lease.NotPlanned && lump.Short == lease.Enough
	var why lease.Shortage
	var retry time.Duration
	switch {
	case !noLumps:
		why, retry = lump.Short, lump.RetryAfter
	case share != nil && share.Short != lease.Enough:
		why, retry = share.Short, share.RetryAfter
	case lump != nil && !standsInTheWay && (share == nil || share.Status == lease.NotPlanned) && !w.anyAlive():
		why, retry = lease.ShareReached, lump.RetryAfter
	}
	t := w.trouble.orNone()
	if lump == nil && why == lease.Enough && t.refused(k.now) && k.now < w.told[lease.Lump-1].notBefore {
		return
	}
	t.Refused, t.Until, t.Retry, t.AskAfter = why, 0, 0, 0
	if why != lease.Enough {
		t.Until = k.now + max(retry, refusalFor)
		again := w.askAgain()
		if retry > 0 {
			t.Retry, again = k.now+retry, min(max(retry, again), askAtLeast)
		}
		t.AskAfter = k.now + k.jitter(again)
	}
	w.troubled(t)
}

// askAgain is how long to wait after an answer that brought too little.
func (w *ward) askAgain() time.Duration { return w.demand.timeFor(askPart, askSoon, askAgain) }

func (w *ward) anyAlive() bool {
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		if w.alive(kind) {
			return true
		}
	}
	return false
}

func (k *Keeper) onInstalled(e StatesInstalled) {
	w := k.wards[e.Budget]
	if w == nil || w.phase != installing {
		return
	}
	if e.Err != nil {
		k.fail(w) // the sequence is pending still, and will be answered again
		return
	}
	before := w.view.Row.Leases
	w.seen(&e.Reply.View, k.now)
	if grew(&before, &w.view.Row.Leases) {
		w.urgent, w.waiting = false, 0 // who waits still is heard of again at once
	}
	for i, o := range e.Reply.Outcomes {
		if o == regionstore.OK {
			w.arrived = true
		}
		if i < len(w.item.Leases) && w.item.Leases[i].Kind == lease.Lump && !w.missing {
			l := w.lease(lease.Lump)
			w.hold = l.Granted - l.Used - l.Returned
		}
	}
	k.settled(w)
}

// settled ends a round that was answered: the deciding side hears of it, and
// the next look is planned.
func (k *Keeper) settled(w *ward) {
	w.failures = 0
	more := k.unfinished(w)
	if !more {
		k.holdOff(w)
	}
	w.urgent, w.waiting = false, 0
	k.tell(w)
	if k.closing || k.pressing(w) && k.wanted(w) {
		k.plan(w)
		return
	}
	if more {
		k.again(w)
		return
	}
	k.idle(w)
}

// grew reports whether any lease came to hold, or to mint, more than before.
func grew(before, now *[lease.Kinds]regionstore.Lease) bool {
	for i := range now {
		b, l := &before[i], &now[i]
		if l.Granted > b.Granted || l.Beta > b.Beta || l.X.Per != b.X.Per || l.X.Tokens > b.X.Tokens {
			return true
		}
	}
	return false
}

// holdOff says when to ask again, where that is later than now: after an answer
// that brought who asked nothing, and where region and ledger hold for each
// other what is planned, and no answer would bring more.
func (k *Keeper) holdOff(w *ward) {
	if w.missing || w.final {
		return
	}
	from := k.now + askFull
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		from = min(from, k.growsFrom(w, kind))
	}
	if w.urgent && w.budget.Wait == 0 { // else the ledger holds what it cannot serve yet
		from = max(from, k.now+k.jitter(w.askAgain()))
	}
	if t := w.trouble.orNone(); from > max(k.now, t.AskAfter) {
		t.AskAfter = from
		w.troubled(t)
	}
}

// unfinished reports whether the answer calls for another round at once: a
// lease ended, or stands in the way of a new one that may replace it.
func (k *Keeper) unfinished(w *ward) bool {
	if !k.wanted(w) || w.missing {
		return w.missing && k.wanted(w)
	}
	if k.reopens(w) {
		return true
	}
	for _, kind := range [...]lease.Kind{lease.Reserve, lease.Paced} {
		if k.regrants(w, kind) && w.lease(kind).Sent.Regrant != w.lease(kind).Lost {
			w.told[kind-1].notBefore = 0
			return true
		}
	}
	return false
}

func (k *Keeper) tell(w *ward) {
	h := Hint{Low: k.low(w), Trouble: w.trouble}
	k.do(Tell{Budget: w.budget.Name, Hint: h, Arrived: w.arrived})
	w.arrived, w.hinted = false, h != Hint{}
}
