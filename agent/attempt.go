package agent

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Pending is a decision that waits for tokens from afar. Its caller resumes
// it when Arrived is closed or the clock shows At, whichever comes first, and
// uses it no more after that.
type Pending struct {
	At      time.Duration
	Arrived <-chan struct{}

	check    Check
	entries  []*entry
	start    time.Duration
	giveUp   time.Duration
	waitsFor *entry
	// missing is set when the store knew nothing of the one budget.
	missing bool
}

// inVain reports whether p waited for a budget's first tokens to the end, and
// none were told of: then the store is not asked again.
func (p *Pending) inVain(now time.Duration) bool {
	select {
	case <-p.Arrived:
		return false
	default:
		return p.missing && now >= p.giveUp
	}
}

// leave takes p out of its entry's waiters.
func (p *Pending) leave() {
	if e := p.waitsFor; e != nil {
		p.waitsFor = nil
		e.lock()
		e.waiters--
		e.unlock()
	}
}

// lot is one budget's part of one attempt.
type lot struct {
	entry  *entry
	policy *terms
	cost   lease.Tokens
	hint   Hint
	// arrivals is the entry's count before the store was asked, so that tokens
	// that arrive meanwhile are not slept through.
	arrivals uint16
	// took is set once the lot has its tokens, in holds or spent for good.
	took   bool
	result regionstore.TakeResult
	// down is set when the store did not answer for it.
	down bool
	mode Mode
}

// attempt is one try at a decision that needs the store.
type attempt struct {
	d       *Decider
	p       *Pending
	now     time.Duration
	lots    []lot
	holds   []held
	content string
	// last is the group that is taken last, and so decides.
	last group
}

// identified reports whether a repetition of the request is to be recognized.
func (a *attempt) identified() bool { return a.p.check.RequestID != "" && a.p.check.Cost > 0 }

func (d *Decider) decideFar(ctx context.Context, c Check, matched []*entry, start time.Duration) (Answer, *Pending, error) {
	most := localWait
	for _, e := range matched {
		most = max(most, e.policy.Load().Wait)
	}
	patience := c.Deadline
	if patience == 0 { // a budget's wait is meant for callers who do not say how long they have
		patience = max(d.opt.Deadline, most)
	}
	if c.RequestID != "" { // a repetition may name the same budgets in another order
		slices.SortFunc(matched, func(x, y *entry) int { return byName(x.policy.Load(), y.policy.Load()) })
	}
	return d.attempt(ctx, &Pending{check: c, entries: matched, start: start, giveUp: start + min(patience, most)})
}

// attempt reads as a recipe: tokens from this process's memory, the rest from
// the store; all or none; on a shortage evidence, else waiting, else the
// failure mode.
func (d *Decider) attempt(ctx context.Context, p *Pending) (Answer, *Pending, error) {
	a := &attempt{d: d, p: p, now: d.opt.Now(), lots: make([]lot, len(p.entries))}
	for i, e := range p.entries {
		a.lots[i] = lot{entry: e, policy: e.policy.Load(), cost: p.check.cost(i), mode: FromStore}
	}
	a.fromPockets()
	if p.inVain(a.now) && !a.lots[0].took {
		a.lots[0].result.Outcome = regionstore.Missing
	} else if err := a.fromStore(ctx); err != nil {
		a.giveBack(ctx)
		return Answer{}, nil, err
	}
	answer, wait := a.conclude(ctx)
	if wait != nil {
		return Answer{}, wait, nil
	}
	d.count(p.start, answer)
	return answer, nil, nil
}

// fromPockets puts aside what this process already holds, unless the answer
// must come from the store.
func (a *attempt) fromPockets() {
	only := a.p.check.Cost > 0 && a.p.check.RequestID == ""
	for i := range a.lots {
		l := &a.lots[i]
		l.entry.lock()
		l.hint, l.arrivals = l.entry.hint, l.entry.arrivals
		if only {
			if h, ok := l.entry.pocket.hold(l.cost, a.now); ok {
				h.entry = l.entry
				a.holds = append(a.holds, h)
				l.took, l.mode = true, FromPrefetch
				l.result.Live = l.entry.last.Live
			}
		}
		l.entry.unlock()
	}
}

