package storetest

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func testBegin(w *wallet) {
	w.open()
	w.lump(20)
	w.share(lease.Paced, 7, 40, 30)
	w.take(3)
	equal(w, "prefetched", len(w.prefetch(4)), 1)
	w.pass(time.Second)

	in := w.intent(lease.Paced)
	in.Want, in.Regrant = 5, true
	b := w.beginWith(0, in)
	want := lease.Report{
		Kind: lease.Paced, Incarnation: "paced1", Seq: 2, Used: 3, Prefetched: 4,
		X: lease.Rate{Tokens: 7, Per: time.Second}, Beta: 40, Granted: 30,
	}
	equal(w, "share", b, regionstore.BegunReport{Outcome: regionstore.OK, Report: want})
	l := w.lease(lease.Paced)
	equal(w, "written", l.Sent, want)
	equal(w, "pending", l.Pending, true)
	equal(w, "anchor", l.Anchor, w.at)
	equal(w, "deadline", l.Deadline, Start.Add(10*time.Second))

	// The pending sequence is what anybody sends until it is old enough.
	w.take(1)
	w.pass(time.Second - time.Microsecond)
	equal(w, "young", w.beginWith(time.Second, in), regionstore.BegunReport{Outcome: regionstore.Busy, Report: want})
	equal(w, "anchor of a retry", w.lease(lease.Paced).Anchor, w.at.Add(time.Microsecond-time.Second))
	w.pass(time.Microsecond)
	b = w.beginWith(time.Second, in)
	want.Seq, want.Used = 3, 4
	equal(w, "old", b, regionstore.BegunReport{Outcome: regionstore.OK, Report: want})
	in.Supersede = true
	b = w.beginWith(time.Second, in)
	want.Seq = 4
	equal(w, "superseded", b, regionstore.BegunReport{Outcome: regionstore.OK, Report: want})

	// A lump's report has its want, and what it returned.
	w.giveBack(15)
	in = w.intent(lease.Lump)
	in.Want, in.Regrant = 25, true
	equal(w, "lump", w.beginWith(0, in).Report, lease.Report{
		Kind: lease.Lump, Incarnation: "lump1", Seq: 2, Returned: 5, Want: 25,
	})

	in.Incarnation = "lump0"
	equal(w, "another incarnation", w.beginWith(0, in), regionstore.BegunReport{Outcome: regionstore.Stale})
	in.Kind = 9
	equal(w, "no such kind", w.beginWith(0, in), regionstore.BegunReport{Outcome: regionstore.Stale})
}

func testLower(w *wallet) {
	w.open()
	w.share(lease.Paced, 100, 100, 60)
	equal(w, "prefetched", w.prefetch(10)[0].Tokens, 10)

	in := w.intent(lease.Paced)
	in.LowerX, in.LowerBeta = lease.Rate{Tokens: 61, Per: 2 * time.Second}, 45
	r := w.beginWith(0, in).Report
	equal(w, "x, rounded down", r.X, lease.Rate{Tokens: 30, Per: time.Second})
	equal(w, "beta", r.Beta, 45)
	equal(w, "live", w.live(lease.Paced), 35)

	// A cut never goes up, and an unset one changes nothing.
	in.Supersede = true
	in.LowerX, in.LowerBeta = lease.Rate{Tokens: 99, Per: time.Second}, 99
	equal(w, "raise", w.beginWith(0, in).Report.Beta, 45)
	in.LowerX, in.LowerBeta = lease.Rate{}, -1
	equal(w, "unset", w.beginWith(0, in).Report.X.Tokens, 30)

	// The cap keeps the prefetch limit above what processes hold.
	in.LowerX, in.LowerBeta = lease.Rate{Per: time.Second}, 12
	r = w.beginWith(0, in).Report
	equal(w, "x", r.X, lease.Rate{Per: time.Second})
	equal(w, "beta", r.Beta, 40)
	equal(w, "prefetched", r.Prefetched, 10)
	equal(w, "live", w.live(lease.Paced), 2)

	// A pending sequence that is too young keeps the cut for the next.
	in.Supersede, in.LowerBeta = false, 0
	w.outcome("young", w.beginWith(time.Hour, in).Outcome, regionstore.Busy)
	equal(w, "live", w.live(lease.Paced), 2)
}

