package allocation

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The headline case: two regions, a limit of 4, float 0. Whatever is asked,
// no more than 4 are out, and the pool's refill waits for what is out.
func TestInvariant2Ceiling(t *testing.T) {
	d := newDesk(t, bucket(4, 4, policy.Dynamic), lumps(4, "eu", "us")...)
	us := d.sync("us", lump("u", 1, 3))
	eu := d.sync("eu", lump("e", 1, 3))
	if us.Granted != 3 || eu.Granted != 1 || eu.Short != lease.PoolEmpty && eu.Short != lease.CeilingReached {
		t.Errorf("granted %d and %d (%v), want 3 and 1", us.Granted, eu.Granted, eu.Short)
	}
	d.pass(5 * time.Second)
	d.sweep()
	d.expect("full of leases", 0, 4)
	us = d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "u", Seq: 2, Want: 3, Used: 2})
	if us.Granted != 3 {
		t.Errorf("granted %d before anything was minted", us.Granted)
	}
	d.pass(250 * time.Millisecond)
	if eu = d.sync("eu", lump("e", 2, 3)); eu.Granted != 2 {
		t.Errorf("granted %d of the one token that was minted since", eu.Granted)
	}
}

// Grants come in pieces, so that one processed twice would show. Seen to fail
// when isNew takes an equal sequence, or an older one, for a newer one.
func TestInvariant3SingleGrant(t *testing.T) {
	d := newDesk(t, bucket(1, 100, policy.Dynamic), lumps(10, "us")...)
	d.plan[0].Piece = 5
	first := d.sync("us", lump("i", 1, 10))
	spent := lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Want: 10, Used: 5}
	second := d.sync("us", spent)
	if second.Granted != 10 {
		t.Fatalf("granted %d, want 10", second.Granted)
	}
	d.pass(3 * time.Second)
	if again := d.sync("us", spent); again != second {
		t.Errorf("the same sequence got %+v, want %+v again", again, second)
	}
	if older := d.sync("us", lump("i", 1, 10)); older != second {
		t.Errorf("an older sequence got %+v, want the current state %+v; its first answer was %+v", older, second, first)
	}
	d.expect("granted twice, each once", 93, 5)
}

// A replay still changes the state, so that a store which writes what changed
// makes its answer durable.
func TestReplayLeavesATrace(t *testing.T) {
	d := newDesk(t, bucket(1, 100, policy.Dynamic), lumps(10, "us")...)
	d.sync("us", lump("i", 1, 10))
	d.pass(time.Microsecond)
	d.sync("us", lump("i", 1, 10))
	if got := d.s.Regions[0].SeenAt; got != d.now.Governed {
		t.Errorf("seen at %d, want %d", got, d.now.Governed)
	}
}

// Nothing that expires is credited, and no sequence revives it. Seen to fail
// when settle expires at the deadline instead of the reclaim.
func TestInvariant4NoEarlyReclaim(t *testing.T) {
	d := newDesk(t, bucket(0, 10, policy.Dynamic), lumps(6, "us")...)
	granted := d.sync("us", lump("i", 1, 6))
	d.pass(granted.TTL + lease.DefaultClocks().Guard(granted.TTL) - time.Microsecond)
	d.sweep()
	d.expect("a microsecond before the reclaim", 4, 6)
	d.pass(time.Microsecond)
	d.sweep()
	d.expect("at the reclaim", 4, 0)
	late := lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 1, Returned: 5, Want: 6}
	if st := d.sync("us", late); st.Status != lease.Ended || st.Seq != 2 {
		t.Errorf("answered %+v, want ended", st)
	}
	d.expect("late totals credit nothing", 4, 0)
	l := d.s.Leases[0]
	if l.WrittenOff != 6 || l.LateUsed != 1 || l.LateReturned != 5 || l.LateCredited != 0 {
		t.Errorf("booked %+v", l)
	}
}

// A shorter ttl, or a lost answer, never brings the reclaim forward.
func TestReclaimNeverMovesEarlier(t *testing.T) {
	d := newDesk(t, bucket(1, 10, policy.Dynamic), lumps(6, "us")...)
	d.sync("us", lump("i", 1, 6))
	reclaim := d.s.Leases[0].Reclaim
	d.set(func(b *policy.Budget) { b.TTL = time.Second })
	if st := d.sync("us", lump("i", 2, 6)); st.TTL != time.Second {
		t.Errorf("ttl %v, want the new one", st.TTL)
	}
	if got := d.s.Leases[0].Reclaim; got != reclaim {
		t.Errorf("reclaim moved from %d to %d", reclaim, got)
	}
}

