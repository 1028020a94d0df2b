package storetest

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func testOrder(w *wallet) {
	w.open()
	w.share(lease.Reserve, 0, 5, 5)
	w.share(lease.Paced, 0, 5, 5)
	w.lump(5)
	live := func(want ...lease.Tokens) {
		w.Helper()
		equal(w, "live", w.view().Live, [lease.Kinds]lease.Tokens(want))
	}
	equal(w, "peek", w.take(0), true)
	live(5, 5, 5)
	equal(w, "take", w.take(3), true)
	live(2, 5, 5)
	equal(w, "across leases", w.take(8), true)
	live(0, 0, 4)
	equal(w, "more than is live", w.take(5), false)
	live(0, 0, 4)
	r := w.takeOf(regionstore.Take{Cost: 4, Demand: 9}).Results[0]
	equal(w, "live after", r.Live, 0)
	equal(w, "demand", w.view().Row.DemandTotal, 9)
	w.takeOf(regionstore.Take{Cost: 1, Demand: 2})
	equal(w, "demand of a refusal", w.view().Row.DemandTotal, 11)
	for i, used := range []lease.Tokens{5, 5, 5} {
		equal(w, "used", w.view().Row.Leases[i].Used, used)
	}
}

func testAllOrNone(w *wallet) {
	w.open()
	w.lump(5)
	other := *w
	other.budget = "t/other"
	other.open()
	other.lump(1)
	take := func(hold bool, mine, others lease.Tokens) regionstore.TakeReply {
		return must(w.s.Store.Take(context.Background(), regionstore.TakeRequest{Hold: hold, Takes: []regionstore.Take{
			{Budget: w.budget, Cost: mine, Prefetch: 1, Now: w.now()},
			{Budget: other.budget, Cost: others, Prefetch: 1, Now: w.now()},
		}}))
	}
	for _, hold := range []bool{false, true} {
		r := take(hold, 2, 2)
		equal(w, "took", r.Took, false)
		w.outcome("mine", r.Results[0].Outcome, regionstore.OK)
		w.outcome("other's", r.Results[1].Outcome, regionstore.Short)
		equal(w, "parts", len(r.Results[0].Parts), 0)
		equal(w, "live", w.live(lease.Lump), 5)
		equal(w, "other's live", other.live(lease.Lump), 1)
	}
	w.s.LoseRow(other.budget)
	r := take(false, 1, 0)
	equal(w, "took with a missing wallet", r.Took, false)
	w.outcome("missing", r.Results[1].Outcome, regionstore.Missing)
	other.open()
	other.lump(1)
	equal(w, "took", take(false, 2, 1).Took, true)
	equal(w, "live", w.live(lease.Lump), 2)
	equal(w, "other's live", other.live(lease.Lump), 0)
}

func testHints(w *wallet) {
	w.open()
	r := w.takeOf(regionstore.Take{Cost: 1}).Results[0]
	equal(w, "no lease", r.MintIn < 0 && r.Lease <= 0 && r.X.Per == 0 && !r.Pending, true)
	w.share(lease.Reserve, 4, 10, 2)
	w.shareAt(lease.Paced, lease.Rate{Tokens: 3, Per: 2 * time.Second}, 8, 1)
	w.begin(lease.Lump)
	r = w.takeOf(regionstore.Take{Cost: 4}).Results[0]
	equal(w, "shares", r.Shares, 3)
	equal(w, "beta", r.Beta, 18)
	equal(w, "x", r.X, lease.Rate{Tokens: 5, Per: time.Second})
	equal(w, "lease", r.Lease, 10*time.Second)
	equal(w, "pending", r.Pending, true)
	equal(w, "time", r.Time, w.at)
	equal(w, "one token more", r.MintIn, 250*time.Millisecond)
	w.pass(r.MintIn - time.Microsecond)
	equal(w, "a microsecond early", w.take(4), false)
	w.pass(time.Microsecond)
	equal(w, "at that instant", w.take(4), true)

	// Both shares full are 18; the way that fills both takes as long as the
	// slower one.
	r = w.takeOf(regionstore.Take{Cost: 18}).Results[0]
	w.pass(r.MintIn)
	equal(w, "when both are full", w.take(18), true)
	equal(w, "more than both hold", w.takeOf(regionstore.Take{Cost: 19}).Results[0].MintIn < 0, true)
	w.lump(5)
	equal(w, "what the lump leaves", w.takeOf(regionstore.Take{Cost: 6}).Results[0].MintIn, 250*time.Millisecond)
	equal(w, "had enough", w.takeOf(regionstore.Take{Cost: 5}).Results[0].MintIn, 0)
}

