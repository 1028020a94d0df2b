package regionstore

import (
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
)

// counted is what processes hold in memory of this lease, as far as the store
// knows: never less than what they can still spend.
func (l *Lease) counted() lease.Tokens { return l.Cur.Tokens + l.Prev.Tokens }

// prefetchable is how much of the lease processes may take into memory now.
func (s Step) prefetchable(l *Lease, kind lease.Kind) lease.Tokens {
	live := s.live(l, kind)
	if !kind.IsShare() {
		return live
	}
	return max(0, min(live, lease.PrefetchLimit(l.Beta)-l.counted()))
}

// hold counts n more tokens as held by processes and returns the generation
// they belong to. The caller has taken them out of a share's balance; what a
// lump has left is less by what is counted.
//
// A generation takes tokens for lease.ProcessDeadline, or longer while the one
// before it still counts some, and is aged out when the last of them has ended:
// at most two of the longest holds, each with its guard, after its first was
// taken. An id is never used again once its count was 0: a late message must not
// settle another process's tokens.
func (s Step) hold(l *Lease, n lease.Tokens, span time.Duration) uint64 {
	switch {
	case l.Cur.Tokens == 0:
		l.Cur = Generation{ID: l.Cur.ID + 1, Opened: s.Time}
	case l.Prev.Tokens == 0 && s.Time >= l.Cur.Opened.Add(lease.ProcessDeadline):
		l.Prev = l.Cur
		l.Cur = Generation{ID: l.Cur.ID + 1, Opened: s.Time}
	}
	l.Cur.Tokens += n
	l.Cur.postpone(s.Time.Add(s.Config.processSpan(span)))
	if mutant.On(mutant.UsedCountsTaken) {
		l.Used = add(l.Used, n)
	}
	return l.Cur.ID
}

// postpone moves the end of a generation that counts tokens, later only.
func (g *Generation) postpone(until lease.Time) {
	if g.Tokens > 0 {
		g.Until = max(g.Until, until)
	}
}

// age drops the generations whose processes have all stopped. What is left of
// a lump was taken and may have been spent: it counts as used. A share just
// has its room back.
func (l *Lease) age(kind lease.Kind, seen lease.Time) {
	for _, g := range [...]*Generation{&l.Cur, &l.Prev} {
		if g.Tokens == 0 || seen < g.Until {
			continue
		}
		if kind == lease.Lump {
			l.Used = add(l.Used, g.Tokens)
		}
		g.Tokens = 0
	}
	l.trim(kind)
}

// trim keeps a closed share's cap at what processes still hold.
func (l *Lease) trim(kind lease.Kind) {
	if l.Closed && kind.IsShare() && !mutant.On(mutant.CloseNotFenced) {
		l.Beta = l.counted()
	}
}

// generation finds a generation by its id; nil for none.
func (l *Lease) generation(id uint64) *Generation {
	switch id {
	case 0:
		return nil
	case l.Cur.ID:
		return &l.Cur
	case l.Prev.ID:
		return &l.Prev
	}
	return nil
}
