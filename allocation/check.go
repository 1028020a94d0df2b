package allocation

import (
	"fmt"

	"github.com/ration-dev/ration/lease"
)

// Violation is an invariant that does not hold.
type Violation struct {
	// Invariant is its number in the design, 1 to 10, and Name its word.
	Invariant int
	Name      string
	Budget    string
	// Row names the pool or the lease at fault.
	Row string
	// Detail has the numbers.
	Detail string
}

func (v Violation) Error() string {
	return fmt.Sprintf("invariant %d (%s) does not hold: budget %q, %s: %s", v.Invariant, v.Name, v.Budget, v.Row, v.Detail)
}

// Check returns the first Violation that the state by itself shows, or nil:
// of conservation, of the ceiling, of a single grant, and of crediting what
// only time may mint.
//
// After a cut X may stand above the rate, and the sum above the ceiling, but
// not with tokens left in the pool. That neither grows meanwhile is seen by
// CheckStep.
func Check(s *State) error {
	c := checker{state: s}
	c.conservation()
	c.ceilings()
	c.singleGrant()
	if len(c.found) == 0 {
		return nil
	}
	return c.found[0]
}

// CheckStep returns the first Violation that the step from before to after
// shows, Check(after) included. before is nil for a new budget. Beside the
// state's own invariants: what stands above a rate or ceiling must not grow,
// nothing mints but time, an ended lease stays ended, reclaim never moves
// earlier, no sequence is granted twice, and a lease's totals never fall.
func CheckStep(before, after *State) error {
	if err := Check(after); err != nil || before == nil {
		return err
	}
	c := checker{state: after}
	for i := range after.Pools {
		if old := before.poolAt(after.Pools[i].Start); old != nil {
			c.poolStep(old, &after.Pools[i])
		}
	}
	for i := range before.Leases {
		old := &before.Leases[i]
		if l := after.find(old.Region, old.Kind, old.Incarnation); l != nil {
			c.leaseStep(old, l)
		}
	}
	if len(c.found) == 0 {
		return nil
	}
	return c.found[0]
}

// Audit proves conservation from the stored rows alone, pool by pool: the
// totals add up, and they are the sums of the rows. It returns every row at
// which that fails.
func Audit(s State) []Violation {
	c := checker{state: &s}
	c.conservation()
	return c.found
}

func (s *State) poolAt(start lease.Time) *Pool {
	for i := range s.Pools {
		if s.Pools[i].Start == start {
			return &s.Pools[i]
		}
	}
	return nil
}

type checker struct {
	state *State
	found []Violation
}

func (c *checker) fail(invariant int, name, row, format string, args ...any) {
	c.found = append(c.found, Violation{
		Invariant: invariant, Name: name, Budget: c.state.Budget.Name,
		Row: row, Detail: fmt.Sprintf(format, args...),
	})
}

func poolRow(p *Pool) string {
	if !p.isWindow() {
		return "pool"
	}
	return fmt.Sprintf("pool of window %d", p.Start)
}

func leaseRow(l *Lease) string {
	return fmt.Sprintf("lease %s/%s/%s", l.Region, l.Kind, l.Incarnation)
}

// equal fails unless a and b, both named, are the same.
func (c *checker) equal(row, what string, a lease.Tokens, from string, b lease.Tokens) {
	if a != b {
		c.fail(1, conservation, row, "%s is %d, %s %d", what, a, from, b)
	}
}

const (
	conservation = "conservation"
	ceiling      = "ceiling"
	singleGrant  = "single grant"
	noEarly      = "no early reclaim"
	onlyTime     = "nothing mints but time"
)

// conservation proves invariant 1: each row by itself, each total as the sum
// of the rows and of what was purged, and the account as a whole.
func (c *checker) conservation() {
	for i := range c.state.Leases {
		c.leaseAccount(&c.state.Leases[i])
	}
	for i := range c.state.Pools {
		c.poolAccount(&c.state.Pools[i])
	}
}