func TestReturnedIsCreditedOnce(t *testing.T) {
	d := newDesk(t, bucket(0, 10, policy.Dynamic), lumps(6, "us")...)
	d.sync("us", lump("i", 1, 6))
	for seq := uint64(2); seq < 5; seq++ {
		d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: seq, Returned: 4})
		d.expect("after the return", 8, 2)
	}
}

// What a report claims beyond what is possible is clamped, and nothing but an
// alarm comes of it.
func TestImpossibleTotalsAreClamped(t *testing.T) {
	d := newDesk(t, bucket(0, 10, policy.Dynamic), lumps(6, "us")...)
	d.sync("us", lump("i", 1, 6))
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: 2, Returned: lease.MaxTokens})
	d.expect("at most what was granted comes back", 8, 0)
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 3, Used: lease.MaxTokens})
	if got := d.pool().Totals; got.Alarms != 2 || got.LumpUsed != 2 {
		t.Errorf("%d alarms and %d used, want 2 and 2", got.Alarms, got.LumpUsed)
	}
}

// Once a lump is fenced and nothing of it is in any process's memory, what the
// ledger still counts was granted by a reply that nobody can install any more.
func TestCloseTakesBackWhatNeverArrived(t *testing.T) {
	d := newDesk(t, bucket(0, 20, policy.Dynamic), lumps(6, "us")...)
	d.sync("us", lump("i", 1, 6)) // the reply is lost, and the next as well
	d.sync("us", lump("i", 2, 8))
	closing := lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 3, Used: 1, Returned: 2, Prefetched: 3, Closed: true}
	if st := d.sync("us", closing); st.Status != lease.Active {
		t.Errorf("answered %+v while tokens are in processes", st)
	}
	d.expect("three are prefetched", 16, 3)
	closing.Seq, closing.Used, closing.Prefetched = 4, 2, 0
	if st := d.sync("us", closing); st.Status != lease.Ended {
		t.Errorf("answered %+v, want ended", st)
	}
	d.expect("closed", 18, 0)
}

func TestNewIncarnationsLeaveNoRowWithoutAGrant(t *testing.T) {
	d := newDesk(t, bucket(1, 5, policy.Dynamic), lumps(5, "us")...)
	d.sync("us", lump("i", 1, 5))
	for i, c := range []struct {
		region string
		r      lease.Report
		short  lease.Shortage
	}{
		{"us", lump("j", 1, 5), lease.CeilingReached},
		{"eu", lump("k", 1, 5), lease.Enough}, // no lump is planned there
		{"us", lease.Report{Kind: lease.Paced, Incarnation: "l", Seq: 1}, lease.Enough},
	} {
		st := d.sync(c.region, c.r)
		if st.Status != lease.NotPlanned || st.Short != c.short || st.Seq != 1 || len(d.s.Leases) != 1 {
			t.Errorf("case %d: answered %+v with %d rows", i, st, len(d.s.Leases))
		}
	}
}

// A report that can only come from a lease that was granted, but has no row,
// is of one that was purged.
func TestPurgedLeaseStaysEnded(t *testing.T) {
	d := newDesk(t, bucket(1, 5, policy.Dynamic), lumps(5, "us")...)
	d.sync("us", lump("i", 1, 5))
	d.pass(time.Minute)
	d.sweep()
	d.pass(24 * time.Hour)
	d.sweep()
	if len(d.s.Leases) != 0 {
		t.Fatalf("%d rows after the keeping time", len(d.s.Leases))
	}
	if got := d.pool().Totals; got.PurgedGranted != 5 || got.PurgedWrittenOff != 5 {
		t.Errorf("purged sums %+v", got)
	}
	if st := d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 9, Used: 3, Want: 5}); st.Status != lease.Ended {
		t.Errorf("answered %+v, want ended", st)
	}
}

// A first request that is repeated after its row was forgotten is granted
// again, and its store cannot install that: the tokens come to nothing, and no
// other one exists.
func TestRepetitionAfterThePurgeStrandsItsLump(t *testing.T) {
	d := newDesk(t, bucket(0, 5, policy.Dynamic), lumps(5, "us")...)
	first := lump("i", 1, 3)
	d.sync("us", first)
	d.expect("granted", 2, 3)
	d.pass(time.Minute)
	d.sweep()
	d.pass(24 * time.Hour)
	d.sweep()
	d.expect("written off", 2, 0)
	if st := d.sync("us", first); st.Status != lease.Active || st.Granted != 2 {
		t.Errorf("answered %+v", st)
	}
	d.expect("stranded", 0, 2)
	d.pass(time.Minute)
	d.sweep()
	d.expect("written off again", 0, 0)
}

