package sim

import (
	"strconv"
	"time"

	"github.com/ration-dev/ration/lease"
)

func formatTokens(n lease.Tokens) string { return strconv.FormatInt(int64(n), 10) }

func newSeries(w *world) *Series {
	points := w.o.Points
	s := &Series{Every: max(roundUp(w.o.Length/time.Duration(points)+1), time.Microsecond)}
	make64 := func() []lease.Tokens { return make([]lease.Tokens, points) }
	s.Offered, s.Admitted, s.Ideal, s.Allowed, s.Burst = make64(), make64(), make64(), make64(), make64()
	for _, r := range w.o.Topology.Regions {
		one := RegionSeries{Name: r.Name, Offered: make64(), Admitted: make64(), Denied: make64(), Ideal: make64()}
		for k := range one.Held {
			one.Held[k], one.Alive[k] = make64(), make([]bool, points)
		}
		s.Regions = append(s.Regions, one)
	}
	return s
}

func (s *Series) point(now time.Duration) int { return min(int(now/s.Every), len(s.Offered)-1) }

func (s *Series) offer(now time.Duration, region int, offered, ideal lease.Tokens) {
	i := s.point(now)
	s.Offered[i] += offered
	s.Ideal[i] += ideal
	s.Regions[region].Offered[i] += offered
	s.Regions[region].Ideal[i] += ideal
}

func (s *Series) outcome(now time.Duration, region int, admitted, denied lease.Tokens) {
	i := s.point(now)
	s.Admitted[i] += admitted
	s.Regions[region].Admitted[i] += admitted
	s.Regions[region].Denied[i] += denied
}

// look notes what lies in the wallets, the last look of each point standing.
func (s *Series) look(b *budget) {
	i := s.point(b.w.now)
	for at, r := range b.w.regions {
		v := r.store.Peek(b.name)
		for k := range v.Live {
			s.Regions[at].Held[k][i] = v.Live[k]
			s.Regions[at].Alive[k][i] = v.Remains[k] > 0
		}
	}
	s.Burst[i] = b.limit()
	s.Allowed[i], _ = b.policy.Contract.Rate.Mint(s.Every, 0)
}
