package bench

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/testpg"
)

var growthMost = flag.Int("growth", 100_000, "largest number of `budgets` known to the ledger whose growth is measured; a million takes minutes")

// growthTurn is how long one measurement of one size lasts.
const growthTurn = 500 * time.Millisecond

// growthSize is one size of a deployment. Every region's agents have one
// request of up to 100 items under way each.
type growthSize struct {
	// known budgets are in the ledger, active ones are synced.
	known, active, regions, agents int
}

// BenchmarkLedgerGrowth measures what one Sync item costs, the time that
// passes per item that is committed and waited for, against the size of the
// deployment. Nothing may grow faster than the size does.
//
// What grows: with the active budgets, two regions' requests meet less often
// in one commit, where they share the budget's rows, and the rows no longer lie
// on the same few pages. With the regions, a budget has as many more rows to
// read and to plan for, but more requests are under way too and share commits,
// as with the agents. What is only known costs the depth of an index.
func BenchmarkLedgerGrowth(b *testing.B) {
	server := ledgerServer(b)
	var known, active, regions, agents []growthSize
	for n := 100; n <= *growthMost; n *= 10 {
		known = append(known, growthSize{known: n, active: 100, regions: 3, agents: 1})
		if n <= 100_000 {
			active = append(active, growthSize{known: n, active: n, regions: 3, agents: 1})
		}
	}
	for _, n := range []int{2, 5, 10, 20} {
		regions = append(regions, growthSize{known: 1000, active: 1000, regions: n, agents: 1})
	}
	for _, n := range []int{1, 2, 4, 8} {
		agents = append(agents, growthSize{known: 1000, active: 1000, regions: 3, agents: n})
	}
	for _, g := range []struct {
		what  string
		sizes []growthSize
		size  func(growthSize) int
	}{
		{"known budgets", known, func(s growthSize) int { return s.known }},
		{"active budgets", active, func(s growthSize) int { return s.active }},
		{"regions", regions, func(s growthSize) int { return s.regions }},
		{"agents per region", agents, func(s growthSize) int { return s.agents }},
	} {
		b.Run(g.what, func(b *testing.B) { benchGrowth(b, server, g.what, g.sizes, g.size) })
	}
}

// benchGrowth measures all sizes in turn, and reports each beside the first.
func benchGrowth(b *testing.B, server *testpg.Server, what string, sizes []growthSize, size func(growthSize) int) {
	loads := make([]*ledgerLoad, len(sizes))
	for i, s := range sizes {
		core, source := ledgerEngine(b, ledgerDatabase(b, server))
		names := regionNames(s.regions)
		apply(b, core, s.known, names)
		loads[i] = newLedgerLoad(source, names, s.active, s.agents, min(100, s.active/s.agents))
		loads[i].settle(b)
	}
	costs, growths := make([][]float64, len(sizes)), make([][]float64, len(sizes))
	for range rounds {
		first := 0.0
		for i, load := range loads {
			cost := 1e6 / load.run(b, growthTurn)
			if i == 0 {
				first = cost
			}
			costs[i], growths[i] = append(costs[i], cost), append(growths[i], cost/first)
		}
	}
	for i, s := range sizes {
		n, cost := float64(size(s)), median(costs[i])
		b.ReportMetric(cost, fmt.Sprintf("µs/item-at-%d", size(s)))
		row := Row{Item: fmt.Sprintf("cost of a Sync item in the ledger, %s: %s", what, count(n)), Ours: count(cost) + " µs"}
		if i > 0 {
			first := float64(size(sizes[0]))
			row.Yardstick = fmt.Sprintf("%s µs at %s", count(median(costs[0])), count(first))
			row.Ratio, row.Goal = ratio(median(growths[i])), "<= "+count(n/first)
		}
		report(row)
	}
}
