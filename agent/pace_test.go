package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// A region next door to the ledger, asked for more than it gets, Syncs no more
// often than an answer may bring it something, also after its store was lost:
// while the ledger has nothing to give, asks are askSoon apart at least, save for
// jitter. A share that is as planned and a quota that is used up are not asked
// about by every caller. What was lost is named until the ledger has ended it, and
// what the region never held is not.
//
// Seen to catch, a second: 42 Syncs where the hint of a pool that mints was heeded
// to the letter, 150 about a share that was as planned, 178 where an answer about
// shares alone erased that the quota is used up; and a reserve that the budget
// does not have named in each of them.
func TestPaceWhereTheLedgerHasNothing(t *testing.T) {
	quota := bucket("acme/x", 1, 1, policy.Dynamic, "us", "eu", "ap")
	quota.Contract = policy.Contract{Quota: policy.Quota{N: 3000, Per: policy.Day, Zone: "UTC"}}
	for name, c := range map[string]struct {
		budget policy.Budget
		most   int // Syncs a second
	}{
		"dynamic":       {bucket("acme/x", 3000, 300, policy.Dynamic, "us", "eu", "ap"), 27},
		"small dynamic": {bucket("acme/x", 100, 50, policy.Dynamic, "us", "eu", "ap"), 27},
		"static":        {bucket("acme/x", 1000, 300, policy.Static, "us", "eu", "ap"), 3},
		"quota":         {quota, 6},
	} {
		for loss, lose := range map[string]func(w *world, s *site){
			"restarts":   func(_ *world, s *site) { s.store.Restart() },
			"comes back": func(_ *world, s *site) { s.store.Restore(s.store.Snapshot()) },
		} {
			t.Run(name+" "+loss, func(t *testing.T) { pace(t, c.budget, lose, c.most) })
		}
	}
}

func pace(t *testing.T, b policy.Budget, lose func(*world, *site), most int) {
	w := newWorld(t, 1)
	w.check = false
	w.apply(b)
	rate := max(1000, b.Contract.Rate.PerSecond()) * 3
	const end = 11 * time.Second
	us, eu := w.region("us", 80*time.Millisecond), w.region("eu", 3*time.Millisecond)
	w.agent(us).load("acme/x", 0.3*rate, end)
	n := w.agent(eu)
	n.load("acme/x", 0.6*rate, end)
	w.agent(w.region("ap", 200*time.Millisecond)).load("acme/x", 0.1*rate, end)
	var syncs [end / time.Second]int
	named := map[lease.Incarnation]int{}
	n.killAt = func(stage string, f Effect) bool {
		send, ok := f.(SendSync)
		if !ok || stage != "before" {
			return false
		}
		syncs[min(w.now/time.Second, end/time.Second-1)]++
		for _, r := range send.Items[0].Leases {
			if r.Regrant != "" {
				named[r.Regrant]++
			}
		}
		return false
	}
	var held [lease.Kinds]bool
	w.after(4*time.Second, func() {
		for i, l := range eu.store.Peek("acme/x").Row.Leases {
			held[i] = l.Deadline != 0
		}
		lose(w, eu)
	})
	w.run(end)
	for second, n := range syncs[1:] {
		if n > most {
			t.Errorf("%d Syncs in second %d, of at most %d: %d", n, second+1, most, syncs)
			break
		}
	}
	shares := 0
	for _, h := range held[:lease.Lump-1] {
		if h {
			shares++
		}
	}
	if len(named) > shares {
		t.Errorf("named as lost: %v, held were %v", named, held)
	}
	for inc, times := range named {
		if times > 2 {
			t.Errorf("%s was named as lost %d times", inc, times)
		}
	}
}