// leaseAccount proves one row.
func (c *checker) leaseAccount(l *Lease) {
	row := leaseRow(l)
	for _, n := range []lease.Tokens{l.Granted, l.Used, l.Returned, l.Hold, l.X, l.Beta, l.WrittenOff, l.LateUsed, l.LateReturned, l.LateCredited} {
		if n < 0 {
			c.fail(1, conservation, row, "a count is negative: %d", n)
		}
	}
	if c.state.poolOf(l) == nil {
		c.fail(1, conservation, row, "names no pool: window %d", l.Window)
	}
	if l.Kind == lease.Lump {
		c.equal(row, "hold plus written off", l.Hold+l.WrittenOff, "granted less used and returned", l.Granted-l.Used-l.Returned)
		if l.LateUsed+l.LateReturned > l.WrittenOff {
			c.fail(1, conservation, row, "late totals %d and %d exceed what was written off, %d", l.LateUsed, l.LateReturned, l.WrittenOff)
		}
		if !l.unended() {
			c.equal(row, "hold of an ended lump", l.Hold, "should be", 0)
		}
		return
	}
	if l.Used+l.Returned > l.shareLimit() {
		c.fail(1, conservation, row, "used %d and returned %d exceed given %d and minted %d", l.Used, l.Returned, l.Granted, l.Minted)
	}
	if l.unended() {
		c.equal(row, "hold of a share", l.Hold, "its cap is", l.Beta)
	} else {
		c.equal(row, "x of an ended share", l.X, "should be", 0)
	}
}

// poolAccount proves one pool.
func (c *checker) poolAccount(p *Pool) {
	row, t, sums, holds := poolRow(p), &p.Totals, Totals{}, lease.Tokens(0)
	x, outstanding := lease.Tokens(0), lease.Tokens(0)
	for i := range c.state.Leases {
		l := &c.state.Leases[i]
		if l.Window != p.Start {
			continue
		}
		sums.purge(l)
		sums.LateCredited += l.LateCredited
		x += l.X
		outstanding += l.Hold
		if l.Kind == lease.Lump {
			holds += l.Hold
		}
	}
	const rows = "rows and purged sum to"
	c.equal(row, "leased rate", p.X, "rows sum to", x)
	c.equal(row, "outstanding", p.Outstanding, "rows sum to", outstanding)
	c.equal(row, "given to shares", t.ShareGiven, rows, sums.PurgedGiven+t.PurgedGiven)
	c.equal(row, "returned by shares", t.ShareReturned, rows, sums.PurgedShareReturned+t.PurgedShareReturned)
	c.equal(row, "used by shares", t.ShareUsed, rows, sums.PurgedShareUsed+t.PurgedShareUsed)
	c.equal(row, "granted to lumps", t.LumpGranted, rows, sums.PurgedGranted+t.PurgedGranted)
	c.equal(row, "used by lumps", t.LumpUsed, rows, sums.PurgedUsed+t.PurgedUsed)
	c.equal(row, "returned by lumps", t.LumpReturned, rows, sums.PurgedReturned+t.PurgedReturned)
	c.equal(row, "written off of lumps", t.LumpWrittenOff, rows, sums.PurgedWrittenOff+t.PurgedWrittenOff)
	if sums.LateCredited > t.LateCredited {
		c.fail(1, conservation, row, "credited late is %d, rows sum to %d", t.LateCredited, sums.LateCredited)
	}
	in := t.Start + t.Minted + t.Adjusted
	out := p.Available + t.ShareGiven - t.ShareReturned + t.LumpUsed + holds + t.LumpWrittenOff + t.Debt + t.Clamped - t.LateCredited
	c.equal(row, "start, minted and adjusted", in, "the account has", out)
}