func testPrefetch(w *wallet) {
	w.open()
	w.share(lease.Reserve, 0, 40, 40)
	w.lump(20)
	r := w.takeOf(regionstore.Take{Cost: 1, Prefetch: 13}).Results[0]
	equal(w, "parts", len(r.Parts), 2)
	equal(w, "share's part", r.Parts[0], regionstore.Part{
		Kind: lease.Reserve, Incarnation: "reserve1", Generation: 1, Tokens: 10, Remains: lease.ProcessDeadline,
	})
	equal(w, "lump's part", r.Parts[1], regionstore.Part{
		Kind: lease.Lump, Incarnation: "lump1", Generation: 1, Tokens: 3, Remains: lease.ProcessDeadline,
	})
	equal(w, "live after", r.Live, 29+17)
	equal(w, "live", w.view().Live, [lease.Kinds]lease.Tokens{29, 0, 17})
	equal(w, "used", w.lease(lease.Reserve).Used, 1)

	w.outcome("use", w.settle(r.Parts[0], 6, 0), regionstore.OK)
	w.outcome("give back", w.settle(r.Parts[0], 1, 3), regionstore.OK)
	equal(w, "used", w.lease(lease.Reserve).Used, 8)
	w.outcome("both", w.settle(r.Parts[1], 1, 2), regionstore.OK)
	equal(w, "live", w.view().Live, [lease.Kinds]lease.Tokens{32, 0, 19})

	// Hold takes the cost into memory too, of a share as far as its limit goes.
	hold := func(cost, more lease.Tokens) regionstore.TakeReply {
		return must(w.s.Store.Take(context.Background(), regionstore.TakeRequest{
			Takes: []regionstore.Take{{Budget: w.budget, Cost: cost, Prefetch: more, Now: w.now()}}, Hold: true,
		}))
	}
	equal(w, "more than can be held", hold(30, 0).Took, false)
	h := hold(8, 4)
	equal(w, "took", h.Took, true)
	equal(w, "parts", len(h.Results[0].Parts), 2)
	equal(w, "share's part", h.Results[0].Parts[0].Tokens, 10)
	equal(w, "lump's part", h.Results[0].Parts[1].Tokens, 2)
	equal(w, "used", w.lease(lease.Reserve).Used, 8)
	equal(w, "live", w.view().Live, [lease.Kinds]lease.Tokens{22, 0, 17})
}

func testGenerations(w *wallet) {
	w.open()
	w.share(lease.Reserve, 0, 400, 400)
	w.lump(100)
	span := lease.ProcessDeadline + Config().Clocks.Guard(lease.LongestProcessDeadline)
	take := func(kind lease.Kind, n lease.Tokens) regionstore.Part {
		if kind == lease.Reserve {
			return w.prefetch(n)[0]
		}
		live := w.live(lease.Reserve)
		w.take(live)
		return w.prefetch(n)[0]
	}
	first := take(lease.Reserve, 5)
	w.pass(lease.ProcessDeadline - time.Microsecond)
	equal(w, "same generation", take(lease.Reserve, 5).Generation, first.Generation)
	w.pass(time.Microsecond)
	second := take(lease.Reserve, 7)
	equal(w, "next generation", second.Generation, first.Generation+1)
	equal(w, "counted", w.begin(lease.Reserve).Prefetched, 17)

	// The first ages out a span after its last take; the next goes on meanwhile.
	w.pass(span - 2*time.Microsecond)
	equal(w, "before", w.lease(lease.Reserve).Prev.Tokens, 10)
	equal(w, "while the first still counts", take(lease.Reserve, 1).Generation, second.Generation)
	w.pass(time.Microsecond)
	l := w.lease(lease.Reserve)
	equal(w, "aged", [2]lease.Tokens{l.Prev.Tokens, l.Cur.Tokens}, [2]lease.Tokens{0, 8})
	equal(w, "a share has its room back, not the tokens", l.Balance, 400-18)
	equal(w, "not used", l.Used, 0)
	w.pass(span)
	equal(w, "aged", w.lease(lease.Reserve).Cur.Tokens, 0)

	// A late word on an aged generation changes nothing, nor on those after it.
	third := take(lease.Reserve, 9)
	equal(w, "third generation", third.Generation, second.Generation+1)
	w.settle(second, 7, 0)
	w.settle(first, 10, 0)
	l = w.lease(lease.Reserve)
	equal(w, "counted", [2]lease.Tokens{l.Cur.Tokens, l.Used}, [2]lease.Tokens{9, 0})

	// What ages out of a lump was taken: it counts as used.
	p := take(lease.Lump, 6)
	equal(w, "lump", [2]lease.Tokens{p.Tokens, w.live(lease.Lump)}, [2]lease.Tokens{6, 94})
	w.pass(span)
	l = w.lease(lease.Lump)
	equal(w, "counted, used", [2]lease.Tokens{l.Cur.Tokens, l.Used}, [2]lease.Tokens{0, 6})
	equal(w, "live", w.live(lease.Lump), 94)
}

