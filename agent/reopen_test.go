package agent

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// A lease that was closed while a process held some of it, and whose end that
// process never told, gives way once no process can spend of it any more, as
// the store has it, even if what it counts was not aged out yet: each agent that
// starts puts that off. Seen to catch: waiting for a closed lease's count alone,
// which kept a region without tokens.
func TestAClosedLeaseGivesWayAfterItsDeadline(t *testing.T) {
	b := bucket("acme/x", 10, 100, policy.Dynamic, "us")
	b.Version, b.TTL = 1, 2*time.Second
	for _, c := range []struct {
		past  time.Duration // since the lease's deadline
		opens bool
	}{
		{lease.DefaultClocks().Guard(lease.LongestProcessDeadline) - time.Millisecond, false},
		{lease.DefaultClocks().Guard(lease.LongestProcessDeadline), true},
	} {
		k := NewKeeper(KeeperConfig{Region: "us", Process: "p", Rand: rand.New(rand.NewPCG(1, 1)), Nonce: func() string { return "n" }})
		k.Step(time.Second, Tick{})
		k.Step(time.Second, Listed{List: policy.List{Version: 1, Full: true, Budgets: []policy.Budget{b}}})
		k.Step(time.Second, Used{Budgets: []string{"acme/x"}})
		k.Step(time.Second, Urgent{Budget: "acme/x", Cost: 1})
		row := regionstore.Row{Replid: "life"}
		for kind := lease.Reserve; kind <= lease.Lump; kind++ {
			row.Leases[kind-1] = regionstore.Lease{Incarnation: lease.Incarnation(kind.String())}
		}
		sent := lease.Report{Kind: lease.Lump, Incarnation: "lump", Seq: 1, Returned: 40, Prefetched: 10, Closed: true}
		row.Leases[lease.Lump-1] = regionstore.Lease{
			Incarnation: "lump", Seq: 1, Sent: sent, Closed: true, Granted: 50, Returned: 40, Deadline: epoch,
			Cur: regionstore.Generation{ID: 1, Tokens: 10, Until: epoch.Add(time.Hour)},
		}
		effects, _ := k.Step(time.Second, RowsRead{Budgets: []string{"acme/x"}, Views: []regionstore.View{
			{Outcome: regionstore.OK, Row: row, Time: epoch.Add(c.past), Replid: "life"},
		}})
		opens := false
		for _, f := range effects {
			_, open := f.(OpenRow)
			opens = opens || open
		}
		if opens != c.opens {
			t.Errorf("%v after its deadline: opened anew: %v", c.past, opens)
		}
	}
}
