package allocation

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func share(inc lease.Incarnation, seq uint64, x, beta lease.Tokens) lease.Report {
	return lease.Report{Kind: lease.Reserve, Incarnation: inc, Seq: seq, X: lease.Rate{Tokens: x, Per: time.Second}, Beta: beta}
}

func reserve(region string, x, beta lease.Tokens) Target {
	return Target{Region: region, Reserve: Share{X: x, Beta: beta}}
}

// Shares start as full as the pool is, so that the second region fares as the
// first.
func TestSharesStartAsFullAsThePool(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("eu", 600, 60), reserve("us", 400, 40))
	d.item("eu", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 50}}}) // half empty
	eu, us := d.sync("eu", share("e", 1, 0, 0)), d.sync("us", share("u", 1, 0, 0))
	if eu.Granted != 30 || us.Granted != 20 || eu.Beta != 60 || us.Beta != 40 || eu.X.Tokens != 600 || us.X.Tokens != 400 {
		t.Errorf("got %+v and %+v", eu, us)
	}
	d.expect("all leased", 0, 100)
	d.pass(time.Hour)
	d.sync("eu", share("e", 2, 600, 60))
	d.expect("nothing is left to mint", 0, 100)
}

// A cap grows out of the pool's own tokens where those fill the ceiling.
func TestShareGrowsWhereThePoolIsFull(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic), reserve("us", 100, 10))
	d.sync("us", share("u", 1, 0, 0))
	d.plan[0].Reserve = Share{X: 300, Beta: 60}
	st := d.sync("us", share("u", 2, 100, 10))
	if st.Beta != 60 || st.X.Tokens != 300 || st.Granted != 60 {
		t.Errorf("got %+v, want the whole plan, with the cap's tokens", st)
	}
	d.expect("moved, not minted", 40, 60)
}

// What the plan cuts is counted until the region says that it holds less; a
// lost or late report frees nothing.
func TestShareShrinksOnAcknowledgement(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic), reserve("us", 800, 80))
	d.sync("us", share("u", 1, 0, 0))
	d.plan[0].Reserve = Share{X: 200, Beta: 20}
	if st := d.sync("us", share("u", 2, 800, 80)); st.X.Tokens != 200 || st.Beta != 20 {
		t.Errorf("told %+v, want the cut", st)
	}
	if p := d.pool(); p.X != 800 || p.Outstanding != 80 {
		t.Errorf("counts %d and %d before the region agreed", p.X, p.Outstanding)
	}
	d.sync("us", share("u", 1, 0, 0))
	if p := d.pool(); p.X != 800 || p.Outstanding != 80 {
		t.Errorf("an older sequence freed some: %d and %d", p.X, p.Outstanding)
	}
	d.sync("us", share("u", 3, 200, 20))
	if p := d.pool(); p.X != 200 || p.Outstanding != 20 || p.Available != 20 {
		t.Errorf("counts %d and %d with %d available, want 200, 20 and 20: nothing is credited", p.X, p.Outstanding, p.Available)
	}
}

// Processes may hold more than a cap that was cut: that much stays counted.
func TestShareCountsWhatIsPrefetched(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic), reserve("us", 800, 80))
	d.sync("us", share("u", 1, 0, 0))
	r := share("u", 2, 800, 0)
	r.Prefetched = 7
	d.plan[0].Reserve = Share{}
	d.sync("us", r)
	d.expect("seven are in processes", 20, 7)
}

// A share's balance is credited once, when it is closed and nothing of it is
// in any process; what it can have used is bounded by what it was given and
// minted.
func TestShareCloses(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), reserve("us", 500, 50))
	d.sync("us", share("u", 1, 0, 0))
	d.expect("opened full", 50, 50)
	d.pass(time.Second)
	r := lease.Report{Kind: lease.Reserve, Incarnation: "u", Seq: 2, Used: 20, Returned: 27, Prefetched: 3, Closed: true}
	d.sync("us", r)
	d.expect("closing: all but the prefetch is free", 50, 3)
	r.Seq, r.Prefetched, r.Used = 3, 0, 23
	if st := d.sync("us", r); st.Status != lease.Ended {
		t.Errorf("answered %+v, want ended", st)
	}
	d.expect("closed", 77, 0)
	r.Seq = 4
	d.sync("us", r)
	d.expect("and not credited again", 77, 0)
}

// What was given with an answer that never arrived goes back to the pool as
// soon as a newer sequence says so, and no later answer gives it: by then the
// pool may have minted and spent as much again. Seen to fail when the grant
// stays on the share's row: 4 tokens of a burst of 2 within two seconds.
func TestShareGrantThatNeverArrived(t *testing.T) {
	d := newDesk(t, bucket(1, 2, policy.Dynamic), reserve("us", 500, 2))
	if st := d.sync("us", share("u", 1, 0, 0)); st.Granted != 2 {
		t.Fatalf("given %d, want the whole pool", st.Granted)
	}
	held := lease.Item{Leases: []lease.Report{share("u", 2, 0, 0)}}
	d.step(func() { Listen(d.cfg, d.now, d.s, "us", held) })
	d.expect("the answer was lost", 2, 0)
	d.pass(2 * time.Second)
	elsewhere := lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 2}}}
	d.item("eu", elsewhere)
	d.expect("spent elsewhere", 0, 0)
	if st := d.sync("us", share("u", 2, 0, 0)); st.Granted != 0 || st.Beta != 2 {
		t.Errorf("given %d with a cap of %d, want an empty share", st.Granted, st.Beta)
	}
}