// Each take says for how long its tokens are held, within limits, and is counted
// until then and a guard. Seen to catch: all takes aged out like the shortest.
func testHolds(w *wallet) {
	for _, c := range []struct{ asked, want time.Duration }{
		{0, lease.ProcessDeadline},
		{time.Second, lease.ProcessDeadline},
		{5 * time.Second, 5 * time.Second},
		{time.Hour, lease.LongestProcessDeadline},
	} {
		w.open()
		st := active(w.begin(lease.Lump), time.Minute)
		st.Granted = 100
		w.outcome("install", w.install(st), regionstore.OK)
		r := w.takeOf(regionstore.Take{Prefetch: 6, HoldFor: c.asked}).Results[0]
		equal(w, "held for", r.Parts[0].Remains, c.want)
		w.takeOf(regionstore.Take{Prefetch: 1})
		w.pass(c.want + Config().Clocks.Guard(lease.LongestProcessDeadline) - time.Microsecond)
		equal(w, "counted", w.lease(lease.Lump).Cur.Tokens, 7)
		w.pass(time.Microsecond)
		equal(w, "aged out", w.lease(lease.Lump).Cur.Tokens, 0)
		w.close(lease.Lump)
		w.outcome("install", w.install(active(w.begin(lease.Lump), time.Minute)), regionstore.Dead)
	}
}

func testSettle(w *wallet) {
	w.open()
	w.lump(10)
	p := w.prefetch(4)[0]
	stale := p
	stale.Incarnation = "lump0"
	w.outcome("another incarnation", w.settle(stale, 1, 1), regionstore.Stale)
	stale = p
	stale.Generation = 2
	w.outcome("another generation", w.settle(stale, 1, 1), regionstore.Stale)
	stale.Generation = 0
	w.outcome("no generation", w.settle(stale, 1, 1), regionstore.Stale)
	stale = p
	stale.Kind = lease.Paced
	w.outcome("another kind", w.settle(stale, 1, 1), regionstore.Stale)
	equal(w, "live", w.live(lease.Lump), 6)

	w.outcome("more than it counts", w.settle(p, 3, 5), regionstore.OK)
	l := w.lease(lease.Lump)
	equal(w, "used", l.Used, 3)
	equal(w, "counted", l.Cur.Tokens, 0)
	equal(w, "live", w.live(lease.Lump), 7)
	w.outcome("again", w.settle(p, 3, 5), regionstore.OK)
	equal(w, "live", w.live(lease.Lump), 7)
	equal(w, "used", w.lease(lease.Lump).Used, 3)
	p2 := w.prefetch(2)[0]
	equal(w, "another generation", p2.Generation, p.Generation+1)
	w.outcome("late", w.settle(p, 1, 0), regionstore.Stale)

	demand := regionstore.Settle{Budget: w.budget, Demand: 5, Now: w.now()}
	old := regionstore.Settle{
		Budget: w.budget, Kind: lease.Lump, Incarnation: "lump0", Generation: p2.Generation, Used: 1, Demand: 2, Now: w.now(),
	}
	outcomes := must(w.s.Store.Settle(context.Background(), []regionstore.Settle{demand, old}))
	w.outcome("demand alone", outcomes[0], regionstore.OK)
	w.outcome("demand under another lease", outcomes[1], regionstore.Stale)
	equal(w, "demand", w.view().Row.DemandTotal, 7)
	equal(w, "used", w.lease(lease.Lump).Used, 3)
}

