package agent

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The Keeper's pace.
const (
	// syncEvery is s, unless configured: how often a busy budget is looked at, and the
	// least time between two Syncs of it that nobody waits for.
	syncEvery = 100 * time.Millisecond
	// gatherFor is the longest that Syncs wait for one another, where a budget's
	// bucket lasts gatherWhere or more.
	gatherFor   = 250 * time.Millisecond
	gatherWhere = time.Second
	// gatherNews is how long news that moves tokens waits.
	gatherNews = 20 * time.Millisecond
	listEvery  = time.Second
	leadEvery  = time.Second
	leadFor    = 3 * time.Second
	usedEvery  = 2 * time.Second
	usedFor    = 10 * time.Second
	// rarelyUsedFor is the same, at most, for a budget of few tokens.
	rarelyUsedFor = 30 * time.Second
	// disusedFor is for how long after its last use a leader may yet have to close a
	// budget's leases, generously: looks at very many budgets come late, and one too
	// many costs a row read.
	disusedFor = 5 * time.Minute
	// shareBeat is how often a budget that only has a share reports its use.
	shareBeat = 10 * time.Second
	// refusalFor is how long a refusal without a hint counts as evidence.
	refusalFor = time.Second
	// scarceFor is how long tokens are thought to be short after a short answer.
	scarceFor = 2 * time.Second
	// askAgain is when to ask again after a refusal without a hint, askSoon the
	// same for a budget so busy that askPart more requests pass meanwhile, and
	// askAtLeast the longest that a hint is heeded: tokens may come back from
	// other regions at any time.
	askAgain   = 100 * time.Millisecond
	askSoon    = 40 * time.Millisecond
	askPart    = 20
	askAtLeast = 5 * time.Second
	// askFull is when to look again where all that is planned is held.
	askFull = time.Second

	// notPlannedDoublings is how often the time to ask again doubles for a kind
	// that the plan does not hold here at all.
	notPlannedDoublings = 5

	// looksPerSecond and beatsPerSecond bound what a region of very many active
	// budgets asks of its store and of the ledger when nothing presses. A look
	// costs the store about what a decision does, and a beat three times that, so
	// they are to be a small part of what the store can do.
	looksPerSecond = 2_500
	beatsPerSecond = 1_000

	firstRTT     = 250 * time.Millisecond
	shortestRTT  = 10 * time.Millisecond
	firstBackoff = 50 * time.Millisecond
	mostBackoff  = 5 * time.Second

	maxRead  = 256  // rows in one read
	maxBusy  = 1000 // wards in a round at once that nobody waits for
	maxBeats = 128  // the same, while somebody waits for first tokens
	maxFirst = 256  // wards in a round at once that get their first tokens
	maxItems = 500  // budgets in one Sync
	// freeCalls is how many Syncs that somebody waits for are under way before
	// the next ones gather, for gatherUrgent at the longest.
	freeCalls    = 4
	gatherUrgent = 5 * time.Millisecond
	stopFor      = 5 * time.Second
)

// KeeperConfig configures a Keeper.
type KeeperConfig struct {
	// Region is this region's name, to know which shares are planned for it.
	Region string
	// Process names this process's local admissions.
	Process string
	Clocks  lease.Clocks
	// Rand is used for jitter only, Nonce for names of leases, which must never
	// repeat across all processes and times.
	Rand  *rand.Rand
	Nonce func() string
	Stats *Stats
	// SyncEvery is how often a busy budget is looked at, and the least time
	// between two Syncs of it that nobody waits for; 0 takes 100 ms.
	SyncEvery time.Duration
}