func TestShareUsedIsBounded(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic), reserve("us", 500, 50))
	d.sync("us", share("u", 1, 0, 0))
	d.pass(2 * time.Second)
	r := share("u", 2, 5, 50)
	r.Used = 1_000
	d.sync("us", r)
	// 50 to begin with, 5/s for 2 s by a clock that may run fast, and one.
	if got := d.s.Leases[0].Used; got != 61 || d.pool().Totals.Alarms != 1 {
		t.Errorf("booked %d with %d alarms, want 61 and 1", got, d.pool().Totals.Alarms)
	}
}

// A region whose clock is fast mints more than the ledger's slow one can see.
// What it says is true and no alarm. Seen to fail when only one of the two
// clocks is taken to be wrong.
func TestShareUsedUnderTheWorstClocks(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic), reserve("us", 500, 50))
	d.cfg.Clocks = lease.Clocks{DriftPPM: 100_000}
	d.sync("us", share("u", 1, 0, 0))
	d.pass(9 * time.Second) // of ten, in which the region counts eleven
	r := share("u", 2, 500, 50)
	r.Used = 50 + 11*500
	d.sync("us", r)
	if got := d.s.Leases[0].Used; got != r.Used || d.pool().Totals.Alarms != 0 {
		t.Errorf("booked %d with %d alarms, want %d and none", got, d.pool().Totals.Alarms, r.Used)
	}
}

// Regrant frees a lost share but for what processes may hold of it, and grants
// at once, starting empty. Only the share that is named goes.
func TestRegrant(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("us", 1000, 100))
	d.sync("us", share("old", 1, 0, 0))
	st := d.sync("us", share("new", 1, 0, 0))
	if st.Status != lease.NotPlanned || st.Holder != "old" || st.RetryAfter <= 0 {
		t.Fatalf("answered %+v, want the holder's name", st)
	}
	r := share("new", 2, 0, 0)
	r.Regrant = "older still"
	if st := d.sync("us", r); st.Holder != "old" {
		t.Fatalf("a late name freed a share: %+v", st)
	}
	r.Seq, r.Regrant = 3, "old"
	st = d.sync("us", r)
	if st.Status != lease.Active || st.Granted != 0 || st.Beta != 75 || st.X.Tokens != 1000 {
		t.Errorf("granted %+v, want all of x and what a quarter's prefetch leaves of beta", st)
	}
	d.expect("both are counted", 0, 100)
	old := d.s.find("us", lease.Reserve, "old")
	if old.Ending != Regranted || old.Hold != lease.PrefetchLimit(100) {
		t.Errorf("the old share is %+v", old)
	}
	d.pass(old.Reclaim.Sub(d.now.Governed))
	d.sync("us", share("new", 4, 1000, 75))
	if old := d.s.find("us", lease.Reserve, "old"); old.Hold != 0 {
		t.Errorf("the remainder is still %d", old.Hold)
	}
	if got := d.s.find("us", lease.Reserve, "new").Beta; got != 100 {
		t.Errorf("the new share grew to %d, want 100", got)
	}
}

// A region goes on naming the share that its store has lost until it is granted
// one. If the lost one has expired meanwhile, and the pool is full again, the
// new one takes its tokens from the pool. Seen to fail when every share that
// names a lost one starts empty: then there never is room for it.
func TestRegrantOfAnExpiredShare(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("eu", 500, 50), reserve("us", 500, 50))
	d.sync("us", share("old", 1, 0, 0))
	d.sync("eu", share("other", 1, 0, 0))
	d.pass(59 * time.Minute)
	d.sync("eu", share("other", 2, 500, 50))
	d.pass(3 * time.Minute)
	d.sweep()
	d.pass(time.Second)
	d.sweep()
	d.expect("expired, and minted anew", 50, 50)
	r := share("new", 1, 0, 0)
	r.Regrant = "old"
	if st := d.sync("us", r); st.Status != lease.Active || st.X.Tokens != 500 || st.Beta != 50 || st.Granted != 50 {
		t.Errorf("answered %+v, want the whole share", st)
	}
}

func TestNoRegrantWhereTheOwnerWaits(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("us", 1000, 100))
	d.s.Budget.OnStoreLoss = policy.Wait
	d.sync("us", share("old", 1, 0, 0))
	r := share("new", 1, 0, 0)
	r.Regrant = "old"
	if st := d.sync("us", r); st.Status != lease.NotPlanned || st.Holder != "old" {
		t.Errorf("answered %+v, want the holder", st)
	}
	d.pass(2 * time.Hour)
	r.Seq = 2
	if st := d.sync("us", r); st.Status != lease.Active || st.X.Tokens != 1000 {
		t.Errorf("answered %+v once the old share expired", st)
	}
}

// A share of a closing kind is all prefetched; a regrant must not take three
// quarters of it for gone.
func TestRegrantOfAClosingShare(t *testing.T) {
	d := newDesk(t, bucket(1000, 100, policy.Static), reserve("us", 1000, 100))
	d.sync("us", share("old", 1, 0, 0))
	d.sync("us", lease.Report{Kind: lease.Reserve, Incarnation: "old", Seq: 2, Prefetched: 20, Closed: true})
	r := share("new", 1, 0, 0)
	r.Regrant = "old"
	d.sync("us", r)
	if old := d.s.find("us", lease.Reserve, "old"); old.Hold != 20 {
		t.Errorf("%d of 20 prefetched tokens stay counted", old.Hold)
	}
}
