package agent

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// many lists n budgets, acme/0000 and so on.
func many(n int) (list policy.List, names []string) {
	list = policy.List{Version: 1, Full: true}
	for i := range n {
		names = append(names, fmt.Sprintf("acme/%04d", i))
		b := bucket(names[i], 10, 100, policy.Dynamic, "us")
		b.Version, b.TTL = 1, 10*time.Second
		list.Budgets = append(list.Budgets, b)
	}
	return list, names
}

// While a thousand beats wait for a worker, a wish that somebody waits for goes
// ahead of all but one of them. Seen to catch: one queue for all.
func TestAnUrgentWishOvertakesQueuedBeats(t *testing.T) {
	l := newLive(t)
	r := NewRunner(RunnerConfig{
		Options: Options{Region: "us", Process: "p", Store: l.store()}, Leases: l.ledger, Policies: l.ledger,
		Keeper: KeeperConfig{Rand: rand.New(rand.NewPCG(1, 2)), Nonce: l.nonce},
	})
	onStore, onLedger, done := make(chan Effect), make(chan Effect, 1024), make(chan struct{})
	go func() { defer close(done); r.loop(onStore, onLedger) }()
	look := func(what func(k *Keeper) bool) bool {
		answer := make(chan bool)
		r.asks <- func(k *Keeper) { answer <- what(k) }
		return <-answer
	}
	until := func(what func(k *Keeper) bool) {
		for !look(what) {
			time.Sleep(time.Millisecond)
		}
	}
	list, names := many(maxBusy + 1)
	last := names[maxBusy]
	r.events <- Listed{List: list}
	r.events <- Led{OK: true}
	r.events <- Used{Budgets: names[:maxBusy]}
	for read := 0; read < maxBusy; {
		if f, ok := (<-onStore).(ReadRows); ok {
			read += len(f.Budgets)
			views := make([]regionstore.View, len(f.Budgets))
			for i := range views {
				views[i].Outcome = regionstore.Missing
			}
			r.events <- RowsRead{Budgets: f.Budgets, Views: views}
		}
	}
	until(func(k *Keeper) bool { w := k.wards[names[maxBusy-1]]; return w != nil && w.phase == opening })
	r.want(Urgent{Budget: last, Cost: 1})
	until(func(k *Keeper) bool { w := k.wards[last]; return w != nil && w.phase != resting })
	for ahead := 0; ; ahead++ {
		f := <-onStore
		if open, ok := f.(OpenRow); ok && open.Request.Budget == last {
			t.Logf("%d went ahead", ahead)
			break
		}
		if rankOf(f) != Routine {
			ahead-- // what keeps the process in its region
		}
		if ahead > 1 {
			t.Fatalf("%T went ahead of the wish", f)
		}
	}
	r.events <- Stopping{}
	r.events <- Left{Processes: 1}
	for {
		select {
		case <-onStore:
		case <-done:
			return
		}
	}
}

// No rank waits for ever, however much there is of a higher one. Seen to catch:
// the highest rank alone, and the lowest alone in its turn.
func TestLowerRanksHaveTheirTurn(t *testing.T) {
	var b backlog
	for range 100 {
		for r := range ranks {
			b.push(ReadRows{Rank: r})
		}
	}
	var got []Rank
	for f := b.next(); f != nil; f = b.next() {
		got = append(got, rankOf(f))
		b.pop()
	}
	if len(got) != 300 {
		t.Fatalf("%d came out", len(got))
	}
	if want := []Rank{MoreTokens, MoreTokens, Routine, MoreTokens, MoreTokens, FirstTokens}; !slices.Equal(got[:6], want) {
		t.Errorf("%v", got[:6])
	}
}

// A wish alone is sent at once; those that come while calls for others are under
// way share one, and none waits for longer than gatherUrgent. Seen to catch: a
// call for each.
func TestUrgentWishesShareCalls(t *testing.T) {
	for _, answered := range []bool{true, false} {
		k := NewKeeper(KeeperConfig{Region: "us", Process: "p", Rand: rand.New(rand.NewPCG(1, 1)), Nonce: func() string { return "n" }})
		now := time.Second
		var calls []SendSync
		// step answers what is done on the store at once, and keeps the calls.
		var step func(ev Event)
		step = func(ev Event) {
			effects, _ := k.Step(now, ev)
			for _, f := range effects {
				switch f := f.(type) {
				case OpenRow:
					step(RowOpened{Budget: f.Request.Budget, Reply: &regionstore.OpenReply{Created: true, View: opened()}})
				case BeginSync:
					reply := regionstore.BeginReply{View: opened()}
					for _, in := range f.Request.Intents {
						report := lease.Report{Kind: in.Kind, Incarnation: in.Incarnation, Seq: 1, Want: in.Want}
						reply.Reports = append(reply.Reports, regionstore.BegunReport{Outcome: regionstore.OK, Report: report})
					}
					step(SyncBegun{Budget: f.Request.Budget, Reply: &reply})
				case SendSync:
					calls = append(calls, f)
				}
			}
		}
		list, names := many(100)
		step(Tick{})
		step(Listed{List: list})
		for _, name := range names {
			step(Urgent{Budget: name, Cost: 1})
		}
		if len(calls) != freeCalls {
			t.Fatalf("%d calls at once", len(calls))
		}
		if answered {
			step(SyncDone{ID: calls[0].ID, Took: time.Millisecond})
		} else {
			now += gatherUrgent
			step(Tick{})
		}
		if n := len(calls[freeCalls].Items); n != len(names)-freeCalls {
			t.Errorf("%d in the next call", n)
		}
	}
}

// opened is a row that was just made.
func opened() regionstore.View {
	v := regionstore.View{Outcome: regionstore.OK, Time: epoch, Replid: "life", Row: regionstore.Row{Replid: "life"}}
	for kind := lease.Reserve; kind <= lease.Lump; kind++ {
		v.Row.Leases[kind-1].Incarnation = lease.Incarnation(kind.String())
	}
	return v
}