// Keeper keeps the region's wallets filled. It is a step machine: Step takes
// the time and what happened, and returns what to do and when to wake it. It
// knows no goroutine, timer, socket or store, and no safety rests on it: what
// it does wrong costs tokens, not promises. Not safe for concurrent use.
type Keeper struct {
	cfg KeeperConfig
	now time.Duration
	out []Effect
	// listed are the listed budgets, sorted by name and replaced, never changed;
	// wards those of them that there is more to know of: the region uses them, or
	// holds something of theirs.
	listed []*terms
	wards  map[string]*ward
	maker  termsMaker
	// order is by rank: what many budgets want at once hides nothing that is more
	// urgent, or due by the clock. busy counts the wards that left each for a
	// round.
	order   [ranks]wards
	busy    [ranks]int
	rested  []*ward // in this step
	version uint64

	batches map[uint64]*batch
	lastID  uint64
	// gathering are wards that have something to say and wait for company, until
	// gatherEnd; 0 where that is to be found out.
	gathering []*ward
	gatherEnd time.Duration
	// pressed are those that begin for somebody who waits, the first of them since
	// pressedAt; urgentCalls counts the batches of such.
	pressed     []*ward
	pressedAt   time.Duration
	urgentCalls int

	rtt      time.Duration
	failures int // of Syncs, in a row

	listAt, leadAt, usedAt time.Duration
	listing                bool
	leader                 bool
	// inherits is set until who leads, or leaves last, has seen what earlier
	// leaders may have left open.
	inherits bool
	// heard is set once the budgets were listed.
	heard bool

	// last is set once this process left as the region's last one.
	stopping, last, closing, stopped bool
	stopAt                           time.Duration
	// toClose counts the wards that are not yet done with their last round.
	toClose int
}

// batch is one SyncLeases call in the making.
type batch struct {
	id      uint64
	wards   []*ward // those whose items are to be sent
	unbegun int     // those whose begin is still under way
	urgent  bool    // somebody waits for it
}

// NewKeeper returns a Keeper that has done nothing yet; step it with a Tick.
func NewKeeper(cfg KeeperConfig) *Keeper {
	if cfg.Stats == nil {
		cfg.Stats = &Stats{}
	}
	if cfg.Clocks == (lease.Clocks{}) {
		cfg.Clocks = lease.DefaultClocks()
	}
	if cfg.SyncEvery <= 0 {
		cfg.SyncEvery = syncEvery
	}
	return &Keeper{
		cfg: cfg, maker: termsMaker{region: cfg.Region},
		wards: map[string]*ward{}, batches: map[uint64]*batch{}, rtt: firstRTT,
	}
}

// Step takes in ev at now, on the process's monotonic clock, and returns what
// to do and when to step again with a Tick at the latest. The effects are the
// caller's to keep.
func (k *Keeper) Step(now time.Duration, ev Event) (effects []Effect, wake time.Duration) {
	k.now = max(k.now, now)
	k.out = nil
	if k.stopped {
		return nil, k.now + time.Hour
	}
	k.handle(ev)
	k.housekeeping()
	k.look()
	k.flush()
	k.putToRest()
	return k.out, k.wake()
}

func (k *Keeper) do(f Effect) { k.out = append(k.out, f) }

func (k *Keeper) handle(ev Event) {
	switch e := ev.(type) {
	case Listed:
		k.onListed(e)
	case Urgent:
		k.onUrgent(e)
	case RowsRead:
		k.onRowsRead(e)
	case RowOpened:
		k.onRowOpened(e)
	case RowChanged:
		k.onRowChanged(e)
	case SyncBegun:
		k.onSyncBegun(e)
	case SyncDone:
		k.onSyncDone(e)
	case StatesInstalled:
		k.onInstalled(e)
	case Led:
		k.onLed(e)
	case InUse:
		k.onInUse(e)
	case Disused:
		k.onDisused(e)
	case Used:
		k.onUsed(e)
	case Stopping:
		k.onStopping()
	case Left:
		k.onLeft(e)
	}
}

// housekeeping is what happens by the clock alone.
func (k *Keeper) housekeeping() {
	if k.stopping {
		if k.now >= k.stopAt {
			k.stop()
		}
		return
	}
	if k.now >= k.listAt && !k.listing {
		k.listing = true
		k.do(ListBudgets{Since: k.version})
	}
	if k.now >= k.leadAt {
		k.leadAt = k.now + k.jitter(leadEvery)
		k.do(Lead{TTL: leadFor})
	}
	if k.now >= k.usedAt {
		k.usedAt = k.now + k.jitter(usedEvery)
		k.do(Join{TTL: usedFor})
		k.do(AskUsed{})
		if k.leader {
			k.do(ListInUse{})
		}
	}
}