// A dead lease may say its last totals, under a fence, so that a clock that
// steps back does not make them untrue.
func testBeginDead(w *wallet) {
	w.open()
	w.lump(9)
	w.share(lease.Paced, 1, 80, 8)
	w.take(9)
	w.pass(10 * time.Second)
	equal(w, "lump", w.begin(lease.Lump), lease.Report{
		Kind: lease.Lump, Incarnation: "lump1", Seq: 2, Used: 1, Returned: 8, Closed: true,
	})
	// The share minted up to its deadline, not a microsecond longer.
	w.pass(2 * time.Second)
	equal(w, "share", w.begin(lease.Paced), lease.Report{
		Kind: lease.Paced, Incarnation: "paced1", Seq: 2, Used: 8, Returned: 10, Closed: true, Granted: 8,
		X: lease.Rate{Per: time.Second},
	})
	w.pass(-2100 * time.Millisecond)
	equal(w, "take after a step back", w.take(1), false)
}

func testInstall(w *wallet) {
	w.open()
	first := w.begin(lease.Lump)
	w.pass(300 * time.Millisecond)
	second := w.begin(lease.Lump)
	grant := func(r lease.Report) lease.State {
		st := active(r, time.Second)
		st.Granted = 7
		return st
	}
	w.outcome("older sequence", w.install(grant(first)), regionstore.Stale)
	other := grant(second)
	other.Incarnation = "lump9"
	w.outcome("another incarnation", w.install(other), regionstore.Stale)
	other = grant(second)
	other.Kind = lease.Paced
	w.outcome("another kind", w.install(other), regionstore.Stale)
	other.Kind = 0
	w.outcome("no kind", w.install(other), regionstore.Stale)
	equal(w, "pending", w.lease(lease.Lump).Pending, true)

	w.pass(300 * time.Millisecond)
	w.outcome("the pending sequence", w.install(grant(second)), regionstore.OK)
	equal(w, "deadline", w.lease(lease.Lump).Deadline, Start.Add(1300*time.Millisecond))
	equal(w, "live", w.live(lease.Lump), 7)
	w.outcome("again", w.install(grant(second)), regionstore.Stale)

	// Too late for itself; the lease keeps its deadline.
	late := w.begin(lease.Lump)
	w.pass(100 * time.Millisecond)
	st := grant(late)
	st.TTL = 100 * time.Millisecond
	w.outcome("late", w.install(st), regionstore.Dead)
	equal(w, "pending", w.lease(lease.Lump).Pending, false)
	equal(w, "live", w.live(lease.Lump), 7)

	// A shorter ttl is taken as it is; a dead lease is not revived.
	short := w.begin(lease.Lump)
	st = grant(short)
	st.TTL = 200 * time.Millisecond
	w.outcome("shorter", w.install(st), regionstore.OK)
	equal(w, "deadline", w.lease(lease.Lump).Deadline, w.at.Add(200*time.Millisecond))
	revive := w.begin(lease.Lump)
	w.pass(200 * time.Millisecond)
	w.outcome("dead", w.install(grant(revive)), regionstore.Dead)
	equal(w, "live", w.live(lease.Lump), 0)
}

