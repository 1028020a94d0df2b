package allocation

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func named(i int) lease.Incarnation { return lease.Incarnation(fmt.Sprintf("i%05d", i)) }

// A budget that is used now and then opens and closes a lump each time. Its
// rows stay few, its account is whole, and the leases that ended last are
// still known. Seen to fail without forgetEnded, and when it forgets the
// latest instead of the first.
func TestFlappingBudgetKeepsFewRows(t *testing.T) {
	for _, b := range []policy.Budget{bucket(10, 100, policy.Dynamic), quota(100_000, policy.Dynamic)} {
		d := newDesk(t, b, lumps(5, "us")...)
		const times = 300
		for i := range times {
			d.sync("us", lump(named(i), 1, 5))
			d.pass(2 * time.Second)
			st := d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: named(i), Seq: 2, Used: 2, Returned: 3, Closed: true})
			if st.Status != lease.Ended {
				t.Fatalf("closing is answered %+v", st)
			}
			if len(d.s.Leases) > maxEnded+1 {
				t.Fatalf("%d rows after %d leases", len(d.s.Leases), i+1)
			}
		}
		if found := Audit(*d.s); len(found) > 0 {
			t.Error(found[0])
		}
		if p := d.pool(); p.Totals.LumpUsed != 2*times || p.Outstanding != 0 {
			t.Errorf("%d used and %d outstanding", p.Totals.LumpUsed, p.Outstanding)
		}
		for i := times - maxEnded; i < times; i++ {
			if st := d.sync("us", lump(named(i), 1, 5)); st.Status != lease.Ended {
				t.Errorf("a late first request of lease %d is answered %+v", i, st)
			}
		}
	}
}

// A store that loses share after share leaves few rows. Seen to fail without
// forgetEnded.
func TestRegrantsKeepFewRows(t *testing.T) {
	d := newDesk(t, bucket(1000, 3, policy.Static), reserve("us", 1000, 3))
	d.sync("us", share(named(0), 1, 0, 0))
	for i := range 100 {
		r := share(named(i+1), 1, 0, 0)
		r.Regrant = named(i)
		if st := d.sync("us", r); st.Status != lease.Active {
			t.Fatalf("the regrant is answered %+v", st)
		}
		if len(d.s.Leases) > maxEnded+1 {
			t.Fatalf("%d rows after %d shares", len(d.s.Leases), i+1)
		}
	}
}

// A store that loses lump after lump has to wait for some to expire, and then
// goes on. Seen to fail without tooManyLumps.
func TestLostLumpsAreBounded(t *testing.T) {
	d := newDesk(t, bucket(1000, 1000, policy.Dynamic), lumps(1, "us", "eu")...)
	granted := 0
	for i := range 200 {
		if d.sync("us", lump(named(i), 1, 1)).Status == lease.Active {
			granted++
		}
	}
	if granted != maxLumps || len(d.s.Leases) != maxLumps {
		t.Errorf("%d granted and %d rows, want %d", granted, len(d.s.Leases), maxLumps)
	}
	if st := d.sync("eu", lump("e", 1, 1)); st.Status != lease.Active {
		t.Errorf("another region is answered %+v", st)
	}
	d.pass(time.Minute)
	if st := d.sync("us", lump("fresh", 1, 1)); st.Status != lease.Active {
		t.Errorf("after they expired: %+v", st)
	}
}

// Whoever reports ever new counters of local admissions grows nothing, and
// what was owed stays owed. Seen to fail without forgetLocal.
func TestLocalCountersAreBounded(t *testing.T) {
	d := newDesk(t, bucket(1, 100, policy.Dynamic))
	for i := range 1000 {
		d.pass(time.Millisecond)
		d.item("us", lease.Item{Local: []lease.LocalUse{{Source: "kept", Total: 1}, {Source: string(named(i)), Total: 1}}})
	}
	d.item("eu", lease.Item{Local: []lease.LocalUse{{Source: "kept", Total: 1}}})
	if len(d.s.Locals) != maxLocals+1 {
		t.Errorf("%d counters", len(d.s.Locals))
	}
	if got := d.pool().Totals.Debt; got != 1002 {
		t.Errorf("%d owed, want 1002: a counter that speaks is not forgotten", got)
	}
}

// A budget that names no regions does not serve ever new ones. Seen to fail
// when serves lets every region in.
func TestUnnamedRegionsAreBounded(t *testing.T) {
	d := newDesk(t, bucket(10, 100, policy.Dynamic))
	for i := range maxRegions {
		if reply := d.item(string(named(i)), lease.Item{Demand: 1}); reply.Err != nil {
			t.Fatal(reply.Err)
		}
	}
	if reply := d.item("one more", lease.Item{Demand: 1}); lease.CodeOf(reply.Err) != lease.UnknownRegion {
		t.Errorf("answered %+v", reply)
	}
	if reply := d.item(string(named(0)), lease.Item{Demand: 1}); reply.Err != nil {
		t.Error(reply.Err)
	}
	d.pass(25 * time.Hour)
	d.sweep()
	if reply := d.item("one more", lease.Item{Demand: 1}); reply.Err != nil {
		t.Error(reply.Err)
	}
}
