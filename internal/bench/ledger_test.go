package bench

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation"
	pgledger "github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
)

// ledgerServer is a Postgres server that waits for its disk.
func ledgerServer(tb testing.TB) *testpg.Server {
	tb.Helper()
	return testpg.New(tb, testpg.Options{Settings: []string{"shared_buffers=256MB", "max_wal_size=4GB"}})
}

// ledgerDatabase makes a database with the ledger's schema, and sees to it
// that a commit there is durable.
func ledgerDatabase(tb testing.TB, server *testpg.Server) string {
	tb.Helper()
	url := server.Database(tb)
	conn, err := pgx.Connect(context.Background(), url)
	if err != nil {
		tb.Fatal(err)
	}
	defer conn.Close(context.Background())
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		var setting string
		if err := conn.QueryRow(context.Background(), "SELECT current_setting($1)", name).Scan(&setting); err != nil || setting != "on" {
			tb.Fatalf("%s is %q: %v", name, setting, err)
		}
	}
	return url
}

// ledgerEngine is the allocator as serve assembles it, over the database.
func ledgerEngine(tb testing.TB, url string) (*allocation.Allocator, *allocation.LongPoll) {
	tb.Helper()
	store, err := pgledger.Open(context.Background(), url, pgledger.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(store.Close)
	core := allocation.NewAllocator(store, allocation.Config{})
	committer := allocation.NewCommitter(core, max(4, runtime.GOMAXPROCS(0)))
	tb.Cleanup(committer.Close)
	return core, allocation.NewLongPoll(committer)
}

// ledgerTurn is how long one of a round's measurements lasts.
const ledgerTurn = 2 * time.Second

// BenchmarkLedger measures the lease path: grants per second, committed and
// waited for. A grant is one lease request with a new id that moved tokens
// from the pool into the region's lump: in ours the whole engine works on it,
// replays included; the yardstick takes the tokens and notes the lease.
func BenchmarkLedger(b *testing.B) {
	server := ledgerServer(b)
	b.Run("many", func(b *testing.B) {
		ledgerCase{
			item: "lease grants, 10,000 budgets: 3 regions, each with 4 requests of 500 items under way",
			goal: ">= 5", budgets: 10_000, regions: 3, callers: 4, batch: 500,
		}.bench(b, server)
	})
	b.Run("hot", func(b *testing.B) {
		ledgerCase{
			item: "lease grants, one hot budget: 20 regions, each with 16 requests under way",
			goal: ">= 15", budgets: 1, regions: 20, callers: 16, batch: 1,
		}.bench(b, server)
	})
	b.Run("alone", func(b *testing.B) {
		ledgerCase{
			item:    "lease grants, one hot budget: 20 regions, each with one request under way",
			budgets: 1, regions: 20, callers: 1, batch: 1,
		}.bench(b, server)
	})
}

// ledgerCase is a load on the ledger.
type ledgerCase struct {
	item, goal                       string
	budgets, regions, callers, batch int
}

func (c ledgerCase) bench(b *testing.B, server *testpg.Server) {
	url := ledgerDatabase(b, server)
	core, source := ledgerEngine(b, url)
	regions := regionNames(c.regions)
	apply(b, core, c.budgets, regions)
	load := newLedgerLoad(source, regions, c.budgets, c.callers, c.batch)
	plain := newPlainLedger(b, url, c.budgets)
	load.settle(b)

	var limits, limitParts, singles, singleParts []float64
	got := compare(rounds,
		func() float64 {
			ours := load.run(b, ledgerTurn)
			limit, single := plain.batches(b, ledgerTurn/2), plain.single(b, ledgerTurn)
			limits, limitParts = append(limits, limit), append(limitParts, ours/limit)
			singles, singleParts = append(singles, single), append(singleParts, ours/single)
			return ours
		},
		func() float64 { return plain.one(b, ledgerTurn) })
	b.ReportMetric(got.Ours, "grants/s")
	b.ReportMetric(got.Yardstick, "yardstick/s")
	b.ReportMetric(got.Ratio, "ratio")
	beside := func(what string, than, parts []float64, how string) {
		report(Row{c.item + "; beside " + what, perSecond(got.Ours), perSecond(median(than)) + " " + how, ratio(median(parts)), ""})
	}
	report(Row{c.item, perSecond(got.Ours), perSecond(got.Yardstick) + " one grant a transaction, 16 connections", ratio(got.Ratio), c.goal})
	beside("one statement", singles, singleParts, "one grant a statement and round trip, 16 connections")
	beside("the limit", limits, limitParts, "in batches of 500, one connection")
}
