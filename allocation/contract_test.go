package allocation

import (
	"reflect"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func setBucket(d *desk, rate, burst lease.Tokens) {
	d.t.Helper()
	d.set(func(b *policy.Budget) { b.Contract = policy.Contract{Rate: perSecondRate(rate), Burst: burst} })
}

// Seen to fail when recontract fills a bucket whose burst was raised.
func TestInvariant6NothingMintsButTime(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	for _, c := range []struct {
		what   string
		change func(b *policy.Budget)
		left   lease.Tokens
	}{
		{"burst up", func(b *policy.Budget) { b.Contract.Burst = 1000 }, 70},
		{"rate up", func(b *policy.Budget) { b.Contract.Rate = perSecondRate(50_000) }, 70},
		{"float", func(b *policy.Budget) { b.Float = 100 }, 70},
		{"strategy", func(b *policy.Budget) { b.Strategy = policy.Static }, 70},
		{"independent", func(b *policy.Budget) {
			b.Strategy, b.Regions = policy.Independent, []policy.Region{{Name: "eu"}, {Name: "us"}}
		}, 70},
		{"another unit", func(b *policy.Budget) { b.Contract.Rate = lease.Rate{Tokens: 7, Per: time.Hour} }, 70},
		{"burst down", func(b *policy.Budget) { b.Strategy, b.Float, b.Contract.Burst = policy.Dynamic, 0, 60 }, 30},
		{"burst far down", func(b *policy.Budget) { b.Contract.Burst = 20 }, 0},
		{"burst up again", func(b *policy.Budget) { b.Contract.Burst = 100 }, 0},
		{"deleted", func(b *policy.Budget) { b.Deleted = true }, 0},
		{"created again", func(b *policy.Budget) { b.Deleted = false }, 0},
	} {
		if !d.set(c.change) {
			t.Errorf("%s: says that nothing changed", c.what)
		}
		d.expect(c.what, c.left, 30)
	}
}

func TestNoOpApplyChangesNothing(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	before := *d.s.current(d.now)
	d.pass(time.Second)
	if d.set(func(b *policy.Budget) { b.Version, b.Match, b.Regions = 9, map[string]string{}, []policy.Region{} }) {
		t.Error("says that something changed")
	}
	if after := *d.s.current(d.now); after != before {
		t.Errorf("the pool went from %+v to %+v", before, after)
	}
}

// After a cut the sum stands above the ceiling, never grows, and nothing is
// minted until it fits; debt is minted off only as far as there is room.
func TestCutBelowWhatIsLeased(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), lumps(80, "us")...)
	d.sync("us", lump("i", 1, 80))
	setBucket(d, 10, 50)
	d.expect("cut", 0, 80)
	d.pass(3 * time.Second)
	d.sweep()
	d.expect("nothing is minted above the ceiling", 0, 80)
	d.plan = lumps(20, "us")
	if st := d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 10, Want: 80}); st.Keep != 20 || st.Granted != 80 {
		t.Errorf("answered %+v, want a recall to 20", st)
	}
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 3, Used: 10, Returned: 50})
	d.expect("of what came back, what fits is credited", 30, 20)
	d.item("us", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 40}}})
	d.pass(time.Hour)
	d.sweep()
	if p := d.pool(); p.Available > 50 {
		t.Errorf("available %d", p.Available)
	}
}

// A share's x is counted in the pool's unit; a new unit rounds it up.
func TestSharesSurviveAChangeOfUnit(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("us", 1000, 100))
	d.sync("us", share("u", 1, 0, 0))
	d.set(func(b *policy.Budget) { b.Contract.Rate = lease.Rate{Tokens: 1001, Per: 7 * time.Second} })
	if p := d.pool(); p.X != 7000 || p.X <= p.Rate.Tokens {
		t.Errorf("counts x %d of %v, want 7000 until the region says less", p.X, p.Rate)
	}
	d.plan[0].Reserve.X = 1001
	st := d.sync("us", share("u", 2, 1000, 100))
	if st.X != (lease.Rate{Tokens: 1001, Per: 7 * time.Second}) || d.pool().X != 7000 {
		t.Errorf("told %v, counts %d", st.X, d.pool().X)
	}
	r := share("u", 3, 0, 100)
	r.X = st.X
	d.sync("us", r)
	if got := d.pool().X; got != 1001 {
		t.Errorf("counts x %d once it is acknowledged, want 1001", got)
	}
	d.set(func(b *policy.Budget) { b.Contract.Rate = lease.Rate{} })
	if p := d.pool(); p.Rate.Per != 7*time.Second || p.X != 1001 {
		t.Errorf("a rate of zero lost the unit: %v, x %d", p.Rate, p.X)
	}
}