// What settles along with a take has its room free for that take, whatever comes
// of the cost. Seen to fail with the settlements after the cost, only with a take
// that took, and done again by a repetition.
func testSettleAlong(w *wallet) {
	w.open()
	w.share(lease.Reserve, 0, 40, 40)
	p := w.prefetch(10)[0]
	along := func(t regionstore.Take, p regionstore.Part, used, back lease.Tokens) regionstore.TakeReply {
		t.Settles = []regionstore.Settle{
			{Kind: p.Kind, Incarnation: "nobody", Generation: p.Generation, Used: 1, Back: 1},
			{Kind: p.Kind, Incarnation: p.Incarnation, Generation: p.Generation, Used: used, Back: back},
		}
		return w.takeOf(t)
	}
	r := along(regionstore.Take{Cost: 31, Prefetch: 9}, p, 9, 1)
	equal(w, "took what came back", r.Took, true)
	l := w.lease(lease.Reserve)
	equal(w, "used, counted, balance", [3]lease.Tokens{l.Used, l.Cur.Tokens, l.Balance}, [3]lease.Tokens{40, 0, 0})

	w.lump(20)
	q := w.prefetch(8)[0]
	equal(w, "too much", along(regionstore.Take{Cost: 50}, q, 3, 1).Took, false)
	l = w.lease(lease.Lump)
	equal(w, "used, counted", [2]lease.Tokens{l.Used, l.Cur.Tokens}, [2]lease.Tokens{3, 4})

	repeated := func() regionstore.TakeReply {
		return must(w.s.Store.Take(context.Background(), regionstore.TakeRequest{
			RequestID: "a", Content: "x", KeepAnswer: time.Hour,
			Takes: []regionstore.Take{{Budget: w.budget, Cost: 1, Now: w.now(), Settles: []regionstore.Settle{
				{Kind: q.Kind, Incarnation: q.Incarnation, Generation: q.Generation, Used: 1},
			}}},
		}))
	}
	repeated()
	equal(w, "replayed", repeated().Replayed, true)
	l = w.lease(lease.Lump)
	equal(w, "settled once", [2]lease.Tokens{l.Used, l.Cur.Tokens}, [2]lease.Tokens{5, 3})

	w.s.LoseRow(w.budget)
	w.outcome("missing", along(regionstore.Take{Cost: 1}, q, 1, 1).Results[0].Outcome, regionstore.Missing)
}

// What one of a refill's budgets lacks is no other's affair. Seen to fail where all
// are one take.
func testRefill(w *wallet) {
	w.open()
	w.lump(20)
	p := w.prefetch(8)[0]
	results := must(w.s.Store.Refill(context.Background(), []regionstore.Take{
		{Budget: "t/nobody", Prefetch: 5, Now: w.now()},
		{Budget: w.budget, Prefetch: 10, HoldFor: lease.LongestProcessDeadline, Demand: 7, Now: w.now(), Settles: []regionstore.Settle{
			{Kind: p.Kind, Incarnation: p.Incarnation, Generation: p.Generation, Used: 6, Back: 2},
		}},
		{Budget: w.budget, Cost: 5, Prefetch: 1, Now: w.now()},
	}))
	w.outcome("no row", results[0].Outcome, regionstore.Missing)
	w.outcome("refilled", results[1].Outcome, regionstore.OK)
	w.outcome("too much", results[2].Outcome, regionstore.Short)
	equal(w, "parts", [3]int{len(results[0].Parts), len(results[1].Parts), len(results[2].Parts)}, [3]int{0, 1, 0})
	equal(w, "tokens", results[1].Parts[0].Tokens, 10)
	l := w.lease(lease.Lump)
	equal(w, "used, counted, live, demand", [4]lease.Tokens{l.Used, l.Cur.Tokens + l.Prev.Tokens, w.live(lease.Lump), w.view().Row.DemandTotal}, [4]lease.Tokens{6, 10, 4, 7})
	none, err := w.s.Store.Refill(context.Background(), nil)
	equal(w, "of none", len(none), 0)
	equal(w, "its error", err, nil)
}

