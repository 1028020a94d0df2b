package agent

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// What a leader was still to close when it went, its successor closes, whenever
// that is and however it goes; so does the last process, if both go one after the
// other. Seen to fail without the list of what is disused, for whoever leads next
// and for the last one.
func TestWhatALeaderLeavesOpenIsClosed(t *testing.T) {
	for at := 6 * time.Second; at < 32*time.Second; at += 1300 * time.Millisecond {
		for _, how := range []string{"stopped", "killed", "both stopped"} {
			t.Run(fmt.Sprint(how, " at ", at), func(t *testing.T) {
				w := newWorld(t, 1)
				b := bucket("acme/x", 10, 1000, policy.Dynamic, "us")
				b.TTL = 2 * time.Minute
				w.apply(b)
				us := w.region("us", 20*time.Millisecond)
				leader := w.agent(us)
				w.run(time.Second)
				other := w.agent(us)
				leader.load("acme/x", 50, 2*time.Second)
				w.run(at - time.Second)
				if how == "killed" {
					leader.kill()
				} else {
					leader.stop()
				}
				w.run(time.Second)
				if how == "both stopped" {
					other.stop()
				}
				w.run(time.Minute)
				views, err := us.store.Read(t.Context(), []string{"acme/x"}, make([]regionstore.Now, 1))
				if err != nil {
					t.Fatal(err)
				}
				if lump := views[0].Row.Leases[lease.Lump-1]; !lump.Closed || !lump.Ended && !reported(&lump) {
					t.Errorf("the lump is open, or the ledger does not know: %+v", lump)
				}
				w.audit()
			})
		}
	}
}

// A process that began to lead a moment before it leaves, and is not the last one,
// closes nothing of what it is told then. Seen to fail where whoever stops closes.
func TestWhoLeavesOthersBehindClosesNothing(t *testing.T) {
	k := NewKeeper(KeeperConfig{Region: "us", Process: "p", Rand: rand.New(rand.NewPCG(1, 1)), Nonce: func() string { return "n" }})
	list := policy.List{Version: 1, Full: true, Budgets: []policy.Budget{bucket("acme/x", 10, 1000, policy.Dynamic, "us")}}
	now := time.Hour
	for _, ev := range []Event{
		Tick{},
		Listed{List: list},
		Led{OK: true},
		Stopping{},
		InUse{Budgets: []string{"acme/x"}},
		Disused{},
	} {
		now += time.Millisecond
		k.Step(now, ev)
	}
	if k.closing || k.stopped {
		t.Errorf("closing: %v, stopped: %v before it is known who is left", k.closing, k.stopped)
	}
	if k.Step(now+time.Millisecond, Left{Processes: 1}); k.closing || !k.stopped {
		t.Errorf("closing: %v, stopped: %v with another process left", k.closing, k.stopped)
	}
}