// look reads the rows that are due, in bounded batches, as long as not too
// many rounds are under way.
func (k *Keeper) look() {
	for r := ranks; r > 0; r-- {
		k.lookAt(r - 1)
	}
}

func (k *Keeper) lookAt(r Rank) {
	order := &k.order[r]
	if len(*order) == 0 || (*order)[0].due > k.now {
		return
	}
	// Those due soon come along: they share a read, and then a Sync.
	soon := k.now + k.cfg.SyncEvery/4
	var names []string
	for len(*order) > 0 && (*order)[0].due <= soon && k.room(r) {
		w := heap.Pop(order).(*ward)
		w.due = 0
		if w.urgent && (w.viewAt == 0 || w.missing) && k.wanted(w) {
			k.open(w) // which reads it too, should somebody have made it since
			continue
		}
		k.enter(w, reading)
		names = append(names, w.budget.Name)
		if len(names) == maxRead {
			k.do(ReadRows{Budgets: names, Rank: r})
			names = nil
		}
	}
	if len(names) > 0 {
		k.do(ReadRows{Budgets: names, Rank: r})
	}
}

// room reports whether another ward of this rank may begin a round.
func (k *Keeper) room(r Rank) bool {
	switch r {
	case Routine:
		if k.busy[FirstTokens] > 0 {
			return k.busy[r] < maxBeats
		}
		return k.busy[r] < maxBusy
	case FirstTokens:
		return k.busy[r] < maxFirst
	}
	return true
}

// enter moves w to a phase and counts how many are not at rest.
func (k *Keeper) enter(w *ward, p phase) {
	if w.phase == resting && p != resting {
		k.busy[w.queue]++
	}
	if w.phase != resting && p == resting {
		k.busy[w.queue]--
	}
	w.phase = p
}

// putToRest drops what wards that came to rest in this step needed for their
// rounds.
func (k *Keeper) putToRest() {
	for _, w := range k.rested {
		if w.phase == resting {
			w.round = nil
		}
	}
	clear(k.rested)
	k.rested = k.rested[:0]
}

// sleep ends w's round; it is looked at again at due, or, with 0, when
// something happens.
func (k *Keeper) sleep(w *ward, due time.Duration) {
	k.enter(w, resting)
	k.rested = append(k.rested, w)
	if due == 0 && k.forgettable(w) {
		due = k.dismiss(w)
	}
	if w.gone {
		delete(k.wards, w.budget.Name)
		due = 0
	}
	if due != 0 {
		due = max(due, k.now, 1)
	}
	k.schedule(w, due)
}

// forgettable reports whether a ward that waits for something to happen knows
// nothing that a new one would not find out. Agents that do not lead have no part
// in what others use.
func (k *Keeper) forgettable(w *ward) bool {
	return !k.stopping && !w.urgent && !w.gone && !w.final && !k.standing(w) && !w.localUnsaid() &&
		w.ownUntil <= k.now && (!k.leader || w.usedUntil <= k.now)
}

// dismiss forgets a ward, and lets the deciding side forget what it was told. A
// refusal is worth remembering for as long as it counts, and demand for as long as
// it is averaged, or rare requests would each be the first: then it returns when
// to look again.
func (k *Keeper) dismiss(w *ward) (due time.Duration) {
	if t := w.trouble.orNone(); t.refused(k.now) {
		return t.Until
	}
	if until := max(w.usedUntil, w.ownUntil) + demandMemory; until > k.now && w.demand.rate > 0 {
		return until
	}
	delete(k.wards, w.budget.Name)
	if w.hinted {
		k.do(Tell{Budget: w.budget.Name})
	}
	return 0
}

