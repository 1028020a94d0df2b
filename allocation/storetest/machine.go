package storetest

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// Size says how much the state machine does.
type Size struct {
	// Runs is the number of random histories, Steps the average number of
	// actions in each; 0 takes 100 and 80.
	Runs, Steps int
}

// Invariants plays random histories against one store, each with a budget of
// its own, and asserts after every step, by number and name, invariants 1, 2,
// 3, 4 and 6 and the ledger's half of 10. It sets rapid's flags, so tests that
// use it do not run in parallel.
func Invariants(t *testing.T, size Size, h Harness) {
	restore := setFlags(t, size)
	defer restore()
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		Play(rt, h, fmt.Sprintf("tenant/history %d", run))
	})
}

// setFlags gives rapid a size until restore is called.
func setFlags(t *testing.T, size Size) (restore func()) {
	before := map[string]string{}
	for name, n := range map[string]int{
		"rapid.checks": cmp.Or(size.Runs, 100),
		"rapid.steps":  cmp.Or(size.Steps, 80),
	} {
		before[name] = flag.Lookup(name).Value.String()
		if err := flag.Set(name, strconv.Itoa(n)); err != nil {
			t.Fatal(err)
		}
	}
	return func() {
		for name, value := range before {
			_ = flag.Set(name, value)
		}
	}
}

// world is one history: a budget in the ledger, two regions, and every
// message that was ever sent between them.
type world struct {
	h          Harness
	name       string
	cfg        allocation.Config
	start, now lease.Time
	regions    []*region
	stepped    bool
	requests   []message
	replies    []answer
	// plan is what every region should hold; nil leaves it to the real planner.
	plan  []planned
	state *allocation.State
	// admitted is what the regions spent; potential is that, and all that could
	// still be spent without minting, as of the last check.
	admitted, potential lease.Tokens
	// granted lists what each sequence of each incarnation was granted.
	incarnations int
}

type message struct {
	region int
	item   lease.Item
	sent   lease.Time
}

type answer struct {
	region int
	reply  lease.ItemReply
}

// planned is one region's part of a random plan, in thousandths of what the
// contract has.
type planned struct {
	reserveX, reserveBeta, pacedX, pacedBeta, lump, push, keep int
	piece                                                      lease.Tokens
}

// keepEnded is how long ended rows stay, and so how late messages may come.
const keepEnded = time.Hour

// Play plays one random history on a new budget.
func Play(rt *rapid.T, h Harness, name string) {
	w := &world{h: h, name: name}
	w.cfg.Planner = w.planner
	w.cfg.KeepEnded = keepEnded
	w.start = w.readTime(rt)
	w.now = w.start
	for _, name := range []string{"eu", "us"} {
		w.regions = append(w.regions, &region{
			name: name,
			ppm:  rapid.Int64Range(-1000, 1000).Draw(rt, "drift"),
			back: time.Duration(rapid.Int64Range(0, 250).Draw(rt, "back step")) * time.Millisecond,
		})
	}
	w.setBudget(rt)
	w.potential = w.total()
	rt.Repeat(map[string]func(*rapid.T){
		"":             w.check,
		"pass time":    w.passTime,
		"begin":        w.begin,
		"deliver":      w.deliver,
		"deliver last": w.deliverLast,
		"install":      w.install,
		"install last": w.installLast,
		"sync":         w.sync,
		"sync again":   w.sync,
		"spend":        w.spend,
		"take":         w.take,
		"settle":       w.settle,
		"give up":      w.giveUp,
		"close":        w.closeLease,
		"lower":        w.lower,
		"lose store":   w.lose,
		"sweep":        w.sweep,
		"limit":        w.setBudget,
		"replan":       w.replan,
		"step back":    w.stepBack,
		"admit alone":  w.admitAlone,
	})
}

func (w *world) readTime(rt *rapid.T) lease.Time {
	now, err := w.h.Store.Now(context.Background())
	if err != nil {
		rt.Fatal(err)
	}
	return now.Governed
}

func (w *world) clock(r *region) lease.Time { return r.now(w.start, w.now, w.stepped) }

// tick brings the regions to the ledger's time. What their shares mint by it
// is in order: check holds their x to what the ledger counts.
func (w *world) tick(rt *rapid.T) {
	w.now = max(w.now, w.readTime(rt))
	for _, r := range w.regions {
		for _, l := range r.all() {
			l.pass(w.clock(r))
		}
	}
	w.potential = w.total()
}

func (r *region) all() []*wallet {
	out := slices.Clone(r.lost)
	for _, l := range r.wallets {
		if l != nil {
			out = append(out, l)
		}
	}
	return out
}

// ledger runs a step on the budget in a transaction and checks it. A history
// that the store has altered between two steps ends at once.
func (w *world) ledger(rt *rapid.T, step func(now allocation.Now, s *allocation.State)) {
	var before, after *allocation.State
	err := w.h.Store.Update(context.Background(), []string{w.name}, func(now allocation.Now, states []*allocation.State) error {
		before = clone(states[0])
		step(now, states[0])
		after = clone(states[0])
		return nil
	})
	if err != nil {
		rt.Fatal(err)
	}
	if diff := difference("State", reflect.ValueOf(*before), reflect.ValueOf(*w.state)); diff != "" {
		rt.Fatalf("the store did not keep what was written: %s", diff)
	}
	w.took(rt, after)
}

