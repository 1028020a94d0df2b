package agent

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Options configures an agent. The zero value of every field but Region,
// Process and Store works.
type Options struct {
	// Region is for reports only: who the caller is, the credential says.
	Region string
	// Process is a nonce of this process's life, 1 to 64 bytes; it names the
	// process in the store and its local admissions in the ledger.
	Process string
	Store   regionstore.Store
	// Clocks declares the deployment's clock errors.
	Clocks lease.Clocks
	// Now is the process's monotonic clock, from any origin; Wall the time of
	// day, used only to say when a quota's window ends.
	Now  func() time.Duration
	Wall func() time.Time
	// Deadline is for checks that give none; default 100 ms.
	Deadline time.Duration
	// StoreDeadline bounds each store call of a decision; default 5 ms, negative
	// for none, where the store is in this process's memory.
	StoreDeadline time.Duration
	// MaxAgents is how many processes a region may have: each gets that part of
	// a budget's local allowance when the store is down; default 8.
	MaxAgents int
	// KeepAnswers is how long a request id's answer is kept; default 60 s.
	KeepAnswers time.Duration
	Observer    Observer
}

func (o Options) withDefaults() Options {
	if o.Clocks == (lease.Clocks{}) {
		o.Clocks = lease.DefaultClocks()
	}
	if o.Now == nil {
		start := time.Now()
		o.Now = func() time.Duration { return time.Since(start) }
	}
	if o.Wall == nil {
		o.Wall = time.Now
	}
	if o.Deadline <= 0 {
		o.Deadline = 100 * time.Millisecond
	}
	if o.StoreDeadline == 0 {
		o.StoreDeadline = 5 * time.Millisecond
	}
	if o.MaxAgents <= 0 {
		o.MaxAgents = 8
	}
	if o.KeepAnswers <= 0 {
		o.KeepAnswers = time.Minute
	}
	if o.Observer == nil {
		o.Observer = noObserver{}
	}
	return o
}

// Urgent asks the Keeper for a Sync of one budget at once: a caller waits for
// Cost, or, with Cost 0, the wallet is low.
type Urgent struct {
	Budget string
	Cost   lease.Tokens
	// Missing is set where the store knows nothing of the budget: then what the
	// ledger said before was about leases that are gone.
	Missing bool
}

// Decider decides checks. It has no goroutine and no timer: where a decision
// must wait for tokens from afar, Begin hands back a Pending and the caller
// waits. Safe for concurrent use.
type Decider struct {
	opt     Options
	stats   *Stats
	primary *primaries
	urgent  func(Urgent)
	// observed is set where somebody wants to know how long decisions take.
	observed bool
	index    atomic.Pointer[index]

	mu sync.Mutex
	// used lists the entries that decisions touched lately or that have tokens
	// to settle; awake are those of them that do not rest, for the next flush,
	// unless a flush has them.
	used  []visit
	awake []*entry
}

// visit says when a flush looks at an entry that rests. It stands beside the
// entry so that of very many only those are looked up whose time has come.
type visit struct {
	entry *entry
	due   time.Duration
}

// NewDecider returns a Decider that knows no budget yet, and so decides
// nothing. urgent is called from deciding goroutines and must not block.
func NewDecider(opt Options, stats *Stats, urgent func(Urgent)) *Decider {
	observed := opt.Observer != nil
	opt = opt.withDefaults()
	return &Decider{
		opt: opt, stats: stats, primary: newPrimaries(opt.Clocks), urgent: urgent, observed: observed,
	}
}

// SetBudgets replaces the budgets by those given: entries of budgets that
// stay keep what they remember, and a changed policy forgets denials and
// refusals, so that a raised limit helps at once.
func (d *Decider) SetBudgets(budgets []policy.Budget) {
	list, maker := make([]*terms, len(budgets)), termsMaker{region: d.opt.Region}
	for i := range budgets {
		list[i] = maker.terms(&budgets[i])
	}
	slices.SortFunc(list, byName)
	d.setBudgets(list)
}

// setBudgets is SetBudgets for a list that is sorted by name.
func (d *Decider) setBudgets(budgets []*terms) {
	old := d.index.Load()
	entries := make(map[string]*entry, len(budgets))
	for _, t := range budgets {
		var e *entry
		if old != nil {
			e = old.byName[t.Name]
		}
		if e == nil {
			e = newEntry(t)
		} else if e.policy.Load().Version != t.Version {
			e.policy.Store(t)
			e.lock()
			e.forgive()
			e.window = nil
			e.hot.Store(nil)
			e.wake()
			e.unlock()
		}
		entries[t.Name] = e
	}
	d.index.Store(newIndex(entries, budgets))
}

// Ready reports whether the budgets are known.
func (d *Decider) Ready() bool { return d.index.Load() != nil }

// Tell passes on what the Keeper learned about a budget. arrived says that
// the wallet may hold more than before: who waits tries again.
func (d *Decider) Tell(budget string, h Hint, arrived bool) {
	e := d.entry(budget)
	if e == nil {
		return
	}
	e.lock()
	defer e.unlock()
	e.hint = h
	if t := h.Trouble.orNone(); arrived || t.Refused != lease.Enough || t.Final != 0 {
		e.wake()
	}
}