// A region that a change leaves out is told to hold nothing, and what it gives
// back is there for others at once, not when its leases expire. Seen to fail
// when the region is refused as unknown.
func TestRegionLeftOutGivesBack(t *testing.T) {
	both := []policy.Region{{Name: "eu", Weight: 1}, {Name: "us", Weight: 1}}
	d := newDesk(t, bucket(1000, 100, policy.Static, both...))
	st := d.sync("us", share("u", 1, 0, 0))
	d.set(func(b *policy.Budget) { b.Regions = both[:1] })
	if st = d.sync("us", share("u", 2, st.X.Tokens, st.Beta)); st.Status != lease.Active || st.X.Tokens != 0 || st.Beta != 0 {
		t.Fatalf("told %+v, want nothing", st)
	}
	d.sync("us", lease.Report{Kind: lease.Reserve, Incarnation: "u", Seq: 3, Used: 10, Returned: 40, Closed: true})
	d.expect("given back", 90, 0)
	if st := d.sync("eu", share("e", 1, 0, 0)); st.X.Tokens != 1000 || st.Beta != 100 {
		t.Errorf("the other region gets %+v, want all", st)
	}
	reply := d.item("us", lease.Item{Leases: []lease.Report{share("n", 1, 0, 0)}})
	if lease.CodeOf(reply.Err) != lease.UnknownRegion {
		t.Errorf("a new share of the region left out is answered %+v", reply)
	}
}

func TestDeletedBudget(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	d.set(func(b *policy.Budget) { *b = policy.Budget{Name: b.Name, Deleted: true} })
	if d.s.Budget.Contract.Burst != 100 {
		t.Error("the contract that ended is not on record")
	}
	st := d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 5, Want: 30})
	if st.Short != lease.LimitZero || st.Keep != 0 || st.Granted != 30 {
		t.Errorf("answered %+v, want a recall of everything", st)
	}
	if st := d.sync("us", lump("j", 1, 1)); st.Status != lease.NotPlanned || st.Short != lease.LimitZero {
		t.Errorf("a new lease is answered %+v", st)
	}
	d.pass(time.Minute)
	d.sweep()
	d.pass(24 * time.Hour)
	d.sweep()
	if len(d.s.Pools) != 0 || d.s.NextDue() != 0 {
		t.Errorf("%d pools, due %d, long after the last lease and a fill", len(d.s.Pools), d.s.NextDue())
	}
	if st := d.sync("us", lump("k", 1, 1)); st.Status != lease.NotPlanned || st.Short != lease.LimitZero {
		t.Errorf("a lease of the remains is answered %+v", st)
	}
	d.set(func(b *policy.Budget) { *b = bucket(10, 7, policy.Dynamic); b.Name = "tenant/budget" })
	d.expect("starts afresh", 7, 0)
}

// Until the bucket would have filled anyway, a new budget of the same name
// resumes the old account.
func TestDeletedBudgetWaitsForOneFill(t *testing.T) {
	d := newDesk(t, bucket(0, 100, policy.Dynamic))
	setBucket(d, 1, 100)
	d.item("us", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 150}}})
	d.set(func(b *policy.Budget) { b.Deleted = true })
	fill := 150 * time.Second
	due := d.s.NextDue()
	if early := d.now.Governed.Add(fill); due < early || due > early.Add(time.Millisecond) {
		t.Errorf("due %v after the deletion, want the time to fill %v", due.Sub(d.now.Governed), fill)
	}
	d.pass(fill - time.Second)
	d.sweep()
	d.set(func(b *policy.Budget) { b.Deleted = false })
	d.expect("resumed", -50, 0)
	d.pass(time.Second)
	d.sweep()
	d.expect("and mints from then on", -49, 0)
}