// group is the lots that one store step can decide.
type group struct {
	lots  []*lot
	limit lease.Tokens // the smallest contract among them
	// emptied is set once this process has given back its prefetch of the lots.
	emptied bool
}

// fromStore takes for the lots that have nothing yet. Over several slots each
// group but the last is held: the process marks them used once all succeeded,
// or gives them back. The last one, with the smallest limit because of a share
// little can be held, is simply taken. It alone carries the request's id, so
// that an answer is kept only once all budgets were charged.
func (a *attempt) fromStore(ctx context.Context) error {
	groups := a.groups()
	if len(groups) == 0 {
		return nil
	}
	a.last = groups[len(groups)-1]
	if len(groups) > 1 && a.identified() {
		if done, err := a.consult(ctx, 0); done || err != nil {
			return err
		}
	}
	for i, g := range groups {
		if err := a.take(ctx, g, i < len(groups)-1); err != nil {
			return err
		}
		for _, l := range g.lots {
			if !l.took && a.p.check.Cost > 0 {
				return nil
			}
		}
	}
	return nil
}

// consult looks for the answer kept under the request's id, and keeps this
// attempt's for as long as keep if there is none. It takes nothing. done is set
// when there is nothing to take any more, or nobody answered.
func (a *attempt) consult(ctx context.Context, keep time.Duration) (done bool, err error) {
	req := a.identify(regionstore.TakeRequest{Takes: make([]regionstore.Take, len(a.last.lots))}, keep)
	for i, l := range a.last.lots {
		req.Takes[i] = a.d.takeOf(l.entry, l.policy, 0, false, a.now)
	}
	reply, _, err := a.d.take(ctx, a.last.lots, req)
	switch {
	case err != nil:
		a.unanswered(a.last)
		return true, nil
	case reply.Conflict:
		return true, a.conflict()
	case reply.Replayed:
		a.replayed(ctx, a.last, &reply)
	}
	return reply.Replayed, nil
}

func (a *attempt) identify(req regionstore.TakeRequest, keep time.Duration) regionstore.TakeRequest {
	req.RequestID, req.Content, req.KeepAnswer = a.p.check.RequestID, a.fingerprint(), keep
	return req
}

func (a *attempt) conflict() error {
	return lease.Errorf(lease.Conflict, "request_id", "%q was used before to ask for something else", a.p.check.RequestID)
}

func (a *attempt) unanswered(g group) {
	for _, l := range g.lots {
		l.down = true
	}
}

// replayed takes in the answer that was kept under the request's id: all its
// budgets were charged then, and nothing is charged now.
func (a *attempt) replayed(ctx context.Context, g group, reply *regionstore.TakeReply) {
	a.giveBack(ctx)
	for i := range a.lots {
		l := &a.lots[i]
		l.took = true
		l.entry.lock()
		l.result.Live = l.entry.last.Live
		l.entry.unlock()
	}
	for i, l := range g.lots {
		l.result = reply.Results[i]
	}
}

func (a *attempt) groups() []group {
	var groups []group
	var slots []uint32
	for i := range a.lots {
		l := &a.lots[i]
		if l.took {
			continue
		}
		slot := a.d.opt.Store.Slot(l.policy.Name)
		at := slices.Index(slots, slot)
		if at < 0 {
			at, slots = len(slots), append(slots, slot)
			groups = append(groups, group{limit: lease.MaxTokens})
		}
		groups[at].lots = append(groups[at].lots, l)
		groups[at].limit = min(groups[at].limit, l.policy.Contract.Limit())
	}
	slices.SortStableFunc(groups, func(x, y group) int { return int(y.limit - x.limit) })
	return groups
}

