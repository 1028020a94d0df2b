package allocation

import "github.com/ration-dev/ration/lease"

// tally is what a transaction did that is to be counted if it commits.
type tally struct{ expired, writtenOff uint64 }

// before takes off what the states say as they were loaded, so that what add
// adds is the difference. Unsigned sums wrap: it comes out right.
func (t *tally) before(now Now, states []*State) map[poolKey]lease.Tokens {
	pools := make(map[poolKey]lease.Tokens)
	for at, s := range states {
		if s == nil {
			continue
		}
		t.expired -= expiredAt(now, s)
		for i := range s.Pools {
			pools[poolKey{at, s.Pools[i].Start}] = writtenOff(&s.Pools[i])
		}
	}
	return pools
}

// after adds what the steps made of the states. Pools that were purged wrote
// nothing off any more.
func (t *tally) after(now Now, states []*State, pools map[poolKey]lease.Tokens) {
	for at, s := range states {
		if s == nil {
			continue
		}
		t.expired += expiredAt(now, s)
		for i := range s.Pools {
			t.writtenOff += uint64(writtenOff(&s.Pools[i]) - pools[poolKey{at, s.Pools[i].Start}])
		}
	}
}

type poolKey struct {
	state int
	start lease.Time
}

func writtenOff(p *Pool) lease.Tokens {
	return p.Totals.LumpWrittenOff + p.Totals.ShareWrittenOff
}

// expiredAt counts the leases that expired at this very time: earlier ones may
// be purged by a step.
func expiredAt(now Now, s *State) uint64 {
	n := uint64(0)
	for i := range s.Leases {
		if l := &s.Leases[i]; l.Ending == Expired && l.EndedAt == now.Governed {
			n++
		}
	}
	return n
}
