package allocation

import (
	"math/bits"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// accrue brings l.Minted, the most that the region can have minted from x, to
// the present: by a clock as fast as the deployment's may be, while the
// ledger's is as slow, so by (1+rho)/(1-rho) times what the ledger saw pass.
// MintCarry is in token·microseconds times a million less the drift in ppm.
func (s *step) accrue(l *Lease) {
	per, now := s.poolOf(l).Rate.Per, s.now.Governed
	if now <= l.MintedAt {
		return
	}
	elapsed := now.Sub(l.MintedAt)
	l.MintedAt = now
	if l.X <= 0 || per <= 0 {
		return
	}
	const longest = 100 * 24 * time.Hour // its microseconds times 2e6 fit 64 bits
	drift := uint64(s.cfg.Clocks.DriftPPM)
	us := uint64(min(elapsed, longest)/time.Microsecond) * (1_000_000 + drift)
	period := uint64(per/time.Microsecond) * (1_000_000 - drift)
	hi, lo := bits.Mul64(us, uint64(l.X))
	lo, c := bits.Add64(lo, uint64(l.MintCarry), 0)
	hi += c
	if hi >= period {
		l.Minted, l.MintCarry = mostMinted, 0
		return
	}
	n, rest := bits.Div64(hi, lo, period)
	l.Minted = min(mostMinted, l.Minted+lease.Tokens(min(n, uint64(mostMinted))))
	l.MintCarry = int64(rest)
}

// mostMinted bounds Lease.Minted well inside its type.
const mostMinted lease.Tokens = 1 << 60

// shareLimit is the most that a share can have used and returned together.
func (l *Lease) shareLimit() lease.Tokens { return l.Granted + l.Minted + 1 }

// bookShare takes over what a newer sequence says about a share. Smaller x
// and beta are freed now that the region says it holds no more, and nothing
// is credited for them.
func (s *step) bookShare(l *Lease, r *lease.Report) {
	p := s.poolOf(l)
	s.accrue(l)
	used := max(l.Used, r.Used)
	if limit := l.shareLimit() - l.Returned; used > limit {
		used = max(l.Used, limit)
		p.Totals.Alarms++
	}
	p.Totals.ShareUsed += used - l.Used
	l.Used = used

	held := r.X.In(p.Rate.Per, true).Tokens
	// What processes hold can still be spent, whatever beta has become.
	beta := max(r.Beta, r.Prefetched)
	if r.Closed {
		l.Closing = true
		held, beta = 0, r.Prefetched
	}
	s.setX(l, min(l.X, held))
	s.shrinkBeta(l, min(l.Beta, beta))
	s.takeUndelivered(l, l.Granted-r.Granted)
	if l.Closing && r.Prefetched == 0 {
		s.closeShare(l, r)
	}
}

// takeUndelivered credits n tokens that were given to a share with an answer
// that never arrived, and never will: the store has begun a newer sequence and
// installs only the answer to that. Left in Granted, the next answer would give
// them, when what the cap left free meanwhile may have been minted anew.
//
// They leave the row as if it had been purged, so that no total falls.
func (s *step) takeUndelivered(l *Lease, n lease.Tokens) {
	n = min(n, l.Granted, l.shareLimit()-l.Used-l.Returned)
	if n <= 0 {
		return
	}
	p := s.poolOf(l)
	l.Granted -= n
	p.Totals.PurgedGiven += n
	p.Totals.PurgedShareReturned += n
	p.Totals.ShareReturned += n
	p.credit(n)
}

func (s *step) shrinkBeta(l *Lease, beta lease.Tokens) {
	if mutant.On(mutant.ShrinkReturns) {
		// A fault that keeps the books: the cap is taken for tokens.
		s.poolOf(l).Totals.Minted += l.Beta - beta
		defer s.poolOf(l).credit(l.Beta - beta)
	}
	l.Beta = beta
	s.setHold(l, beta)
}

// closeShare ends a share of which nothing can be spent any more. Only now is
// its balance, taken out of the wallet by close, credited.
func (s *step) closeShare(l *Lease, r *lease.Report) {
	p := s.poolOf(l)
	returned := max(l.Returned, r.Returned)
	if limit := l.shareLimit() - l.Used; returned > limit {
		returned = max(l.Returned, limit)
		p.Totals.Alarms++
	}
	s.setHold(l, 0)
	s.end(l, Closed)
	p.Totals.ShareReturned += returned - l.Returned
	p.credit(returned - l.Returned)
	l.Returned = returned
}

// growShare grants of the plan what fits beside what is counted already. What
// the plan cuts is only told: it stays counted until the region says that it
// holds less. While the counts stand above the rate no region is told more than
// before, since counts that a change of unit rounded up are more than it holds.
// empty grants no tokens with the cap.
func (s *step) growShare(l *Lease, plan Share, empty bool) {
	p := s.poolOf(l)
	if mutant.On(mutant.RecallCountedAtSend) {
		s.setX(l, min(l.X, plan.X))
		s.shrinkBeta(l, min(l.Beta, plan.Beta))
	}
	told, most := lease.MaxTokens, p.Rate.Tokens-p.X
	if most < 0 {
		told = l.ToldX
	}
	more := min(plan.X-l.X, most)
	if mutant.On(mutant.XAboveR) {
		more = plan.X - l.X
	}
	if more > 0 {
		s.setX(l, l.X+more)
	}
	s.growBeta(l, plan.Beta-l.Beta, empty)
	l.ToldX, l.ToldBeta = min(l.X, plan.X, told), min(l.Beta, plan.Beta)
}

// growBeta raises a share's cap by up to more. Where the pool's own tokens
// fill the ceiling, the cap takes its room from them: they move into the share
// rather than being clamped away, so the sum does not rise and nothing is
// lost.
func (s *step) growBeta(l *Lease, more lease.Tokens, empty bool) {
	p := s.poolOf(l)
	given := lease.Tokens(0)
	if empty {
		more = min(more, p.room())
	} else {
		more = min(more, p.room()+max(0, p.Available))
		given = p.endow(max(0, more))
	}
	if more <= 0 {
		return
	}
	p.Available -= given
	p.Totals.ShareGiven += given
	l.Granted += given
	l.Beta += more
	s.setHold(l, l.Beta)
}
