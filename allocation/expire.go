package allocation

import (
	"slices"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// Sweep does what time alone demands: it rolls windows, expires leases whose
// reclaim has come, and purges what was kept long enough.
func Sweep(cfg Config, now Now, s *State) {
	st := newStep(cfg, now, s)
	st.settle()
	st.purge()
	st.lookAgain()
}

// lookAgain makes the next sweep wait that came for the end of a window by
// governed time before raw time has come there, as after a backward step of
// the database's clock. A window's pool mints nothing: its MintedAt is free to
// say when it was looked at.
func (s *step) lookAgain() {
	for i := range s.Pools {
		if p := &s.Pools[i]; p.isWindow() && p.End <= s.now.Governed && s.now.Raw < p.End {
			p.MintedAt = max(p.MintedAt, s.now.Governed)
		}
	}
}

// settle brings the state to the present. Minting comes first, at the x that
// was leased until now. A deleted pool is left alone: its MintedAt marks since
// when nothing happened in it.
func (s *step) settle() {
	for i := range s.Pools {
		if p := &s.Pools[i]; !p.isWindow() && !s.Budget.Deleted {
			p.advance(s.now.Governed)
		}
	}
	for i := range s.Leases {
		if l := &s.Leases[i]; l.counted() && l.Reclaim <= s.now.Governed {
			s.expire(l)
		}
	}
	s.roll(s.now)
}

// expire writes a lease off at its reclaim time. By then the region has
// stopped; how much of it was spent nobody knows, so nothing is credited.
func (s *step) expire(l *Lease) {
	p := s.poolOf(l)
	left := l.Hold
	if l.unended() {
		s.end(l, Expired)
	}
	s.setHold(l, 0)
	s.writeOff(l, left)
	if mutant.On(mutant.ExpiryCredits) && l.Kind == lease.Lump ||
		mutant.On(mutant.ShareExpiryRefunds) && l.Kind.IsShare() {
		// A fault that keeps the books: as if the rest had been minted anew.
		p.Totals.Minted += left
		p.credit(left)
	}
}

// writeOff books n tokens of l's hold as spent.
func (s *step) writeOff(l *Lease, n lease.Tokens) {
	l.WrittenOff += n
	t := &s.poolOf(l).Totals
	if l.Kind == lease.Lump {
		t.LumpWrittenOff += n
	} else {
		t.ShareWrittenOff += n
	}
}

// end marks a lease as ended for good and takes its x back. What becomes of
// its hold is the caller's to say.
func (s *step) end(l *Lease, how Ending) {
	s.setX(l, 0)
	l.ToldX, l.Beta, l.ToldBeta = 0, 0, 0
	l.Ending, l.EndedAt = how, s.now.Governed
	if s.Budget.Deleted {
		p := s.poolOf(l)
		p.MintedAt = max(p.MintedAt, s.now.Governed)
	}
}

// setX changes the rate that is counted for a share. The pool has been
// advanced to the present; the share's own minting is brought there too.
func (s *step) setX(l *Lease, x lease.Tokens) {
	p := s.poolOf(l)
	s.accrue(l)
	p.X += x - l.X
	l.X = x
}

// setHold changes what is counted as outstanding for a lease.
func (s *step) setHold(l *Lease, hold lease.Tokens) {
	s.poolOf(l).Outstanding += hold - l.Hold
	l.Hold = hold
}

// purge forgets ended leases after their keeping time, regions and counters
// after a long silence, and in the end a deleted budget's account.
func (s *step) purge() {
	cfg, now := s.cfg, s.now
	s.Leases = slices.DeleteFunc(s.Leases, func(l Lease) bool {
		p := s.poolOf(&l)
		if l.counted() || now.Governed < l.EndedAt.Add(cfg.KeepEnded) || now.Raw < p.End {
			return false
		}
		p.Totals.purge(&l)
		return true
	})
	s.dropClosed(now)
	s.Regions = slices.DeleteFunc(s.Regions, func(r Region) bool {
		return !s.remembers(&r) && now.Governed >= r.SeenAt.Add(cfg.Silence)
	})
	s.Locals = slices.DeleteFunc(s.Locals, func(l Local) bool {
		return now.Governed >= l.SeenAt.Add(cfg.Silence)
	})
	if at, ok := s.tidyAt(); ok && now.Governed >= at {
		s.Pools, s.Regions, s.Locals = nil, nil, nil
	}
}

// purge keeps the sums of a row that is deleted, so that rows and purged sums
// together still prove the totals.
func (t *Totals) purge(l *Lease) {
	if l.Kind == lease.Lump {
		t.PurgedGranted += l.Granted
		t.PurgedUsed += l.Used
		t.PurgedReturned += l.Returned
		t.PurgedWrittenOff += l.WrittenOff
		return
	}
	t.PurgedGiven += l.Granted
	t.PurgedShareReturned += l.Returned
	t.PurgedShareUsed += l.Used
}