func TestItemsRefusedWhole(t *testing.T) {
	b := bucket(1, 5, policy.Dynamic, policy.Region{Name: "eu"}, policy.Region{Name: "us"})
	d := newDesk(t, b, lumps(5, "eu", "us")...)
	d.sync("us", lump("i", 1, 2))
	paced := lease.Report{Kind: lease.Paced, Incarnation: "i", Seq: 1}
	for _, c := range []struct {
		note, region string
		leases       []lease.Report
		code         lease.Code
	}{
		{"another region's incarnation", "eu", []lease.Report{lump("i", 2, 3)}, lease.Foreign},
		{"another kind's", "us", []lease.Report{paced}, lease.Foreign},
		{"one for two kinds", "us", []lease.Report{lump("n", 1, 1), {Kind: lease.Paced, Incarnation: "n", Seq: 1}}, lease.Foreign},
		{"a region the budget does not list", "ap", []lease.Report{lump("a", 1, 3)}, lease.UnknownRegion},
	} {
		reply := d.item(c.region, lease.Item{Leases: c.leases, Local: []lease.LocalUse{{Source: "s", Total: 5}}})
		if reply.Err == nil || reply.Err.Code != c.code || len(reply.Leases) != 0 {
			t.Errorf("%s: %+v", c.note, reply)
		}
		d.expect(c.note, 3, 2)
	}
}

// Local admissions lower the pool, below zero if need be, each once; minting
// pays the debt before anything is granted again.
func TestLocalAdmissionsAreDebt(t *testing.T) {
	d := newDesk(t, bucket(10, 5, policy.Dynamic), lumps(5, "us")...)
	local := func(totals ...lease.Tokens) {
		it := lease.Item{}
		for i, n := range totals {
			it.Local = append(it.Local, lease.LocalUse{Source: string(rune('a' + i)), Total: n})
		}
		d.item("us", it)
	}
	local(7, 3)
	local(7, 3)
	local(6, 4)
	d.expect("eleven owed of five", -6, 0)
	d.pass(600 * time.Millisecond)
	d.sweep()
	d.expect("paid", 0, 0)
	if got := d.pool().Totals.Debt; got != 11 {
		t.Errorf("debt booked %d, want 11", got)
	}
}

// A counter that cannot be true does not deny the budget for ever: debt is
// bounded by what an outage of a day could cost, under deny by what the budget
// itself mints. Caught: debt down to -MaxTokens.
func TestDebtStopsAtWhatCanBeTrue(t *testing.T) {
	const day = 24 * 60 * 60
	for _, c := range []struct {
		name  string
		local policy.Failure
		most  lease.Tokens
	}{
		{"deny", policy.Failure{Mode: policy.Deny}, 5 + 10*day},
		{"allow_local", policy.Failure{Mode: policy.AllowLocal, Rate: perSecondRate(3), Burst: 7}, 5 + 10*day + 2*(7+3*day)},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := bucket(10, 5, policy.Dynamic)
			b.OnFailure = c.local
			d := newDesk(t, b, lumps(5, "us", "eu")...)
			d.item("eu", lease.Item{})
			local := func(total lease.Tokens) {
				d.item("us", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: total}, {Source: "t", Total: total}}})
			}
			local(c.most / 2)
			if got := d.pool().Totals; got.Debt != c.most/2*2 || got.Alarms != 0 {
				t.Errorf("of what can be true %d is owed, %d alarms", got.Debt, got.Alarms)
			}
			local(lease.MaxTokens)
			d.expect("as deep as it gets", -c.most, 0)
			if d.pool().Totals.Alarms == 0 {
				t.Error("no alarm")
			}
		})
	}
}

// A lump whose totals come near what the wire carries ends once it is spent,
// and its successor starts from zero.
func TestWornOutLumpEnds(t *testing.T) {
	const most = lease.MaxTokens
	d := newDesk(t, bucket(0, most, policy.Dynamic), lumps(most, "us")...)
	d.sync("us", lump("i", 1, most/2))
	r := lease.Report{Kind: lease.Lump, Incarnation: "i", Seq: 2, Used: most / 2, Want: 10}
	if st := d.sync("us", r); st.Granted != most/2+10 {
		t.Fatalf("granted %d", st.Granted)
	}
	r.Seq, r.Used = 3, most/2+4
	if st := d.sync("us", r); st.Status != lease.Active || st.Granted != most/2+10 {
		t.Errorf("answered %+v, want nothing more", st)
	}
	r.Seq, r.Used = 4, most/2+10
	if st := d.sync("us", r); st.Status != lease.Ended {
		t.Errorf("answered %+v, want ended", st)
	}
	if st := d.sync("us", lump("j", 1, 10)); st.Granted != 10 {
		t.Errorf("the successor is answered %+v", st)
	}
}