// took takes over a state that was written. Potential may have grown by what
// the step booked as minted, which CheckStep holds to the time that passed.
func (w *world) took(rt *rapid.T, after *allocation.State) {
	before := w.state
	w.state = after
	for i := range after.Pools {
		p := &after.Pools[i]
		rt.Logf("at %v pool %d: A %d O %d X %d of %v burst %d float %d, %d leases, came %d", w.now-w.start,
			p.Start, p.Available, p.Outstanding, p.X, p.Rate, p.Burst, p.Float, len(after.Leases), came(p))
	}
	if err := allocation.CheckStep(before, after); err != nil {
		rt.Fatal(err)
	}
	if found := allocation.Audit(*after); len(found) > 0 {
		rt.Fatal(found[0])
	}
	for i := range after.Pools {
		w.potential += came(&after.Pools[i])
	}
	if before == nil {
		return
	}
	if len(after.Pools) == 0 {
		// The remains of a deleted budget are tidied away, with a debt that time
		// has paid.
		w.potential = max(w.potential, w.total())
		return
	}
	for i := range before.Pools {
		if w.survives(before, after, i) {
			w.potential -= came(&before.Pools[i])
		}
	}
}

// survives reports whether a pool is still there, be it under another start: a
// change of calendar moves the open pool's, and is made right after a sweep,
// so that no window begins or goes in the same step.
func (w *world) survives(before, after *allocation.State, i int) bool {
	p := &before.Pools[i]
	if before.Budget.Version != after.Budget.Version && (p.End == 0 || w.now < p.End) {
		return true
	}
	return slices.ContainsFunc(after.Pools, func(q allocation.Pool) bool { return q.Start == p.Start })
}

// came is what has ever come into a pool.
func came(p *allocation.Pool) lease.Tokens {
	return p.Totals.Start + p.Totals.Minted + p.Totals.Adjusted
}

func clone(s *allocation.State) *allocation.State {
	c := *s
	c.Pools, c.Leases = slices.Clone(s.Pools), slices.Clone(s.Leases)
	c.Regions, c.Locals = slices.Clone(s.Regions), slices.Clone(s.Locals)
	return &c
}

// check asserts what no single state shows.
func (w *world) check(rt *rapid.T) {
	for _, r := range w.regions {
		for _, l := range r.all() {
			w.checkHold(rt, r, l)
		}
	}
	if total := w.total(); total > w.potential {
		rt.Fatalf("invariant 6 (nothing mints but time): %d tokens came from nowhere: admitted and spendable are %d, were %d",
			total-w.potential, total, w.potential)
	}
	w.potential = w.total()
	w.tick(rt)
}

// checkHold asserts the ledger's half of invariant 10, and with it that no
// hold was freed before its region had stopped (invariant 4).
func (w *world) checkHold(rt *rapid.T, r *region, l *wallet) {
	now := w.clock(r)
	row, pool := w.row(r, l)
	if s := l.spendable(now); s > row.Hold {
		rt.Fatalf("invariant 10 (the wallet never exceeds the hold): %s/%s/%s can spend %d, the ledger counts %d (%s)",
			r.name, l.kind, l.inc, s, row.Hold, row.Ending)
	}
	if l.closed || l.void || l.ended || now >= l.deadline || !l.kind.IsShare() {
		return
	}
	if x := l.x.In(pool.Rate.Per, true).Tokens; x > row.X {
		rt.Fatalf("invariant 10 (the wallet never exceeds the hold): %s/%s/%s mints %d, the ledger counts %d",
			r.name, l.kind, l.inc, x, row.X)
	}
}

// row returns the ledger's row of a lease and its pool; zero for none.
func (w *world) row(r *region, l *wallet) (allocation.Lease, allocation.Pool) {
	for _, row := range w.state.Leases {
		if row.Region != r.name || row.Kind != l.kind || row.Incarnation != l.inc {
			continue
		}
		for _, p := range w.state.Pools {
			if p.Start == row.Window {
				return row, p
			}
		}
	}
	return allocation.Lease{}, allocation.Pool{}
}

// total is what was admitted, what lies in the pools, and what regions can
// spend now or after a message that is on its way.
func (w *world) total() lease.Tokens {
	sum := w.admitted
	for i := range w.state.Pools {
		p := &w.state.Pools[i]
		sum += p.Available
		if p.End != 0 && p.End <= w.now {
			sum += max(0, -p.Available) // a window's debt ends with it
		}
	}
	for _, r := range w.regions {
		for _, l := range r.all() {
			sum += w.potentialOf(r, l)
		}
	}
	return sum
}

func (w *world) potentialOf(r *region, l *wallet) lease.Tokens {
	row, pool := w.row(r, l)
	spendable := l.spendable(w.clock(r))
	alive := row.Incarnation != "" && row.Ending == allocation.Open
	switch {
	case l.kind == lease.Lump && alive:
		// The row says what was granted, the region what it used of it.
		return row.Granted - l.used - row.Returned
	case l.kind == lease.Lump && row.Ending == allocation.Expired && w.now < pool.End:
		// What comes back of it will be credited.
		unspent := row.Granted - l.used - row.Returned - row.LateCredited
		return max(spendable, min(unspent, row.WrittenOff-row.LateUsed-row.LateReturned))
	case !alive || l.kind == lease.Lump:
		return spendable
	case l.void && l.seq > row.Seq:
		// What never arrived is credited once the last report says so.
		return spendable + l.returned - row.Returned + row.Granted - l.granted
	case l.void:
		return spendable + l.returned - row.Returned
	}
	return l.balance + l.prefetched + row.Granted - l.granted + l.returned - row.Returned
}