// hurry makes a resting ward due now.
func (k *Keeper) hurry(w *ward) {
	if !w.final && w.phase == resting && (w.due == 0 || w.due > k.now || w.queue != w.rank()) {
		k.schedule(w, max(k.now, 1))
	}
}

func (k *Keeper) wake() time.Duration {
	wake := min(k.leadAt, k.usedAt)
	if !k.listing {
		wake = min(wake, k.listAt)
	}
	if k.stopping {
		wake = k.stopAt
	}
	for r := range k.order {
		if len(k.order[r]) > 0 && k.room(Rank(r)) {
			wake = min(wake, k.order[r][0].due)
		}
	}
	if len(k.gathering) > 0 {
		wake = min(wake, k.gatherUntil())
	}
	if len(k.pressed) > 0 {
		wake = min(wake, k.pressedAt+gatherUrgent)
	}
	return max(wake, k.now)
}

// jitter spreads d over [0.75 d, 1.25 d).
func (k *Keeper) jitter(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.75 + k.cfg.Rand.Float64()/2))
}

// spread is over [0.5 d, 1.5 d): those that began together are not looked at
// together for long.
func (k *Keeper) spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (0.5 + k.cfg.Rand.Float64()))
}

// backoff is the pause after so many failures in a row.
func (k *Keeper) backoff(failures int) time.Duration {
	return k.jitter(min(firstBackoff<<min(max(failures-1, 0), 10), mostBackoff))
}

func (k *Keeper) onListed(e Listed) {
	k.listing = false
	k.listAt = k.now + k.jitter(listEvery)
	if e.Err != nil {
		return
	}
	k.version = e.List.Version
	if !k.apply(e.List) && k.heard {
		return
	}
	k.heard = true
	k.do(SetBudgets{Budgets: k.listed})
}

// apply takes in a list and reports whether anything changed.
func (k *Keeper) apply(list policy.List) (changed bool) {
	var renewed []*terms
	all := make([]*terms, 0, len(list.Budgets))
	for i := range list.Budgets {
		b := &list.Budgets[i]
		t := find(k.listed, b.Name)
		if t == nil || t.Version != b.Version {
			t = k.maker.terms(b)
			renewed = append(renewed, t)
		}
		all = append(all, t)
	}
	old := k.listed
	slices.SortFunc(all, byName)
	switch {
	case list.Full:
		k.listed = all
	case len(renewed) > 0:
		k.listed = merged(old, all)
	}
	for _, t := range renewed {
		k.renew(t)
	}
	return list.Full && k.forgetUnlisted(old) || len(renewed) > 0
}

// forgetUnlisted forgets the wards of those that are listed no more, and reports
// whether there are any.
func (k *Keeper) forgetUnlisted(old []*terms) (some bool) {
	for _, t := range old {
		if find(k.listed, t.Name) != nil {
			continue
		}
		some = true
		if w := k.wards[t.Name]; w != nil {
			k.forget(w)
		}
	}
	return some
}

// ward returns a listed budget's ward, made if there is none, or nil.
func (k *Keeper) ward(budget string) *ward {
	if w := k.wards[budget]; w != nil {
		return w
	}
	t := find(k.listed, budget)
	if t == nil {
		return nil
	}
	w := &ward{at: -1, budget: t}
	k.wards[t.Name] = w
	return w
}

// renew gives a ward its new policy: what the ledger said under the old one
// no longer counts. The leader looks at every budget that is new; of those that
// it begins with, at what it looks at when it begins to lead.
func (k *Keeper) renew(t *terms) {
	w := k.wards[t.Name]
	if w == nil && k.leader && (k.heard || t.planned) {
		w = k.ward(t.Name)
	}
	if w == nil {
		return
	}
	w.budget, w.gone, w.final = t, false, false
	w.trouble, w.scarce = nil, 0
	for i := range w.told {
		w.told[i].notBefore, w.refusals[i] = 0, 0
	}
	if k.leader && w.phase == resting {
		k.soon(w)
	}
}

