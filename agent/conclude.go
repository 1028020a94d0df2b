package agent

import (
	"context"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// conclude turns what the pockets and the store said into an answer, or into
// a wait.
func (a *attempt) conclude(ctx context.Context) (Answer, *Pending) {
	if a.p.check.Cost == 0 {
		return a.peek(), nil
	}
	if a.complete() {
		return a.commit(), nil
	}
	short := a.short()
	a.giveBack(ctx)
	a.askForMore(short)
	answer, ok := a.deny(short)
	wait := a.patience(short)
	switch {
	case ok && wait == 0:
		return answer, nil
	case a.now < a.p.giveUp && a.canWait(short, ok):
		if p := a.wait(short[0], wait); p != nil {
			return Answer{}, p
		}
	}
	if ok {
		return answer, nil
	}
	return a.failureMode(ctx, short), nil
}

func (a *attempt) complete() bool {
	for i := range a.lots {
		if !a.lots[i].took {
			return false
		}
	}
	return true
}

// commit marks everything used. The clock is read after the last token was
// taken, and what is late is dropped: then the other budgets' tokens are lost
// too, which is safe.
func (a *attempt) commit() Answer {
	now := a.d.opt.Now()
	if late(a.holds, now) {
		a.d.discard(a.holds)
		return unavailable(a.d.answer(a.holds[0].entry, now, 0), FromStore, reasonStore, 0)
	}
	release(a.holds, true)
	mode := FromPrefetch
	for i := range a.lots {
		if l := &a.lots[i]; l.mode != FromPrefetch {
			mode = l.mode
			a.d.askIfLow(l.entry, &l.result, now)
		}
	}
	return allowed(a.least(now), mode)
}

// least answers for the budget with the least remaining.
func (a *attempt) least(now time.Duration) Answer {
	var least Answer
	for i := range a.lots {
		x := a.d.answer(a.lots[i].entry, now, a.remaining(&a.lots[i], now))
		if i == 0 || x.Remaining < least.Remaining {
			least = x
		}
	}
	return least
}

func (a *attempt) remaining(l *lot, now time.Duration) lease.Tokens {
	l.entry.lock()
	defer l.entry.unlock()
	return l.result.Live + l.entry.pocket.live(now)
}

// peek charges nothing: it says whether a cost of 1 could pass now.
func (a *attempt) peek() Answer {
	for i := range a.lots {
		l := &a.lots[i]
		if a.remaining(l, a.now) >= 1 {
			continue
		}
		x := a.d.answer(l.entry, a.now, 0)
		reason, retry, ok := evidence(l.hint.Trouble.orNone(), &l.result, 1, a.now)
		switch {
		case ok:
			return denied(x, FromStore, reason, retry)
		case l.down:
			return unavailable(x, FromStore, reasonStore, 0)
		}
		a.ask(l, 1)
		return unavailable(x, FromStore, reasonNoLease, 0)
	}
	x := allowed(a.least(a.now), FromStore)
	x.Reason = reasonPeek
	return x
}

// short lists the lots that stand in the way: those that the store did not
// answer for, or that had too little. A lot that was never asked, because an
// earlier slot refused, does not.
func (a *attempt) short() []*lot {
	var short []*lot
	for i := range a.lots {
		l := &a.lots[i]
		if l.down || l.result.Outcome == regionstore.Short || l.result.Outcome == regionstore.Missing {
			short = append(short, l)
		}
	}
	return short
}

// deny answers for the first budget whose shortage is a quota denial, on
// evidence, and remembers it.
func (a *attempt) deny(short []*lot) (Answer, bool) {
	for _, l := range short {
		if l.down {
			continue
		}
		reason, retry, ok := evidence(l.hint.Trouble.orNone(), &l.result, l.cost, a.now)
		if !ok {
			continue
		}
		x := denied(a.d.answer(l.entry, a.now, a.remaining(l, a.now)), FromStore, reason, retry)
		l.entry.remember(l.cost, a.now, x)
		return x, true
	}
	return Answer{}, false
}

// patience is how long a budget's owner lets a decision wait even when it was
// refused: the longest of the budgets that are short, 0 if none has any.
func (a *attempt) patience(short []*lot) time.Duration {
	var longest time.Duration
	for _, l := range short {
		longest = max(longest, l.policy.Wait)
	}
	return longest
}

// canWait says whether waiting may help: never for a store that is down or a
// budget that the ledger does not serve. refused ones wait only as their
// owner says.
func (a *attempt) canWait(short []*lot, refused bool) bool {
	for _, l := range short {
		if t := l.hint.Trouble.orNone(); l.down || t.Final != 0 || t.Unreachable {
			return false
		}
		if refused && l.policy.Wait > 0 && a.now-a.p.start >= l.policy.Wait {
			return false
		}
	}
	return len(short) > 0
}

// wait enters the decision among those that wait for l, or returns nil when
// too many do.
func (a *attempt) wait(l *lot, patience time.Duration) *Pending {
	e := l.entry
	e.lock()
	defer e.unlock()
	if e.waiters >= maxWaiters {
		a.d.stats.WaitersRefused.Add(1)
		return nil
	}
	e.waiters++
	p := *a.p
	p.waitsFor, p.At = e, p.giveUp
	p.missing = len(a.lots) == 1 && l.result.Outcome == regionstore.Missing
	if l.result.Pending || len(a.lots) > 1 {
		p.At = min(p.At, a.now+pollEvery)
	}
	if mints := l.result.MintIn; patience > 0 && mints > 0 {
		p.At = min(p.At, a.now+max(mints, time.Millisecond))
	}
	if e.arrivals != l.arrivals {
		p.Arrived = closedChan()
	} else {
		p.Arrived = e.waitChan()
	}
	return &p
}

func closedChan() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}

