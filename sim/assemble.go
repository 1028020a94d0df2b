package sim

import (
	"time"

	"github.com/ration-dev/ration/allocation"
)

// result puts together what was measured up to now.
func (w *world) result() *Result {
	for _, r := range w.regions {
		for _, s := range r.agents {
			if s.process != nil && !s.process.folded {
				w.fold(s.process)
			}
		}
	}
	r := &Result{
		Strategy: w.o.Strategy, Seed: w.o.Seed, Length: w.o.Length, Bulk: w.o.Bulk, Done: w.now,
		LeaseRPCs: w.rpcs, SyncItems: w.items, Events: w.eventsRun, Decisions: w.decisions,
	}
	for _, b := range w.budgets {
		b.advance()
		one := b.result()
		r.Budgets = append(r.Budgets, one)
		r.Total.add(&one.Tally)
		w.coverLedger(b)
	}
	r.RPCsPer1000 = ratio(1000*r.LeaseRPCs, r.Total.Offered, 0)
	r.Coverage, r.Marks, r.Found = w.coverage, w.marks, w.found
	return r
}

func (t *Tally) add(u *Tally) {
	t.Offered += u.Offered
	t.Admitted += u.Admitted
	t.Denied += u.Denied
	t.Unavailable += u.Unavailable
	t.FalselyDenied += u.FalselyDenied
	t.OfferedTokens += u.OfferedTokens
	t.AdmittedTokens += u.AdmittedTokens
	t.LocalTokens += u.LocalTokens
	t.IdealTokens += u.IdealTokens
}

// alarms counts the reports that the ledger had to clamp.
func (b *budget) alarms() (n int64) {
	if s := b.w.db.mem.Peek(b.name); s != nil {
		for i := range s.Pools {
			n += s.Pools[i].Totals.Alarms
		}
	}
	return n
}

// coverLedger counts how the leases ended that the ledger still has rows of.
func (w *world) coverLedger(b *budget) {
	s := w.db.mem.Peek(b.name)
	if s == nil {
		return
	}
	for i := range s.Leases {
		l := &s.Leases[i]
		switch l.Ending {
		case allocation.Expired:
			w.coverage.Expired++
		case allocation.Regranted:
			w.coverage.Regranted++
		case allocation.Closed:
			w.coverage.ClosedLease++
		}
		if l.LateUsed > 0 || l.LateReturned > 0 {
			w.coverage.LateTotals++
		}
	}
}

func (b *budget) result() BudgetResult {
	r := BudgetResult{
		Name: b.name, Contract: b.contract, Strategy: string(b.policy.Strategy), Tally: b.tally,
		Any:      WindowOver{Over: b.any, At: b.anyAt, Bound: -1},
		Lifetime: b.lifetime, LifetimeBound: -1,
		NonConforming: b.blame.total, Causes: b.blame.list(),
		HeldMean: ratio(b.heldSum, b.heldCount, 0), HeldMost: b.heldMost,
		StrandedMean: ratio(b.strandedSum, b.strandedCount, 0), StrandedMost: b.strandedMost, DeniedMost: b.deniedMost,
		SyncItems: b.items, Alarms: b.alarms(), Series: b.series,
	}
	if b.w.yardstick {
		r.Strategy = string(b.w.o.Strategy)
	}
	b.compare(&r)
	var sum, squares float64
	n := 0
	for i, m := range b.regions {
		m.endDenial(b.w.now)
		r.Regions = append(r.Regions, RegionResult{Name: b.w.regions[i].spec.Name, Tally: m.tally, LongestDenied: m.longest})
		r.LongestDenied = max(r.LongestDenied, m.longest)
		if m.tally.OfferedTokens > 0 {
			x := float64(m.tally.AdmittedTokens) / float64(m.tally.OfferedTokens)
			n++
			sum += x
			squares += float64(x * x)
		}
	}
	r.Jain = 1
	if squares > 0 {
		r.Jain = float64(sum*sum) / float64(float64(n)*squares)
	}
	b.rebalances(&r)
	return r
}

// compare sets what was observed beside what was promised.
func (b *budget) compare(r *BudgetResult) {
	for _, m := range b.windows {
		over := WindowOver{W: m.w, Over: max(0, m.over), At: m.at, Bound: -1}
		if b.bound != nil && b.bound.Window != nil {
			over.Bound = b.bound.Window(m.w)
			if over.Over > over.Bound {
				b.w.violate("window bound", b.name, "%d above the contract within %v up to %v, %d promised", over.Over, m.w, m.at, over.Bound)
			}
		}
		r.Over = append(r.Over, over)
	}
	if b.bound != nil && b.bound.Lifetime != nil {
		r.LifetimeBound = b.bound.Lifetime(b.w.now)
	}
	if b.bound != nil && b.bound.Window != nil {
		// What any window may exceed, the longest one may.
		r.Any.Bound = b.bound.Window(b.w.now)
		if r.Any.Over > r.Any.Bound {
			b.w.violate("window bound", b.name, "%d above the contract in some window up to %v, %d promised", r.Any.Over, r.Any.At, r.Any.Bound)
		}
	}
	if b.series != nil && b.bound != nil && b.bound.Window != nil {
		b.series.Bound = b.bound.Window(b.series.Every)
	}
}

func (b *budget) rebalances(r *BudgetResult) {
	if b.move < len(b.moves) && b.moves[b.move].at < b.w.now { // not over at the end
		b.rebalanced = append(b.rebalanced, b.w.now-b.moves[b.move].at)
		b.unbalanced++
	}
	r.Moves, r.Unbalanced = len(b.rebalanced), b.unbalanced
	var sum time.Duration
	for _, d := range b.rebalanced {
		sum += d
		r.RebalanceWorst = max(r.RebalanceWorst, d)
	}
	if r.Moves > 0 {
		r.RebalanceMean = (sum / time.Duration(r.Moves)).Truncate(time.Microsecond)
	}
}