// ceilings proves what one state shows of invariant 2.
func (c *checker) ceilings() {
	for i := range c.state.Pools {
		p := &c.state.Pools[i]
		if p.Available > p.Burst && p.Available > 0 {
			c.fail(2, ceiling, poolRow(p), "available %d exceeds the burst %d", p.Available, p.Burst)
		}
		if p.Available > 0 && p.Available+p.Outstanding > p.ceiling() {
			c.fail(2, ceiling, poolRow(p), "available %d and outstanding %d exceed %d", p.Available, p.Outstanding, p.ceiling())
		}
	}
}

// singleGrant proves that no region has two live shares of one kind.
func (c *checker) singleGrant() {
	var last *Lease
	for i := range c.state.Leases {
		l := &c.state.Leases[i]
		if !l.Kind.IsShare() || !l.unended() {
			continue
		}
		if last != nil && last.Region == l.Region && last.Kind == l.Kind {
			c.fail(3, singleGrant, leaseRow(l), "%q holds a share of this kind too", last.Incarnation)
		}
		last = l
	}
}

func (c *checker) poolStep(old, p *Pool) {
	c.minting(old, p)
	if old.Rate != p.Rate || old.Burst != p.Burst || old.Float != p.Float {
		return
	}
	if grew(old.X, p.X, p.Rate.Tokens) {
		c.fail(2, ceiling, poolRow(p), "leased rate grew from %d to %d, above %d", old.X, p.X, p.Rate.Tokens)
	}
	if grew(old.Available+old.Outstanding, p.Available+p.Outstanding, p.ceiling()) {
		c.fail(2, ceiling, poolRow(p), "available and outstanding grew from %d and %d to %d and %d, above %d",
			old.Available, old.Outstanding, p.Available, p.Outstanding, p.ceiling())
	}
}

// minting proves of a step that nothing minted but time, at most at the rate
// that was in force.
func (c *checker) minting(old, p *Pool) {
	row := poolRow(p)
	if p.MintedAt < old.MintedAt {
		c.fail(6, onlyTime, row, "minting went back from %d to %d", old.MintedAt, p.MintedAt)
	}
	time, _ := old.Rate.Mint(p.MintedAt.Sub(old.MintedAt), 0)
	if minted := p.Totals.Minted - old.Totals.Minted; minted > time+1 {
		c.fail(6, onlyTime, row, "%d minted where time made %d", minted, time)
	}
	if p.Totals.Start != old.Totals.Start {
		c.fail(6, onlyTime, row, "start moved from %d to %d", old.Totals.Start, p.Totals.Start)
	}
	if p.Totals.LateCredited > old.Totals.LateCredited && !p.isWindow() {
		c.fail(6, onlyTime, row, "late totals were credited to a bucket")
	}
}

// grew reports whether now stands above limit by more than before did.
func grew(before, now, limit lease.Tokens) bool { return now > limit && now > before }

func (c *checker) leaseStep(old, l *Lease) {
	row := leaseRow(l)
	if !old.unended() && l.Ending != old.Ending {
		c.fail(4, noEarly, row, "ended as %s, now %q", old.Ending, l.Ending)
	}
	if old.unended() && l.Ending == Expired && l.EndedAt < old.Reclaim {
		c.fail(4, noEarly, row, "expired at %d, before its reclaim %d", l.EndedAt, old.Reclaim)
	}
	if l.Reclaim < old.Reclaim && l.Ending != Regranted {
		c.fail(4, noEarly, row, "reclaim moved from %d to %d", old.Reclaim, l.Reclaim)
	}
	if l.Seq < old.Seq {
		c.fail(3, singleGrant, row, "sequence went back from %d to %d", old.Seq, l.Seq)
	}
	if l.Seq == old.Seq && l.Granted > old.Granted {
		c.fail(3, singleGrant, row, "sequence %d was granted again: %d, now %d", l.Seq, old.Granted, l.Granted)
	}
	// What never arrived of a share's grants is taken out of its row again.
	if l.Granted < old.Granted && l.Kind == lease.Lump || l.Used < old.Used || l.Returned < old.Returned {
		c.fail(1, conservation, row, "a total fell")
	}
}
