package sim

import (
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// budget is what is measured of one budget.
type budget struct {
	w        *world
	name     string
	index    int
	policy   policy.Budget
	contract string
	bound    *Bound

	tally   Tally
	regions []*regionMeter
	// ideal is the central bucket that gets every request; fed is driven by
	// what was admitted and falls below 0 where that was too much (Lindley);
	// police never does; life never forgets.
	ideal, fed, police, life bucket
	windows                  []*windowMeter
	any, lifetime            lease.Tokens
	anyAt                    time.Duration
	lifeBroken               bool
	// locally is set where a policy has ever let regions admit without a lease:
	// of a request's budgets, only such a one may be why it was.
	locally bool
	// windowEnd is the end of a quota's window on the ledger's clock.
	windowEnd lease.Time

	blame blame
	// dirty budgets are checked at the end of the event.
	dirty bool
	// yard are the regions' buckets of CountLocally.
	yard []*localCount

	heldSum, heldCount, strandedSum, strandedCount int64
	heldMost, strandedMost, deniedMost             lease.Tokens
	moves                                          []move
	move                                           int
	rebalanced                                     []time.Duration
	unbalanced                                     int
	items                                          int64
	series                                         *Series
	// excused is until when invariant 10 is not asked for, after commits were
	// lost.
	excused time.Duration
}

// move is a shift of demand to a region.
type move struct {
	at     time.Duration
	region int
}

// regionMeter is one region's part of a budget.
type regionMeter struct {
	tally Tally
	// deniedSince is when false denials began without an admission since; -1.
	deniedSince   time.Duration
	longest       time.Duration
	falselyDenied bool // since the last sample
	// cell counts the ideal's and the real admissions since cellStart.
	cellStart            time.Duration
	cellIdeal, cellReals lease.Tokens
}

func newBudget(w *world, index int, b policy.Budget) *budget {
	m := &budget{w: w, name: b.Name, index: index, contract: describe(b)}
	if bound, ok := w.o.Bounds[b.Name]; ok {
		m.bound = &bound
	}
	for range w.o.Topology.Regions {
		m.regions = append(m.regions, &regionMeter{deniedSince: -1})
	}
	for _, d := range w.o.Windows {
		m.windows = append(m.windows, newWindowMeter(d))
	}
	m.life.uncapped = true
	if w.o.Points > 0 {
		m.series = newSeries(w)
	}
	return m
}

func describe(b policy.Budget) string {
	c := b.Contract
	if c.IsQuota() {
		return formatTokens(c.Quota.N) + " per " + string(c.Quota.Per)
	}
	return policy.FormatRate(c.Rate) + " burst " + formatTokens(c.Burst)
}

func (b *budget) limit() lease.Tokens { return b.policy.Contract.Limit() }

// put makes a policy the one in force, from now on.
func (b *budget) put(p policy.Budget, first bool) {
	b.policy = p
	b.locally = b.locally || p.OnFailure.Mode == policy.AllowLocal
	now := b.w.now
	rate, burst := p.Contract.Rate, p.Contract.Burst
	if p.Contract.IsQuota() {
		rate, burst = lease.Rate{}, p.Contract.Quota.N
	}
	if p.Deleted {
		rate, burst = lease.Rate{}, 0
	}
	for _, k := range [...]*bucket{&b.ideal, &b.fed, &b.police, &b.life} {
		old, level := k.burst, k.level
		k.change(now, rate, burst)
		switch {
		case first:
			k.level = burst
		case p.Contract.IsQuota() && !k.uncapped:
			k.level = min(level+burst-old, burst)
		}
	}
	for _, m := range b.windows {
		m.allow(rate, burst)
	}
	for _, y := range b.yard {
		y.change(now, rate, burst, first)
	}
}

// advance brings all buckets up to now.
func (b *budget) advance() {
	now := b.w.now
	if b.policy.Contract.IsQuota() {
		b.roll()
	}
	b.ideal.advance(now)
	b.fed.advance(now)
	b.life.advance(now)
	if b.police.advance(now) && b.police.burst > 0 {
		b.blame.forget(now)
	}
}

// roll begins a quota's next window when the ledger's clock says so.
func (b *budget) roll() {
	wall := b.w.db.clock.time(b.w.now)
	if wall < b.windowEnd {
		return
	}
	q := b.policy.Contract.Quota
	_, end, err := policy.Window(q.Zone, q.Per, wall)
	if err != nil {
		return
	}
	first := b.windowEnd == 0
	b.windowEnd = end
	if first || b.policy.Deleted {
		return
	}
	if b.w.db.jumped { // else the leases of the window before are over
		b.blame.stepped += b.outstanding()
	}
	for _, k := range [...]*bucket{&b.ideal, &b.fed, &b.police} {
		k.level, k.carry = q.N, 0
	}
	b.life.level += q.N
	b.blame.forget(b.w.now)
	for _, m := range b.windows {
		m.allow(lease.Rate{}, q.N)
	}
}

// offer books n requests and what the ideal bucket makes of them.
func (b *budget) offer(region int, n int64, cost lease.Tokens) {
	b.advance()
	r := b.regions[region]
	all := lease.Tokens(n) * cost
	ideal := lease.Tokens(b.ideal.fit(n, cost)) * cost
	b.ideal.level -= ideal
	for _, t := range [...]*Tally{&b.tally, &r.tally} {
		t.Offered += n
		t.OfferedTokens += all
		t.IdealTokens += ideal
	}
	b.cell(region)
	r.cellIdeal += ideal
	if b.series != nil {
		b.series.offer(b.w.now, region, all, ideal)
	}
}

// outcome books what came of n requests.
func (b *budget) outcome(region int, n, admitted int64, cost lease.Tokens, a agent.Answer, class CauseName) {
	b.advance()
	r := b.regions[region]
	tokens := lease.Tokens(admitted) * cost
	if admitted > 0 {
		b.admit(tokens, class)
		r.admitted(b.w.now)
		b.cell(region)
		r.cellReals += tokens
	}
	refused := n - admitted
	falsely := b.fed.fit(refused, max(cost, 1))
	for _, t := range [...]*Tally{&b.tally, &r.tally} {
		t.Admitted += admitted
		t.AdmittedTokens += tokens
		if class == CauseLocal {
			t.LocalTokens += tokens
		}
		if a.Outcome == agent.Denied {
			t.Denied += refused
		} else {
			t.Unavailable += refused
		}
		t.FalselyDenied += falsely
	}
	if refused > 0 {
		if falsely > 0 {
			b.deniedMost = max(b.deniedMost, b.fed.level)
		}
		r.refused(b.w.now, falsely > 0)
	}
	if b.series != nil {
		b.series.outcome(b.w.now, region, tokens, lease.Tokens(refused)*cost)
	}
}

// admit drives the buckets and meters with admitted tokens.
func (b *budget) admit(n lease.Tokens, class CauseName) {
	now := b.w.now
	b.fed.level -= n
	if over := -b.fed.level; over > b.any {
		b.any, b.anyAt = over, now
	}
	b.life.level -= n
	b.lifetime = max(b.lifetime, -b.life.level)
	b.checkLifetime()
	for _, m := range b.windows {
		m.admit(now, n)
	}
	fits := max(0, min(n, b.police.level))
	b.police.level -= fits
	b.blame.spend(b, fits, n-fits, class)
}

// checkLifetime compares the lifetime's excess with its promise, once.
func (b *budget) checkLifetime() {
	if b.bound == nil || b.bound.Lifetime == nil || b.lifeBroken || b.life.level >= 0 {
		return
	}
	if promised := b.bound.Lifetime(b.w.now); -b.life.level > promised {
		b.lifeBroken = true
		b.w.violate("lifetime bound", b.name, "%d above the contract, %d promised", -b.life.level, promised)
	}
}

func (r *regionMeter) admitted(now time.Duration) { r.endDenial(now) }

func (r *regionMeter) endDenial(now time.Duration) {
	if r.deniedSince >= 0 {
		r.longest = max(r.longest, now-r.deniedSince)
		r.deniedSince = -1
	}
}

func (r *regionMeter) refused(now time.Duration, falsely bool) {
	if !falsely {
		r.endDenial(now)
		return
	}
	r.falselyDenied = true
	if r.deniedSince < 0 {
		r.deniedSince = now
	}
}

// balanceCell is how finely a rebalance is timed, balancedAt the part of the
// ideal's admissions at which it is over.
const (
	balanceCell = 100 * time.Millisecond
	balancedAt  = 0.9
)

// cell ends cells of the balance that are over.
func (b *budget) cell(region int) {
	r := b.regions[region]
	now := b.w.now
	if now < r.cellStart+balanceCell {
		return
	}
	if b.move < len(b.moves) && b.moves[b.move].region == region {
		m := b.moves[b.move]
		if r.cellStart >= m.at && r.cellIdeal > 0 && float64(r.cellReals) >= balancedAt*float64(r.cellIdeal) {
			b.rebalanced = append(b.rebalanced, r.cellStart+balanceCell-m.at)
			b.move++
		}
	}
	r.cellStart = now / balanceCell * balanceCell
	r.cellIdeal, r.cellReals = 0, 0
	for b.move+1 < len(b.moves) && b.moves[b.move+1].at <= now { // the next one came first
		b.rebalanced = append(b.rebalanced, b.moves[b.move+1].at-b.moves[b.move].at)
		b.unbalanced++
		b.move++
	}
}

// warm forgets what was counted up to now, save for over-admission.
func (b *budget) warm() {
	b.tally, b.items = Tally{}, 0
	b.heldSum, b.heldCount, b.heldMost = 0, 0, 0
	b.strandedSum, b.strandedCount, b.strandedMost, b.deniedMost = 0, 0, 0, 0
	b.ideal.level = max(0, b.fed.level) // from here on both see the same
	for _, r := range b.regions {
		r.tally, r.longest, r.falselyDenied = Tally{}, 0, false
		if r.deniedSince >= 0 {
			r.deniedSince = b.w.now
		}
	}
	for b.move < len(b.moves) && b.moves[b.move].at <= b.w.now {
		b.move++
	}
	b.rebalanced, b.unbalanced = nil, 0
}

// sample looks at what lies where.
func (b *budget) sample() {
	held := b.w.held(b)
	var sum, stranded lease.Tokens
	for _, n := range held {
		sum += n
	}
	falsely := false
	for i, r := range b.regions {
		if r.falselyDenied {
			falsely = true
			stranded = max(stranded, sum-held[i])
			r.falselyDenied = false
		}
	}
	b.heldSum, b.heldCount, b.heldMost = b.heldSum+int64(sum), b.heldCount+1, max(b.heldMost, sum)
	if falsely {
		b.strandedSum, b.strandedCount = b.strandedSum+int64(stranded), b.strandedCount+1
		b.strandedMost = max(b.strandedMost, stranded)
	}
}