func testReturnClose(w *wallet) {
	w.open()
	w.lump(20)
	p := w.prefetch(4)[0]
	w.outcome("return", w.giveBack(30).Outcome, regionstore.OK)
	equal(w, "nothing above", w.lease(lease.Lump).Returned, 0)
	v := w.giveBack(9)
	equal(w, "down to 9 held", [2]lease.Tokens{v.Live[2], v.Row.Leases[2].Returned}, [2]lease.Tokens{5, 11})
	v = w.giveBack(0)
	equal(w, "memory stays", [2]lease.Tokens{v.Live[2], v.Row.Leases[2].Returned}, [2]lease.Tokens{0, 16})
	w.lump(26)

	// The fence: the balance is returned at once, memory when it is settled.
	v = w.close(lease.Lump)
	equal(w, "closed", [2]lease.Tokens{v.Live[2], v.Row.Leases[2].Returned}, [2]lease.Tokens{0, 22})
	equal(w, "take", w.take(1), false)
	equal(w, "prefetch", len(w.prefetch(1)), 0)
	w.outcome("return", w.giveBack(0).Outcome, regionstore.Dead)
	w.close(lease.Lump)
	w.settle(p, 1, 2)
	r := w.begin(lease.Lump)
	equal(w, "report", r, lease.Report{
		Kind: lease.Lump, Incarnation: "lump1", Seq: 3, Used: 1, Returned: 24, Prefetched: 1, Closed: true,
	})
	st := active(r, time.Second)
	st.Granted = 40
	w.outcome("install", w.install(st), regionstore.Dead)
	equal(w, "live", w.live(lease.Lump), 0)

	w.share(lease.Paced, 5, 40, 20)
	p = w.prefetch(8)[0]
	v = w.close(lease.Paced)
	equal(w, "share's balance", [2]lease.Tokens{v.Live[1], v.Row.Leases[1].Returned}, [2]lease.Tokens{0, 12})
	r = w.begin(lease.Paced)
	equal(w, "share's hold", [2]lease.Tokens{r.Beta, r.Prefetched}, [2]lease.Tokens{8, 8})
	equal(w, "share's x", r.X, lease.Rate{Per: time.Second})
	w.settle(p, 2, 6)
	r = w.begin(lease.Paced)
	equal(w, "share's totals", r, lease.Report{
		Kind: lease.Paced, Incarnation: "paced1", Seq: 3, Used: 2, Returned: 18, Closed: true, Granted: 20, X: lease.Rate{Per: time.Second},
	})
	c := regionstore.CloseRequest{Budget: w.budget, Kind: lease.Paced, Incarnation: "paced0", Now: w.now()}
	w.outcome("another", must(w.s.Store.Close(context.Background(), c)).Outcome, regionstore.Stale)
}

func testRequestID(w *wallet) {
	w.open()
	w.lump(5)
	ask := func(id, content string, cost lease.Tokens) regionstore.TakeReply {
		return must(w.s.Store.Take(context.Background(), regionstore.TakeRequest{
			RequestID: id, Content: content, KeepAnswer: time.Hour,
			Takes: []regionstore.Take{{Budget: w.budget, Cost: cost, Prefetch: 1, Demand: cost, Now: w.now()}},
		}))
	}
	r := ask("a", "x", 2)
	equal(w, "took", r.Took, true)
	equal(w, "parts", len(r.Results[0].Parts), 1)
	w.take(1)
	w.pass(time.Second)
	again := ask("a", "x", 2)
	equal(w, "took, replayed", [2]bool{again.Took, again.Replayed}, [2]bool{true, true})
	equal(w, "as it was", [2]int64{int64(again.Results[0].Live), int64(again.Results[0].Time)}, [2]int64{2, int64(Start)})
	equal(w, "no parts", len(again.Results[0].Parts), 0)
	equal(w, "charged once", w.live(lease.Lump), 1)
	equal(w, "demand once", w.view().Row.DemandTotal, 2)
	c := ask("a", "y", 2)
	equal(w, "conflict", [2]bool{c.Took, c.Conflict}, [2]bool{false, true})

	// A refusal took nothing and is no answer to keep.
	for range 2 {
		r = ask("b", "x", 4)
		equal(w, "took, replayed", [2]bool{r.Took, r.Replayed}, [2]bool{false, false})
	}
	w.lump(50)
	r = ask("b", "x", 4)
	equal(w, "took, replayed", [2]bool{r.Took, r.Replayed}, [2]bool{true, false})

	// No wallet, no answer.
	w.s.LoseRow(w.budget)
	w.outcome("missing", ask("c", "x", 1).Results[0].Outcome, regionstore.Missing)
	w.open()
	w.lump(5)
	equal(w, "took, replayed", ask("c", "x", 1).Took, true)
}
