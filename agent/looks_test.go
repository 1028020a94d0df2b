package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Among very many budgets, one is looked at less often whose use meanwhile is
// a small change to it, but not without end; where there are few, none is. Seen to
// fail with the bound, the least use and the condition for crowds taken away.
func TestLooksAreSkippedWhereUseIsASmallChange(t *testing.T) {
	const many = 10_000 // one look each in 4 s
	for _, c := range []struct {
		name        string
		active      int
		burst       lease.Tokens
		rate        float64 // asked for
		least, most time.Duration
	}{
		{"1/200 is used in 80 ms", many, 1000, 60, 4 * time.Second, 4 * time.Second},
		{"1/200 is used in 8 s", many, 100_000, 62.5, 8 * time.Second, 8 * time.Second},
		{"1/200 is used in an hour", many, 1_000_000, 1, 16 * time.Second, 16 * time.Second},
		{"nothing is used", many, 1000, 0, 16 * time.Second, 16 * time.Second},
		{"each token counts", many, 99, 0, 4 * time.Second, 4 * time.Second},
		{"few budgets", 100, 1_000_000, 1, syncEvery, syncEvery},
	} {
		k := NewKeeper(KeeperConfig{Rand: rand.New(rand.NewPCG(1, 2))})
		k.leader = true
		k.order[Routine] = make(wards, c.active)
		w := &ward{budget: k.maker.terms(&policy.Budget{
			Name: "t/a", Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Second}, Burst: c.burst},
		})}
		w.round = &round{view: &regionstore.View{}}
		w.demand.rate = c.rate
		w.livesUntil[lease.Lump-1] = time.Hour
		for range 100 {
			if got := k.lookEvery(w); got < c.least*3/4 || got > c.most*5/4 {
				t.Errorf("%s: the next look in %v, want a quarter around %v", c.name, got, c.least)
				break
			}
		}
	}
}