// soon makes a resting ward due within a short, random time, so that many of
// them do not ask in one instant.
func (k *Keeper) soon(w *ward) {
	k.schedule(w, k.now+1+time.Duration(k.cfg.Rand.Float64()*float64(k.cfg.SyncEvery)))
}

// forget drops a ward that is listed no more, once it rests: the answer to
// what is under way is waited for.
func (k *Keeper) forget(w *ward) {
	w.gone, w.final = true, true
	w.usedUntil, w.ownUntil = 0, 0
	if w.phase == resting {
		k.sleep(w, 0)
	}
}

// standing reports whether the region holds a share of the budget whether or
// not anybody asks.
func (k *Keeper) standing(w *ward) bool { return !w.final && w.budget.planned }

// wanted reports whether the region has any use for the budget now.
func (k *Keeper) wanted(w *ward) bool {
	return !w.final && !k.closing && !w.budget.Deleted && (w.urgent || w.usedUntil > k.now || k.standing(w))
}

func (k *Keeper) onUrgent(e Urgent) {
	w := k.ward(e.Budget)
	if w == nil || w.final || k.stopping {
		return
	}
	w.usedUntil = max(w.usedUntil, k.now+w.usedFor())
	w.ownUntil = max(w.ownUntil, k.now+usedFor)
	w.waiting = max(w.waiting, e.Cost)
	if after := w.askAfter(); k.now < after && !e.Missing {
		if w.phase == resting && (w.due == 0 || w.due > after) {
			k.schedule(w, after)
		}
		return
	}
	w.urgent = true
	k.hurry(w)
	if w.phase != gathering {
		return
	}
	if i := slices.Index(k.gathering, w); i >= 0 {
		k.gathering, k.gatherEnd = slices.Delete(k.gathering, i, i+1), 0
		k.press(w)
	}
}

func (k *Keeper) onLed(e Led) {
	was := k.leader
	k.leader = e.OK
	if was || !k.leader || k.stopping {
		return
	}
	k.inherits = true
	k.do(ListInUse{})
	for _, t := range k.listed {
		if !t.planned {
			continue
		}
		if w := k.ward(t.Name); k.standing(w) && w.phase == resting {
			k.soon(w)
		}
	}
}

func (k *Keeper) onInUse(e InUse) {
	for _, name := range e.Budgets {
		w := k.ward(name)
		if w == nil {
			continue
		}
		idle := w.usedUntil <= k.now
		w.usedUntil = max(w.usedUntil, k.now+w.usedFor())
		if idle || k.stopping {
			k.hurry(w)
		}
	}
	if k.inherits && (e.Err == nil || k.last) {
		k.inherits = false
		k.do(ListDisused{Within: disusedFor})
	}
}

// onDisused looks at what nobody uses any more, and an earlier leader may not
// have closed. It comes behind the list of what is in use: what is in neither
// has come into use since.
func (k *Keeper) onDisused(e Disused) {
	for _, name := range e.Budgets {
		if w := k.ward(name); w != nil && w.usedUntil <= k.now {
			w.usedUntil = k.now
			k.hurry(w)
		}
	}
	if k.inherits {
		return // what is in use is being asked again
	}
	k.inherits = e.Err != nil && !k.last
	if k.last && !k.closing {
		k.closeAll()
	}
}

func (k *Keeper) onUsed(e Used) {
	own := e.Budgets[:0] // of very many, which a copy of would be as many again
	for _, name := range e.Budgets {
		w := k.ward(name)
		if w == nil {
			continue
		}
		own = append(own, name)
		idle := w.ownUntil <= k.now
		w.usedUntil, w.ownUntil = max(w.usedUntil, k.now+w.usedFor()), k.now+usedFor
		if idle {
			k.hurry(w)
		}
	}
	for name, total := range e.Locals {
		if w := k.ward(name); w != nil && total > w.local() {
			w.ownLocals().total = total
			k.hurry(w)
		}
	}
	if len(own) > 0 && !k.stopping {
		k.do(TouchBudgets{Budgets: own, TTL: usedFor})
	}
}