func testInstallReplaces(w *wallet) {
	w.open()
	w.lump(10)
	w.lump(10)
	equal(w, "the same total", w.live(lease.Lump), 10)
	w.lump(15)
	equal(w, "a larger one", w.live(lease.Lump), 15)
	w.take(8)
	w.lump(3)
	equal(w, "one below what was used", w.live(lease.Lump), 0)

	w.share(lease.Paced, 0, 20, 5)
	w.share(lease.Paced, 0, 20, 5)
	equal(w, "n0 comes once", w.live(lease.Paced), 5)
	w.share(lease.Paced, 0, 20, 12)
	equal(w, "what it grew by", w.live(lease.Paced), 12)
	equal(w, "prefetched", w.prefetch(5)[0].Tokens, 5)
	w.share(lease.Paced, 0, 9, 12)
	l := w.lease(lease.Paced)
	equal(w, "the cap keeps the prefetch limit", l.Beta, 20)
	equal(w, "balance", l.Balance, 7)
	w.share(lease.Paced, 3, 30, 40)
	equal(w, "the cap bounds the balance", w.live(lease.Paced), 25)
}

func testInstallEnds(w *wallet) {
	w.open()
	w.share(lease.Reserve, 5, 20, 20)
	st := active(w.begin(lease.Reserve), time.Second)
	st.Status = lease.Ended
	w.outcome("ended", w.install(st), regionstore.OK)
	equal(w, "live", w.live(lease.Reserve), 0)
	w.pass(time.Second)
	equal(w, "live", w.live(lease.Reserve), 0)
	w.outcome("begin", w.beginWith(0, w.intent(lease.Reserve)).Outcome, regionstore.Dead)
	w.outcome("close", w.close(lease.Reserve).Outcome, regionstore.Dead)
	equal(w, "a new one", w.open().View.Row.Leases[0].Incarnation, "reserve2")

	// Where none is planned, the sequence goes on, and the way is remembered.
	st = active(w.begin(lease.Paced), 0)
	st.Status, st.Holder = lease.NotPlanned, "paced0"
	w.outcome("not planned", w.install(st), regionstore.OK)
	l := w.lease(lease.Paced)
	equal(w, "pending", l.Pending, false)
	equal(w, "lost", l.Lost, "paced0")
	in := w.intent(lease.Paced)
	in.Regrant = true
	r := w.beginWith(0, in).Report
	equal(w, "sequence", r.Seq, 2)
	equal(w, "regrant", r.Regrant, "paced0")
	st = active(r, time.Second)
	st.Status, st.Holder = lease.NotPlanned, r.Incarnation
	w.install(st)
	equal(w, "lost", w.lease(lease.Paced).Lost, "paced0")

	// Nothing stands in the way any more, says the answer to who named it.
	st = active(w.begin(lease.Paced), 0)
	st.Status = lease.NotPlanned
	w.install(st)
	equal(w, "lost, unsaid", w.lease(lease.Paced).Lost, "paced0")
	st = active(w.beginWith(0, in).Report, 0)
	st.Status = lease.NotPlanned
	w.install(st)
	equal(w, "lost, once it has ended", w.lease(lease.Paced).Lost, "")
	st = active(w.begin(lease.Paced), 0)
	st.Status, st.Holder = lease.NotPlanned, "paced0"
	w.install(st)
	equal(w, "lost", w.lease(lease.Paced).Lost, "paced0")
	w.share(lease.Paced, 1, 1, 1)
	equal(w, "lost, once granted", w.lease(lease.Paced).Lost, "")
}

// Invariant 5, by hand: to the microsecond, by the store's own clock.
func testDeadline(w *wallet) {
	w.open()
	w.lump(8)
	w.share(lease.Paced, 0, 40, 40)
	w.pass(9 * time.Second)
	w.pass(time.Second - time.Microsecond)
	equal(w, "take", w.take(1), true)
	p := w.prefetch(1)[0]
	equal(w, "remains", p.Remains, time.Microsecond)
	equal(w, "remains", w.view().Remains, [lease.Kinds]time.Duration{0, time.Microsecond, time.Microsecond})
	w.pass(time.Microsecond)
	equal(w, "take", w.take(1), false)
	equal(w, "prefetch", len(w.prefetch(1)), 0)
	equal(w, "live", w.view().Live, [lease.Kinds]lease.Tokens{})
	w.outcome("settle", w.settle(p, 1, 0), regionstore.OK)
	w.outcome("return", w.giveBack(0).Outcome, regionstore.Dead)
}