// take is one atomic store step over the lots of one group.
func (a *attempt) take(ctx context.Context, g group, hold bool) error {
	req := a.request(g, hold)
	reply, sent, err := a.d.take(ctx, g.lots, req)
	switch {
	case err != nil:
		a.unanswered(g)
		if req.RequestID != "" && !errors.Is(err, errBreakerOpen) {
			// The answer may be kept: then what is held elsewhere belongs to it.
			a.d.discard(a.holds)
			a.holds = nil
		}
		return nil
	case reply.Conflict:
		return a.conflict()
	case reply.Replayed:
		a.replayed(ctx, g, &reply)
		return nil
	}
	got := a.d.opt.Now()
	for i, l := range g.lots {
		l.result = reply.Results[i]
		l.took = reply.Took && a.p.check.Cost > 0
		if l.took && hold {
			a.hold(l, sent, got)
		}
	}
	if !reply.Took && !g.emptied && a.p.check.Cost > 0 {
		a.retryAfterPocket(ctx, g, hold)
	}
	return nil
}

// retryAfterPocket gives this process's prefetch back and asks once more when
// only together with it the wallet has enough.
func (a *attempt) retryAfterPocket(ctx context.Context, g group, hold bool) {
	lots := make([]*entry, 0, len(g.lots))
	for _, l := range g.lots {
		l.entry.lock()
		in := l.entry.pocket.live(a.now)
		l.entry.unlock()
		switch {
		case l.result.Outcome == regionstore.OK:
		case in == 0 || l.result.Live+in < l.cost:
			return
		}
		if in > 0 {
			lots = append(lots, l.entry)
		}
	}
	if len(lots) == 0 {
		return
	}
	a.d.settle(ctx, a.d.opt.StoreDeadline, lots, true)
	g.emptied = true
	_ = a.take(ctx, g, hold) // its error, a conflict, would have been met before
}

// hold puts the held tokens of a lot aside, under the deadlines they carry.
func (a *attempt) hold(l *lot, sent, got time.Duration) {
	e := l.entry
	e.lock()
	defer e.unlock()
	first := len(e.pocket.parts)
	e.pocket.add(l.result.Parts, sent, got, true)
	for _, q := range e.pocket.parts[first:] {
		a.holds = append(a.holds, held{entry: e, part: q, tokens: q.held})
	}
}

func (a *attempt) request(g group, hold bool) regionstore.TakeRequest {
	req := regionstore.TakeRequest{Hold: hold, Takes: make([]regionstore.Take, len(g.lots))}
	if a.identified() && !hold {
		req = a.identify(req, a.d.opt.KeepAnswers)
	}
	for i, l := range g.lots {
		req.Takes[i] = a.d.takeOf(l.entry, l.policy, l.cost, !hold && !a.identified() && a.p.check.Cost > 0, a.now)
	}
	return req
}

// fingerprint identifies what a request id was first used to ask for.
func (a *attempt) fingerprint() string {
	if a.content != "" {
		return a.content
	}
	names := make([]string, len(a.lots))
	for i := range a.lots {
		names[i] = a.lots[i].policy.Name
	}
	slices.Sort(names)
	var b strings.Builder
	b.WriteString(strconv.FormatInt(int64(a.p.check.Cost), 10))
	for _, n := range names {
		b.WriteByte(' ')
		b.WriteString(strconv.Quote(n))
	}
	a.content = b.String()
	return a.content
}

// giveBack frees what was put aside. What came from the store for this
// decision alone goes back at once.
func (a *attempt) giveBack(ctx context.Context) {
	if len(a.holds) == 0 {
		return
	}
	release(a.holds, false)
	entries := make([]*entry, 0, len(a.holds))
	for i := range a.holds {
		entries = append(entries, a.holds[i].entry)
	}
	a.holds = nil
	for i := range a.lots {
		a.lots[i].took = false
	}
	a.d.settle(ctx, a.d.opt.StoreDeadline, entries, false)
}