func (d *Decider) entry(budget string) *entry {
	ix := d.index.Load()
	if ix == nil {
		return nil
	}
	return ix.byName[budget]
}

// touch notes that a decision uses e.
func (d *Decider) touch(e *entry, now time.Duration) {
	e.lastUsed.Store(int64(now))
	if e.inUse.Load() || !e.inUse.CompareAndSwap(false, true) {
		d.wakeUp(e)
		return
	}
	e.rests.Store(false)
	d.mu.Lock()
	defer d.mu.Unlock()
	// Those that come at once are looked at in different flushes later.
	due := now + time.Duration(len(d.used))%(restFor/flushEvery)*flushEvery
	d.used, d.awake = append(d.used, visit{entry: e, due: due}), append(d.awake, e)
}

// wakeUp lets the next flush look at an entry that rests.
func (d *Decider) wakeUp(e *entry) {
	if !e.rests.Load() || !e.rests.CompareAndSwap(true, false) {
		return
	}
	d.mu.Lock()
	d.awake = append(d.awake, e)
	d.mu.Unlock()
}

// forgetAfter is how long after its last decision a budget counts as used by
// this process.
const forgetAfter = 10 * time.Second

// Used names the budgets that decisions touched lately.
func (d *Decider) Used() []string {
	now := d.opt.Now()
	used := d.usedEntries()
	names := make([]string, 0, len(used))
	for _, e := range used {
		if now-time.Duration(e.lastUsed.Load()) < forgetAfter {
			names = append(names, e.policy.Load().Name)
		}
	}
	return names
}

func (d *Decider) usedEntries() []*entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := make([]*entry, len(d.used))
	for i := range d.used {
		list[i] = d.used[i].entry
	}
	return list
}

// restFor is how often flushes look at budgets that rest: nothing that matters
// changes there meanwhile, unless a decision wakes them up. One that the last
// flush found half done may have left something.
const restFor = 500 * time.Millisecond

// toFlush lists what is to be flushed at now. What it lists does not rest until
// refresh says so, and so decisions do not wake it up meanwhile.
func (d *Decider) toFlush(now time.Duration, all bool) []*entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	list := d.awake
	d.awake = nil
	if all {
		list = nil // they are among the used ones
	}
	for i := range d.used {
		v := &d.used[i]
		if late := now - v.due; late >= 0 {
			v.due += (late/restFor + 1) * restFor
		} else if !all {
			continue
		}
		if rested := v.entry.rests.CompareAndSwap(true, false); rested || all {
			list = append(list, v.entry)
		}
	}
	return list
}

// keepAwake lets the next flush look at these, which do not rest.
func (d *Decider) keepAwake(list []*entry) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.awake = append(d.awake, list...)
}

// forgetUnused drops those that nobody has used for long out of the list of used
// ones, and with that what they remember.
func (d *Decider) forgetUnused(resting []*entry, now time.Duration) {
	unused := map[*entry]bool{}
	for _, e := range resting {
		if !e.busy(now) {
			unused[e] = true
		}
	}
	if len(unused) == 0 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.used = slices.DeleteFunc(d.used, func(v visit) bool { return unused[v.entry] && v.entry.retire(now) })
}

// Locals returns this process's cumulative admissions without a lease, by
// budget, where there are any.
func (d *Decider) Locals() map[string]lease.Tokens {
	var totals map[string]lease.Tokens
	for _, e := range d.usedEntries() {
		e.lock()
		var n lease.Tokens
		if e.local != nil {
			n = e.local.total
		}
		e.unlock()
		if n > 0 {
			if totals == nil {
				totals = map[string]lease.Tokens{}
			}
			totals[e.policy.Load().Name] = n
		}
	}
	return totals
}

// call makes one store call within the store deadline, unless the breaker of
// the primary is open, and books its outcome.
func (d *Decider) call(ctx context.Context, primary, step string, f func(context.Context) error) error {
	return d.callWithin(ctx, d.opt.StoreDeadline, primary, step, f)
}

func (d *Decider) callWithin(ctx context.Context, within time.Duration, primary, step string, f func(context.Context) error) error {
	start := d.opt.Now()
	if !d.primary.allow(primary, start) {
		d.stats.BreakerRefused.Add(1)
		return errBreakerOpen
	}
	// A caller that goes away must not look like a store that does not answer.
	ctx = context.WithoutCancel(ctx)
	if within > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, within)
		defer cancel()
	}
	err := f(ctx)
	end := d.opt.Now()
	if err != nil {
		d.stats.StoreErrors.Add(1)
	}
	if d.primary.report(primary, start, end, err == nil) {
		d.stats.BreakerOpened.Add(1)
	}
	d.opt.Observer.StoreCalled(end-start, step, err)
	return err
}

var errBreakerOpen = lease.Errorf(lease.Unavailable, "", "the region's store did not answer lately")
