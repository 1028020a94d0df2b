package agent

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Among very many budgets, one is looked at less often whose use meanwhile is
// a small change to it, but not without end, and least where the region's share is
// fixed; where there are few, none is. Seen to fail with either bound, the least
// use and the condition for crowds taken away, and with all spread alike.
func TestLooksAreSkippedWhereUseIsASmallChange(t *testing.T) {
	const many = 10_000 // one look each in 4 s
	for _, c := range []struct {
		name   string
		active int
		burst  lease.Tokens
		rate   float64 // asked for
		kind   lease.Kind
		want   time.Duration
	}{
		{"1/200 is used in 80 ms", many, 1000, 60, lease.Lump, 4 * time.Second},
		{"1/200 is used in 8 s", many, 100_000, 62.5, lease.Lump, 8 * time.Second},
		{"1/200 is used in an hour", many, 1_000_000, 1, lease.Lump, 16 * time.Second},
		{"nothing is used", many, 1000, 0, lease.Lump, 16 * time.Second},
		{"each token counts", many, 99, 0, lease.Lump, 4 * time.Second},
		{"few budgets", 100, 1_000_000, 1, lease.Lump, syncEvery},
		{"a fixed share, 1/200 is used in 80 ms", many, 1000, 60, lease.Reserve, 4 * time.Second},
		{"a fixed share, 1/200 is used in 32 s", many, 100_000, 15.625, lease.Reserve, 32 * time.Second},
		{"a fixed share, 1/200 is used in an hour", many, 1_000_000, 1, lease.Reserve, time.Minute},
		{"a fixed share of a thousand budgets", 1000, 1_000_000, 1, lease.Reserve, 6400 * time.Millisecond},
		{"a share of a dynamic budget, 1/200 is used in an hour", many, 1_000_000, 1, lease.Reserve, 16 * time.Second},
		{"a fixed share of few budgets", 100, 1_000_000, 1, lease.Reserve, time.Second},
		{"a fixed share of a hundred thousand budgets", 100_000, 1_000_000, 1, lease.Reserve, time.Minute},
	} {
		k := NewKeeper(KeeperConfig{Rand: rand.New(rand.NewPCG(1, 2))})
		k.leader = true
		k.order[Routine] = make(wards, c.active)
		strategy := policy.Static
		if strings.Contains(c.name, "dynamic") {
			strategy = policy.Dynamic
		}
		w := &ward{budget: k.maker.terms(&policy.Budget{
			Name: "t/a", Strategy: strategy, Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Second}, Burst: c.burst},
		})}
		w.round = &round{view: &regionstore.View{}}
		w.demand.rate = c.rate
		w.livesUntil[c.kind-1] = time.Hour
		// Looks that are skipped are spread more.
		around := c.want / 4
		if crowded := time.Duration(c.active) * time.Second / looksPerSecond; crowded > syncEvery && c.want > crowded {
			around = c.want / 2
		}
		least, most := time.Hour, time.Duration(0)
		for range 100 {
			got := k.lookEvery(w)
			least, most = min(least, got), max(most, got)
		}
		if least < c.want-around || most > c.want+around || most-least < around*3/2 {
			t.Errorf("%s: the next look in %v to %v, want %v around %v", c.name, least, most, around, c.want)
		}
	}
}