// askForMore asks for an urgent Sync of every budget that is short and whose
// wallet a Sync could fill.
func (a *attempt) askForMore(short []*lot) {
	for _, l := range short {
		missing := l.result.Outcome == regionstore.Missing
		if t := l.hint.Trouble.orNone(); !l.down && t.Final == 0 && (missing || a.now >= t.AskAfter) {
			a.ask(l, l.cost)
		}
	}
}

// askEvery keeps many decisions of one budget from asking for the same thing.
const askEvery = 5 * time.Millisecond

func (a *attempt) ask(l *lot, cost lease.Tokens) {
	a.d.ask(l.entry, cost, l.result.Outcome == regionstore.Missing, a.now)
}

// askIfLow asks for a Sync when the wallet has sunk below its low mark.
func (d *Decider) askIfLow(e *entry, r *regionstore.TakeResult, now time.Duration) {
	e.lock()
	hint := e.hint
	e.unlock()
	if hint.Low > 0 && r.Live < hint.Low && !r.Pending && now >= hint.Trouble.orNone().AskAfter {
		d.ask(e, 0, false, now)
	}
}

func (d *Decider) ask(e *entry, cost lease.Tokens, missing bool, now time.Duration) {
	e.lock()
	again := e.asked > 0 && now-e.asked < askEvery
	if !again {
		e.asked = now
	}
	e.unlock()
	if !again {
		d.urgent(Urgent{Budget: e.policy.Load().Name, Cost: cost, Missing: missing})
	}
}

// failureMode decides when shares and lumps have run out and the ledger has
// not refused: every budget that is short must allow locally, and all others
// must have their tokens.
func (a *attempt) failureMode(ctx context.Context, short []*lot) Answer {
	for _, l := range short {
		if l.policy.OnFailure.Mode != policy.AllowLocal {
			return a.noDecision(l)
		}
	}
	short, answer, ok := a.holdOthers(ctx, short)
	if !ok {
		a.giveBack(ctx)
		return answer
	}
	var spent []*lot
	for _, l := range short {
		ok, retry := a.d.takeLocal(ctx, l)
		if !ok {
			a.d.creditLocal(spent)
			a.giveBack(ctx)
			x := a.d.answer(l.entry, a.now, 0)
			return unavailable(x, FromLocal, reasonLocalEmpty, retry)
		}
		l.took, l.mode = true, FromLocal
		spent = append(spent, l)
	}
	return a.commitLocal(ctx, spent)
}

func (a *attempt) commitLocal(ctx context.Context, spent []*lot) Answer {
	x := a.commit()
	if x.Outcome != Allowed {
		a.d.creditLocal(spent)
		return x
	}
	if a.identified() && !a.last.lots[0].down {
		_, _ = a.consult(ctx, a.d.opt.KeepAnswers) // without it, a repetition is admitted as this one was
	}
	x.Mode, x.Reason = FromLocal, reasonLocal
	return x
}

// holdOthers takes again, but held, for the lots that are not short: a local
// allowance may still refuse. A lot that turns out to be short joins them, if
// it may; otherwise its answer stands.
func (a *attempt) holdOthers(ctx context.Context, short []*lot) ([]*lot, Answer, bool) {
	for i := range a.lots {
		l := &a.lots[i]
		if slices.Contains(short, l) {
			continue
		}
		_ = a.take(ctx, group{lots: []*lot{l}}, true)
		if l.took {
			continue
		}
		if answer, ok := a.deny([]*lot{l}); ok {
			return nil, answer, false
		}
		if l.policy.OnFailure.Mode != policy.AllowLocal {
			return nil, a.noDecision(l), false
		}
		short = append(short, l)
	}
	return short, Answer{}, true
}

func (a *attempt) noDecision(l *lot) Answer {
	x := a.d.answer(l.entry, a.now, a.remaining(l, a.now))
	if l.down {
		return unavailable(x, FromStore, reasonStore, 0)
	}
	return unavailable(x, FromStore, reasonNoLease, 0)
}