func TestQuotaChangeMovesTheRest(t *testing.T) {
	d := newDesk(t, quota(100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	set := func(n lease.Tokens) { d.set(func(b *policy.Budget) { b.Contract.Quota.N = n }) }
	set(150)
	d.expect("raised by 50", 120, 30)
	set(20)
	d.expect("lowered by 130", -10, 30)
	set(100)
	d.expect("and back", 70, 30)
	if got := d.pool().Totals.Adjusted; got != 0 {
		t.Errorf("adjusted %d in the end", got)
	}
}

func TestQuotaWindows(t *testing.T) {
	hourly := quota(100, policy.Dynamic)
	hourly.Contract.Quota.Per = policy.Hour
	d := newDesk(t, hourly, lumps(60, "us")...)
	d.set(func(b *policy.Budget) { b.TTL = time.Minute })
	end := d.pool().End
	d.pass(end.Sub(d.now.Raw) - 30*time.Second)
	st := d.sync("us", lump("i", 1, 60))
	guard := lease.DefaultClocks().Guard(30 * time.Second)
	if st.Granted != 60 || st.TTL != 30*time.Second-guard || d.s.Leases[0].Reclaim > end {
		t.Errorf("granted %d for %v, reclaimed %v after the end", st.Granted, st.TTL, d.s.Leases[0].Reclaim.Sub(end))
	}
	d.pass(30*time.Second - 100*time.Millisecond)
	if st := d.sync("us", lump("j", 1, 5)); st.Status != lease.NotPlanned {
		t.Errorf("granted %+v where it could outlive the window", st)
	}
	d.pass(100 * time.Millisecond)
	st = d.sync("us", lump("k", 1, 60))
	d.expect("a window starts with N", 40, 60)
	if st.Granted != 60 || len(d.s.Pools) != 2 {
		t.Errorf("granted %d with %d pools", st.Granted, len(d.s.Pools))
	}
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 10, Returned: 50})
	d.expect("late totals of the old window change nothing here", 40, 60)
	d.pass(2 * time.Minute)
	d.sweep()
	d.pass(25 * time.Hour)
	d.sweep()
	if len(d.s.Pools) != 1 || len(d.s.Leases) != 0 {
		t.Errorf("%d pools and %d rows after their time", len(d.s.Pools), len(d.s.Leases))
	}
}

// What comes back late to a quota whose window is open is credited, once.
func TestLateReturnsCreditAnOpenWindow(t *testing.T) {
	d := newDesk(t, quota(100, policy.Dynamic), lumps(60, "us")...)
	d.sync("us", lump("i", 1, 60))
	d.pass(time.Minute)
	d.sweep()
	d.expect("written off", 40, 0)
	for seq := uint64(2); seq < 4; seq++ {
		d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: seq, Used: 10, Returned: 45})
		d.expect("credited", 85, 0)
	}
	if l := d.s.Leases[0]; l.LateUsed != 10 || l.LateCredited != 45 || l.Ending != Expired {
		t.Errorf("booked %+v", l)
	}
	if got := d.s.Regions[0].WindowGranted; got != 15 {
		t.Errorf("the window has granted the region %d, want 15", got)
	}
}

// A quota's lump that is smaller than what is wanted is a piece, and no reason to
// deny anybody while the pool has more for all.
func TestAPieceOfAQuotaIsNoShortage(t *testing.T) {
	for _, s := range []policy.Strategy{policy.Static, policy.Dynamic} {
		d := newDesk(t, quota(100_000, s, policy.Region{Name: "us", Weight: 1}))
		reply := d.item("us", lease.Item{Leases: []lease.Report{lump("a", 1, 50_000)}, Waiting: 1, Demand: 1})
		st := reply.Leases[0]
		if st.Status != lease.Active || st.Granted <= 0 || st.Granted >= 50_000 || st.Short != lease.Enough {
			t.Errorf("%s: %+v", s, st)
		}
	}
}

// A static quota grants pieces until the region's part is reached, store lost
// or not.
func TestStaticQuotaStopsAtThePart(t *testing.T) {
	d := newDesk(t, quota(1000, policy.Static, policy.Region{Name: "eu", Weight: 1}, policy.Region{Name: "us", Weight: 1}))
	granted := lease.Tokens(0)
	for i := range 200 {
		inc := lease.Incarnation(rune('a' + i)) // a store that loses everything each time
		d.pass(time.Second)
		if st := d.sync("us", lump(inc, 1, 5)); st.Status == lease.Active {
			granted += st.Granted
		} else if st.Short != lease.ShareReached || st.RetryAfter <= 0 {
			t.Fatalf("refused with %+v", st)
		}
	}
	if granted != 500 || d.s.Regions[0].WindowGranted != 500 {
		t.Errorf("granted %d of the region's 500", granted)
	}
}

// Between bucket and quota the account goes on; nothing is added in either
// direction, however often.
func TestChangeOfKindAddsNothing(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	month := policy.Contract{Quota: policy.Quota{N: 1_000_000, Per: policy.Month, Zone: "UTC"}}
	for range 3 {
		d.set(func(b *policy.Budget) { b.Contract = month })
		d.expect("as a quota", 70, 30)
		if p := d.pool(); p.Start != d.now.Raw || p.End <= p.Start {
			t.Errorf("the window is [%d, %d) at %d", p.Start, p.End, d.now.Raw)
		}
		d.set(func(b *policy.Budget) { b.Contract.Quota.Per = policy.Day })
		d.expect("in another calendar", 70, 30)
		d.set(func(b *policy.Budget) { b.Contract = policy.Contract{Rate: perSecondRate(1000), Burst: 100} })
		d.expect("as a bucket", 70, 30)
	}
	d.set(func(b *policy.Budget) { b.Contract = month })
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 30})
	d.pass(31 * 24 * time.Hour)
	d.sweep()
	d.expect("the next window is full", 1_000_000, 0)
}

