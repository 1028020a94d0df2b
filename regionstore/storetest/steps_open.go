package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func (w *wallet) allMissing() {
	w.Helper()
	none := regionstore.Part{Kind: lease.Lump, Incarnation: "lump1", Generation: 1}
	w.outcome("read", w.view().Outcome, regionstore.Missing)
	w.outcome("begin", w.beginWith(0, regionstore.Intent{Kind: lease.Lump, Incarnation: "lump1"}).Outcome, regionstore.Missing)
	st := active(lease.Report{Kind: lease.Lump, Incarnation: "lump1", Seq: 1}, time.Second)
	w.outcome("install", w.install(st), regionstore.Missing)
	r := w.takeOf(regionstore.Take{Demand: 1})
	w.outcome("take", r.Results[0].Outcome, regionstore.Missing)
	equal(w, "took", r.Took, false)
	w.outcome("settle", w.settle(none, 1, 0), regionstore.Missing)
	w.outcome("return", w.giveBack(0).Outcome, regionstore.Missing)
	w.outcome("close", w.close(lease.Lump).Outcome, regionstore.Missing)
	w.outcome("local", w.local(0, localRate, localBurst).Outcome, regionstore.Missing)
	w.outcome("read", w.view().Outcome, regionstore.Missing)
	equal(w, "row", w.view().Row, regionstore.Row{})
}

// Invariant 7, by hand.
func testMissing(w *wallet) {
	w.allMissing()
	w.open()
	w.lump(5)
	w.s.LoseRow(w.budget)
	w.allMissing()
	w.open()
	w.lump(5)
	w.s.Restart("another")
	w.allMissing()
}

func testVoid(w *wallet) {
	w.open()
	w.share(lease.Reserve, 10, 10, 10)
	w.lump(5)
	w.local(0, localRate, localBurst)
	w.pass(time.Second)
	equal(w, "local", w.local(1, localRate, localBurst).Balance, 2)
	w.s.Save()
	w.s.Restore("second")
	w.allMissing()

	r := w.open()
	equal(w, "created, void", [2]bool{r.Created, r.Void}, [2]bool{true, true})
	fresh := regionstore.Row{Replid: "second", Local: regionstore.Local{Nonce: "local2", Mark: w.at}}
	for i, inc := range []lease.Incarnation{"reserve2", "paced2", "lump2"} {
		fresh.Leases[i].Incarnation = inc
	}
	fresh.Leases[0].Lost = "reserve1"
	equal(w, "row", r.View.Row, fresh)
	equal(w, "live", r.View.Live, [lease.Kinds]lease.Tokens{})
	equal(w, "replid", r.View.Replid, "second")
	equal(w, "local", w.local(1, localRate, localBurst).Outcome, regionstore.Short)

	in := w.intent(lease.Reserve)
	in.Regrant = true
	equal(w, "regrant", w.beginWith(0, in).Report.Regrant, "reserve1")
	w.s.Save()
	w.s.Restore("third")
	equal(w, "lost of what was begun", w.open().View.Row.Leases[0].Lost, "reserve2")
	w.s.Save()
	w.s.Restore("fourth")
	equal(w, "lost of what was never begun", w.open().View.Row.Leases[0].Lost, "reserve2")
	st := active(w.begin(lease.Reserve), 0)
	st.Status, st.Holder = lease.NotPlanned, "reserve3"
	w.install(st)
	w.s.Save()
	w.s.Restore("fifth")
	equal(w, "lost of what was not granted", w.open().View.Row.Leases[0].Lost, "reserve3")
}

func testOpen(w *wallet) {
	r := w.open()
	equal(w, "created, void", [2]bool{r.Created, r.Void}, [2]bool{true, false})
	w.lump(5)
	w.share(lease.Paced, 1, 4, 0)
	r = w.open()
	equal(w, "created", r.Created, false)
	equal(w, "lump", r.View.Row.Leases[2].Incarnation, "lump1")

	// A closed lease gives way once its totals were answered.
	w.close(lease.Lump)
	equal(w, "closed", w.open().View.Row.Leases[2].Incarnation, "lump1")
	st := active(w.begin(lease.Lump), time.Second)
	equal(w, "begun", w.open().View.Row.Leases[2].Incarnation, "lump1")
	w.outcome("install", w.install(st), regionstore.Dead)
	w.open()
	equal(w, "answered", w.lease(lease.Lump).Incarnation, "lump5")

	// A dead one gives way after the guard, reported or not.
	guard := Config().Clocks.Guard(lease.LongestProcessDeadline)
	w.pass(10*time.Second + guard - time.Microsecond)
	equal(w, "dead", w.open().View.Row.Leases[1].Incarnation, "paced1")
	w.pass(time.Microsecond)
	equal(w, "dead for long", w.open().View.Row.Leases[1].Incarnation, "paced7")

	// One that nothing was ever begun for gives way when closed.
	w.close(lease.Paced)
	equal(w, "closed unused", w.open().View.Row.Leases[1].Incarnation, "paced8")
}

func testNames(w *wallet) {
	ctx, s := context.Background(), w.s.Store
	if err := s.Touch(ctx, []string{"t/a", "u/b"}, time.Second); err != nil {
		w.Fatal(err)
	}
	lead := func(holder string) bool { return must(s.Lead(ctx, holder, time.Second)) }
	equal(w, "first leader", lead("one"), true)
	equal(w, "second leader", lead("two"), false)
	equal(w, "one joins", must(s.Join(ctx, "one", time.Second)), 1)
	equal(w, "two joins", must(s.Join(ctx, "two", 2*time.Second)), 2)
	equal(w, "two joins again", must(s.Join(ctx, "two", 2*time.Second)), 2)

	w.pass(999 * time.Millisecond)
	equal(w, "in use", len(must(s.InUse(ctx))), 2)
	equal(w, "second leader", lead("two"), false)
	equal(w, "renewed", lead("one"), true)
	w.pass(time.Millisecond)
	equal(w, "in use", len(must(s.InUse(ctx))), 0)
	disused := func(within time.Duration) int { return len(must(s.Disused(ctx, within))) }
	equal(w, "disused just now", disused(time.Millisecond), 2)
	if err := s.Touch(ctx, []string{"t/a"}, time.Millisecond); err != nil {
		w.Fatal(err)
	}
	equal(w, "disused, in use again", disused(time.Minute), 1)
	var many []string
	for i := range 1001 {
		many = append(many, fmt.Sprintf("t/%d", i))
	}
	if err := s.Touch(ctx, many, time.Millisecond); err != nil {
		w.Fatal(err)
	}
	equal(w, "many in use", len(must(s.InUse(ctx))), len(many)+1)
	equal(w, "second leader", lead("two"), false)
	equal(w, "three joins", must(s.Join(ctx, "three", time.Second)), 2)
	equal(w, "three leaves", must(s.Leave(ctx, "three")), 1)
	equal(w, "a stranger leaves", must(s.Leave(ctx, "four")), 1)
	for _, holder := range []string{"two", "one"} {
		if err := s.Unlead(ctx, holder); err != nil {
			w.Fatal(err)
		}
		equal(w, "given up", lead("two"), holder == "one")
	}
}
