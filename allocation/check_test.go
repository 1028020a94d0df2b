package allocation

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// busy returns a state that has something in most of its rows.
func busy(t *testing.T) *State {
	d := newDesk(t, bucket(1000, 100, policy.Dynamic),
		Target{Region: "us", Reserve: Share{X: 500, Beta: 40}, Lumps: true, Lump: 30, Keep: 30})
	d.sync("us", share("s", 1, 0, 0))
	d.sync("us", lump("l", 1, 30))
	d.sync("us", lump("lost", 1, 5))
	d.sync("us", lease.Report{Kind: lease.Lump, Incarnation: "l", Seq: 2, Used: 10, Returned: 3, Want: 20})
	d.item("us", lease.Item{Local: []lease.LocalUse{{Source: "s", Total: 4}}})
	d.pass(5 * time.Second)
	d.sync("us", lump("l", 3, 20))
	d.pass(6 * time.Second)
	d.sweep()
	return d.s
}

// The audit names the row at which the stored numbers stop adding up. Every
// row here was broken by hand, one count at a time.
func TestInvariant1ConservationIsAudited(t *testing.T) {
	if found := Audit(*busy(t)); len(found) != 0 {
		t.Fatalf("an honest state is accused: %v", found)
	}
	for name, c := range map[string]struct {
		row    string
		tamper func(s *State)
	}{
		"a token appears in the pool": {"pool", func(s *State) { s.Pools[0].Available++ }},
		"minted more":                 {"pool", func(s *State) { s.Pools[0].Totals.Minted++ }},
		"debt forgotten":              {"pool", func(s *State) { s.Pools[0].Totals.Debt-- }},
		"clamped less":                {"pool", func(s *State) { s.Pools[0].Totals.Clamped-- }},
		"outstanding too low":         {"pool", func(s *State) { s.Pools[0].Outstanding-- }},
		"x too low":                   {"pool", func(s *State) { s.Pools[0].X-- }},
		"a lump's grant":              {"lease us/lump/l", func(s *State) { s.find("us", lease.Lump, "l").Granted++ }},
		"a lump's use":                {"lease us/lump/l", func(s *State) { s.find("us", lease.Lump, "l").Used-- }},
		"a lump's return":             {"lease us/lump/l", func(s *State) { s.find("us", lease.Lump, "l").Returned++ }},
		"a write-off":                 {"lease us/lump/lost", func(s *State) { s.find("us", lease.Lump, "lost").WrittenOff-- }},
		"an ended lump's hold":        {"lease us/lump/lost", func(s *State) { s.find("us", lease.Lump, "lost").Hold++ }},
		"a share's cap":               {"lease us/reserve/s", func(s *State) { s.find("us", lease.Reserve, "s").Beta++ }},
		"a share's use": {"lease us/reserve/s", func(s *State) {
			s.find("us", lease.Reserve, "s").Used = 1_000_000
		}},
		"a row is gone": {"pool", func(s *State) { s.Leases = s.Leases[1:] }},
		"a row of no pool": {"lease us/reserve/s", func(s *State) {
			s.find("us", lease.Reserve, "s").Window = 7
		}},
	} {
		s := busy(t)
		c.tamper(s)
		found := Audit(*s)
		if len(found) == 0 {
			t.Errorf("%s: not found", name)
			continue
		}
		first := found[0]
		if first.Row != c.row || first.Invariant != 1 || first.Budget != "tenant/budget" {
			t.Errorf("%s: found %v, want it in %q", name, first, c.row)
		}
		var v Violation
		if err := Check(s); !errors.As(err, &v) || v != first || !strings.Contains(err.Error(), c.row) {
			t.Errorf("%s: Check says %v, Audit %v", name, err, first)
		}
	}
}

// CheckStep sees what only two states show.
func TestCheckStepComparesStates(t *testing.T) {
	for name, c := range map[string]struct {
		invariant int
		tamper    func(s *State)
	}{
		"x grows above the rate": {2, func(s *State) {
			s.Pools[0].X += 1000
			s.find("us", lease.Reserve, "s").X += 1000
		}},
		"a debt is lent out": {2, func(s *State) {
			p := &s.Pools[0]
			p.Totals.Debt += p.Available
			p.Available = 0
			p.Outstanding += 100
			l := s.find("us", lease.Reserve, "s")
			l.Hold, l.Beta = l.Hold+100, l.Beta+100
		}},
		"the same sequence again": {3, func(s *State) {
			p := &s.Pools[0]
			p.Available--
			p.Totals.ShareGiven++
			s.find("us", lease.Reserve, "s").Granted++
		}},
		"an ended lease lives": {4, func(s *State) { s.find("us", lease.Lump, "lost").Ending = Closed }},
		"reclaim moves":        {4, func(s *State) { s.find("us", lease.Reserve, "s").Reclaim-- }},
		"minted from nothing": {6, func(s *State) {
			p := &s.Pools[0]
			p.Totals.Minted += 2
			p.Totals.Clamped += 2
		}},
		"minting goes back": {6, func(s *State) { s.Pools[0].MintedAt-- }},
	} {
		before, after := busy(t), busy(t)
		c.tamper(after)
		var v Violation
		if err := CheckStep(before, after); !errors.As(err, &v) || v.Invariant != c.invariant {
			t.Errorf("%s: found %v, want invariant %d", name, err, c.invariant)
		}
	}
}