// NextDue finds all that Sweep has to do, and after the sweep lies in the
// future, or is never.
func TestNextDueLeadsToTheEnd(t *testing.T) {
	d := newDesk(t, bucket(1, 100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	d.item("eu", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 1}}})
	d.set(func(b *policy.Budget) { b.Deleted = true })
	for range 10 {
		due := d.s.NextDue()
		if due == 0 {
			break
		}
		if due <= d.now.Governed {
			t.Fatalf("due at %d after a sweep at %d", due, d.now.Governed)
		}
		d.pass(due.Sub(d.now.Governed))
		d.sweep()
	}
	if want := (&State{Budget: d.s.Budget}); !reflect.DeepEqual(d.s, want) && len(d.s.Leases)+len(d.s.Pools)+len(d.s.Regions)+len(d.s.Locals) > 0 {
		t.Errorf("left over: %+v", d.s)
	}
}

// After a backward step of the database's clock, governed time comes to the
// end of a window before raw time does. The sweep that comes then does nothing,
// and must not be due again at once: it would crowd out all others.
//
// Seen to catch: lookAgain left out (found by random runs in sim/proof).
func TestSweepWaitsForRawTime(t *testing.T) {
	d := newDesk(t, quota(100, policy.Dynamic), lumps(30, "us")...)
	d.sync("us", lump("i", 1, 30))
	end := d.s.Pools[0].End
	d.now.Governed = d.now.Governed.Add(10 * time.Second)
	for sweeps := 0; d.now.Raw < end; sweeps++ {
		due := d.s.NextDue()
		if due <= d.now.Governed || sweeps > 30 {
			t.Fatalf("due at %d after sweep %d at %d", due, sweeps, d.now.Governed)
		}
		d.pass(due.Sub(d.now.Governed))
		d.sweep()
	}
	if p := d.s.current(d.now); p == nil || p.Start != end {
		t.Errorf("the next window did not begin: %+v", d.s.Pools)
	}
}

// A change of unit at the same rate lets nobody mint more: while the counts,
// which it rounds up, stand above the rate, what regions are told is rounded
// down, replays too. Once they have all heard, the pool mints what that left.
//
// Seen to catch: telling what is counted, which goes on for as long as the plan
// leaves the shares alone.
func TestAChangeOfUnitRaisesNoShare(t *testing.T) {
	regions := []string{"a", "b", "c"}
	xs := []lease.Tokens{20_001, 20_002, 19_997} // a minute: 333.35, 333.37 and 333.28 a second
	d := newDesk(t, bucket(60_000, 600, policy.Static), reserve("a", xs[0], 100), reserve("b", xs[1], 100), reserve("c", xs[2], 100))
	d.set(func(b *policy.Budget) { b.Contract.Rate.Per = time.Minute })
	for i, r := range regions {
		if st := d.sync(r, share(lease.Incarnation("s"+r), 1, 0, 0)); st.X.Tokens != xs[i] {
			t.Fatalf("%s holds %v", r, st.X)
		}
	}
	d.set(func(b *policy.Budget) { b.Contract.Rate = lease.Rate{Tokens: 1000, Per: time.Second} })
	for i := range d.plan {
		d.plan[i].Reserve.X = 334
	}
	sum := lease.Tokens(0)
	for i, r := range regions {
		rep := share(lease.Incarnation("s"+r), 1, 0, 0)
		replay := d.sync(r, rep)
		rep.Seq, rep.Beta, rep.X = 2, 100, lease.Rate{Tokens: xs[i], Per: time.Minute}
		st := d.sync(r, rep)
		if replay.X.Tokens > 333 || st.X.Tokens > 333 {
			t.Errorf("%s holds %d a minute, and is told %v in a replay, then %v", r, xs[i], replay.X, st.X)
		}
		sum += st.X.Tokens
	}
	for _, r := range regions {
		rep := share(lease.Incarnation("s"+r), 3, 0, 100)
		rep.X = lease.Rate{Tokens: 333, Per: time.Second}
		d.sync(r, rep)
	}
	if p := d.pool(); sum > 1000 || p.X > p.Rate.Tokens {
		t.Errorf("told %d together, counted %d of %d", sum, p.X, p.Rate.Tokens)
	}
}
