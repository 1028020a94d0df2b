package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// A budget that nobody uses any more closes its lump, sends nothing from then
// on, and leaves nothing behind in the agent but its policy once its demand is
// no longer averaged.
func TestIdleBudgetClosesItsLumpSendsNothingAndIsForgotten(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(bucket("acme/x", 100, 200, policy.Dynamic, "us", "eu"), bucket("acme/tiny", 1, 3, policy.Dynamic, "us", "eu"))
	us := w.region("us", 20*time.Millisecond)
	n := w.agent(us)
	n.load("acme/x", 50, 5*time.Second)
	n.load("acme/tiny", 1, 5*time.Second)
	w.run(5 * time.Second)
	if len(n.keeper.wards) != 2 {
		t.Fatalf("%d of 2 budgets are looked after", len(n.keeper.wards))
	}
	w.run(time.Minute)
	for _, name := range []string{"acme/x", "acme/tiny"} {
		views, err := us.store.Read(t.Context(), []string{name}, make([]regionstore.Now, 1))
		if err != nil {
			t.Fatal(err)
		}
		lump := views[0].Row.Leases[lease.Lump-1]
		if !lump.Closed || !lump.Ended && !reported(&lump) {
			t.Errorf("%s: the lump is not closed, or the ledger does not know: %+v", name, lump)
		}
		if e := n.decider.entry(name); e.usage != nil {
			t.Errorf("%s: the process remembers %+v", name, *e.usage)
		}
	}
	calls := n.stats.SyncCalls.Load()
	w.run(10 * time.Minute)
	if got := n.stats.SyncCalls.Load(); got != calls {
		t.Errorf("%d calls for budgets that nobody uses", got-calls)
	}
	if len(n.keeper.wards) != 0 || n.keeper.active() != 0 {
		t.Errorf("the keeper looks after %d budgets, %d of them at times", len(n.keeper.wards), n.keeper.active())
	}
	n.load("acme/x", 50, w.now+time.Second)
	w.run(time.Second)
	if got := n.stats.SyncCalls.Load(); got == calls || len(n.keeper.wards) != 1 {
		t.Errorf("used again: %d more calls, %d budgets looked after", got-calls, len(n.keeper.wards))
	}
}
