package storetest

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func (w *wallet) viewBy(notAfter lease.Time) regionstore.View {
	return must(w.s.Store.Read(context.Background(), []string{w.budget}, []regionstore.Now{{NotAfter: notAfter}}))[0]
}

// Invariant 6, by hand.
func testMinting(w *wallet) {
	w.open()
	r := w.begin(lease.Paced)
	w.pass(time.Second)
	st := active(r, 100*time.Second)
	st.X, st.Beta = lease.Rate{Tokens: 10, Per: time.Second}, 50
	w.install(st)
	equal(w, "from the install, not the anchor", w.live(lease.Paced), 0)
	w.pass(150 * time.Millisecond)
	equal(w, "a token and a half", w.live(lease.Paced), 1)
	w.pass(50 * time.Millisecond)
	equal(w, "two", w.live(lease.Paced), 2)

	// The clock goes back: nothing, until it has caught up.
	w.pass(-200 * time.Millisecond)
	equal(w, "back", w.live(lease.Paced), 2)
	w.pass(200 * time.Millisecond)
	equal(w, "caught up", w.live(lease.Paced), 2)

	// It steps forward: a caller's bound holds it, and so does a first call; a
	// bound left far behind counts as none.
	seen := w.at
	w.pass(40 * time.Millisecond)
	v := w.viewBy(seen)
	equal(w, "by a bound", [2]int64{int64(v.Live[1]), int64(v.Time)}, [2]int64{2, int64(seen)})
	w.pass(5 * time.Second)
	v = w.viewBy(seen)
	equal(w, "by a bound far behind", [2]int64{int64(v.Live[1]), int64(v.Time)}, [2]int64{2, int64(w.at)})
	w.pass(5 * time.Second)
	v = w.viewBy(0)
	equal(w, "by a first call", [2]int64{int64(v.Live[1]), int64(v.Time)}, [2]int64{2, int64(w.at)})
	w.pass(time.Second)
	equal(w, "and on from there", w.live(lease.Paced), 12)

	// A first call does not take processes for stopped either.
	equal(w, "prefetched", w.prefetch(3)[0].Tokens, 3)
	w.pass(lease.ProcessDeadline)
	equal(w, "prefetched", w.prefetch(2)[0].Tokens, 2)
	w.pass(time.Minute)
	w.viewBy(0)
	w.pass(time.Second)
	l := w.lease(lease.Paced)
	equal(w, "counted", [2]lease.Tokens{l.Prev.Tokens, l.Cur.Tokens}, [2]lease.Tokens{3, 2})

	// A changed rate counts from the change.
	w.lower(lease.Paced, lease.Rate{Tokens: 1, Per: time.Second})
	live := w.live(lease.Paced)
	w.pass(time.Second)
	equal(w, "slower", w.live(lease.Paced), live+1)

	// A full share keeps room for what another caller may still mint.
	w.pass(25 * time.Second)
	w.viewBy(0)
	w.open()
	w.share(lease.Reserve, 1000, 30, 30)
	seen = w.at
	w.pass(10 * time.Millisecond)
	equal(w, "held back", w.viewBy(seen).Live[0], 20)
	equal(w, "and minted", w.live(lease.Reserve), 30)
}

func (w *wallet) lower(kind lease.Kind, x lease.Rate) {
	in := w.intent(kind)
	in.LowerX = x
	w.beginWith(0, in)
}

// Invariant 9, the regional half, by hand.
func testLocal(w *wallet) {
	w.open()
	r := w.local(1, localRate, localBurst)
	w.outcome("empty", r.Outcome, regionstore.Short)
	equal(w, "unknown before the first", r.RetryIn, 333334*time.Microsecond)
	w.pass(r.RetryIn - time.Microsecond)
	w.outcome("early", w.local(1, localRate, localBurst).Outcome, regionstore.Short)
	w.pass(time.Microsecond)
	w.outcome("in time", w.local(1, localRate, localBurst).Outcome, regionstore.OK)
	w.pass(time.Minute)
	equal(w, "full", w.local(0, localRate, localBurst).Balance, localBurst)
	r = w.local(6, localRate, localBurst)
	equal(w, "above the burst", [2]int64{int64(r.Outcome), int64(r.RetryIn)}, [2]int64{int64(regionstore.Short), int64(-time.Microsecond)})
	equal(w, "rest", w.local(4, localRate, localBurst).Balance, 1)
	equal(w, "total", w.view().Row.Local.Total, 5)
	equal(w, "demand", w.view().Row.DemandTotal, 1+1+1+6+4)

	// What has passed mints at the old rate, up to the old burst.
	fast := lease.Rate{Tokens: 1000, Per: time.Second}
	w.pass(time.Second)
	equal(w, "at the old rate", w.local(0, fast, 100).Balance, 4)
	w.pass(10 * time.Millisecond)
	equal(w, "at the new", w.local(0, fast, 100).Balance, 14)
	equal(w, "a smaller burst", w.local(0, fast, 3).Balance, 3)
	w.pass(time.Second)
	equal(w, "a larger one", w.local(0, fast, 100).Balance, 3)
	equal(w, "no rate", w.local(4, lease.Rate{}, 3).RetryIn < 0, true)

	// Another life starts empty under another name.
	w.s.Restart("second")
	w.open()
	row := w.view().Row
	equal(w, "nonce, total, balance", row.Local, regionstore.Local{Nonce: row.Local.Nonce, Mark: w.at})
}

// vector is one step of a worked example: at milliseconds, n takes of cost 1.
type vector struct{ at, n, allowed int }

func testVectors(w *wallet) {
	for i, c := range []struct {
		note                 string
		capacity, rate, full lease.Tokens
		steps                []vector
	}{
		{"refill boundary", 5, 2, 0, []vector{{499, 1, 0}, {500, 1, 1}, {500, 1, 0}}},
		{"full bucket, then refill", 3, 3, 3, []vector{{0, 3, 3}, {334, 1, 1}, {667, 1, 1}}},
		{"burst", 3, 2, 3, []vector{{0, 1, 1}, {10, 1, 1}, {20, 1, 1}, {30, 1, 0}}},
		{"time going back", 5, 2, 0, []vector{{1000, 2, 2}, {0, 1, 0}, {1000, 1, 0}}},
	} {
		w.at = Start.Add(time.Duration(i) * time.Hour)
		w.s.SetTime(w.at)
		w.s.Restart("life-of-" + c.note)
		w.open()
		w.share(lease.Paced, c.rate, c.capacity, c.full)
		start := w.at
		for _, st := range c.steps {
			w.pass(start.Add(time.Duration(st.at) * time.Millisecond).Sub(w.at))
			allowed := 0
			for range st.n {
				if w.take(1) {
					allowed++
				}
			}
			equal(w, c.note, allowed, st.allowed)
		}
	}
}

func testPrefetchVectors(w *wallet) {
	grab := func() lease.Tokens {
		var n lease.Tokens
		for _, p := range w.prefetch(4) {
			n += p.Tokens
		}
		return n
	}
	w.open()
	w.lump(6)
	equal(w, "node a", grab(), 4)
	equal(w, "node b", grab(), 2)
	equal(w, "fifth request at b", w.take(1), false)

	w.s.Restart("second")
	w.open()
	w.lump(20)
	for _, want := range []lease.Tokens{8, 8, 4, 0} {
		var n lease.Tokens
		for _, p := range w.prefetch(8) {
			n += p.Tokens
		}
		equal(w, "batches of eight", n, want)
	}
}
