package allocation

import (
	"slices"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// desk is one budget's state on a clock that the test moves. Every step is
// checked against the invariants.
type desk struct {
	t   *testing.T
	s   *State
	cfg Config
	now Now
	// plan, when set, is what each region should hold.
	plan []Target
}

// newDesk opens a budget at 2027-01-15 08:00 UTC.
func newDesk(t *testing.T, b policy.Budget, plan ...Target) *desk {
	t.Helper()
	at := lease.Time(1_800_000_000_000_000)
	d := &desk{t: t, now: Now{Governed: at, Raw: at}, plan: plan}
	if plan != nil {
		d.cfg.Planner = func(*State, *Pool, lease.Time) []Target { return d.plan }
	}
	b.Name, b.OnStoreLoss = "tenant/budget", policy.Regrant
	b.TTL, b.ShareTTL = 10*time.Second, time.Hour
	d.s = NewState(d.now, b)
	if err := Check(d.s); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) pass(span time.Duration) {
	d.now.Governed = d.now.Governed.Add(span)
	d.now.Raw = d.now.Raw.Add(span)
}

func (d *desk) step(f func()) {
	d.t.Helper()
	before := *d.s
	before.Pools, before.Leases = slices.Clone(d.s.Pools), slices.Clone(d.s.Leases)
	f()
	if err := CheckStep(&before, d.s); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) item(region string, it lease.Item) lease.ItemReply {
	d.t.Helper()
	var reply lease.ItemReply
	d.step(func() { reply = Sync(d.cfg, d.now, d.s, region, it) })
	return reply
}

// sync sends one report and returns its answer. A share that holds something,
// or did, has had all its answers.
func (d *desk) sync(region string, r lease.Report) lease.State {
	d.t.Helper()
	if l := d.s.find(region, r.Kind, r.Incarnation); l != nil && r.Kind.IsShare() && (r.Beta > 0 || r.Prefetched > 0 || r.Closed) {
		r.Granted = l.Granted
	}
	reply := d.item(region, lease.Item{Leases: []lease.Report{r}, Waiting: r.Want})
	if reply.Err != nil {
		d.t.Fatal(reply.Err)
	}
	return reply.Leases[0]
}

func (d *desk) sweep() {
	d.t.Helper()
	d.step(func() { Sweep(d.cfg, d.now, d.s) })
}

// set changes the budget.
func (d *desk) set(change func(b *policy.Budget)) bool {
	d.t.Helper()
	b, changed := d.s.Budget, false
	change(&b)
	d.step(func() { changed = d.s.SetBudget(d.cfg, d.now, b) })
	return changed
}

func (d *desk) pool() *Pool {
	d.t.Helper()
	p := d.s.current(d.now)
	if p == nil {
		d.t.Fatal("no pool is open")
	}
	return p
}

// expect compares what the open pool has.
func (d *desk) expect(what string, available, outstanding lease.Tokens) {
	d.t.Helper()
	if p := d.pool(); p.Available != available || p.Outstanding != outstanding {
		d.t.Errorf("%s: available %d and outstanding %d, want %d and %d", what, p.Available, p.Outstanding, available, outstanding)
	}
}

func lump(inc lease.Incarnation, seq uint64, want lease.Tokens) lease.Report {
	return lease.Report{Kind: lease.Lump, Incarnation: inc, Seq: seq, Want: want}
}

// lumps plans up to n lump tokens for each region.
func lumps(n lease.Tokens, regions ...string) []Target {
	var plan []Target
	for _, r := range regions {
		plan = append(plan, Target{Region: r, Lumps: true, Lump: n, Keep: n})
	}
	return plan
}
