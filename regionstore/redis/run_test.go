package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// exchanged sends calls in one round trip.
func exchanged(s *Store, calls ...call) ([]*reply, []error) {
	replies, errs := make([]*reply, len(calls)), make([]error, len(calls))
	s.exchange(context.Background(), calls, replies, errs)
	return replies, errs
}

// A run of many steps does to each row what the steps do one by one, and answers
// each of them the same. Seen to fail with keys that did not move on, with the
// first answer dealt out to all, and with kept answers that began with another's.
func TestStepsOfOneRunAreThoseDoneOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	alone, one := sharedSubject(t, regionstore.DefaultConfig()), sharedSubject(t, regionstore.DefaultConfig())
	both := [...]*subject{alone, one}
	budgets := []string{"acme/a", "acme/b", "acme/c", "other/d"}
	ctx := context.Background()
	for i, b := range budgets[:3] { // there is no row of the last one
		for _, s := range both {
			if _, err := s.store.Open(ctx, regionstore.OpenRequest{Budget: b, Nonces: [lease.Kinds]lease.Incarnation{"r", "p", "l"}, LocalNonce: "n"}); err != nil {
				t.Fatal(err)
			}
			install(t, s.store, begin(t, s.store, b, "l"), lease.Tokens(40*(i+1)))
		}
	}
	for round := range 150 {
		n, seed := 1+random.IntN(40), random.Uint64()
		calls := func(s *Store) []call {
			r := rand.New(rand.NewPCG(seed, 0))
			list := make([]call, n)
			for i := range list {
				list[i] = anyCall(s, r, budgets, round)
			}
			return list
		}
		want := make([]*reply, n)
		for i, c := range calls(alone.store) {
			replies, errs := exchanged(alone.store, c)
			if errs[0] != nil {
				t.Fatal(errs[0])
			}
			want[i] = replies[0]
		}
		got, errs := exchanged(one.store, calls(one.store)...)
		for i := range got {
			if errs[i] != nil || !reflect.DeepEqual(got[i].vals, want[i].vals) {
				t.Fatalf("round %d, call %d of %d: %v %v, alone %v", round, i, n, got[i], errs[i], want[i].vals)
			}
		}
		pause := time.Duration(random.IntN(1500)) * time.Millisecond
		for _, s := range both {
			s.now = s.now.Add(pause)
		}
	}
}

// anyCall is a step that moves tokens or looks at them. All calls of a round are
// of one script, as others may overtake them.
func anyCall(s *Store, r *rand.Rand, budgets []string, round int) call {
	any := func() string { return budgets[r.IntN(len(budgets))] }
	switch round % 3 {
	case 0:
		var args arguments
		args.now(regionstore.Now{})
		return s.onRow(s.scripts.read, any(), args)
	case 1:
		return s.settleCall(&regionstore.Settle{
			Budget: any(), Kind: lease.Lump, Incarnation: "l", Generation: uint64(r.IntN(4)),
			Used: lease.Tokens(r.IntN(3)), Back: lease.Tokens(r.IntN(3)),
		})
	}
	req := takes(lease.Tokens(r.IntN(3)), any())
	if r.IntN(2) == 0 {
		req.Takes[0].Prefetch = lease.Tokens(r.IntN(4))
	}
	if r.IntN(4) == 0 {
		req.Takes = append(req.Takes, takes(1, any()).Takes...)
	}
	if r.IntN(4) == 0 {
		req.RequestID, req.Content, req.KeepAnswer = fmt.Sprint(r.IntN(5)), fmt.Sprint(r.IntN(2)), time.Minute
	}
	return s.takeCall(&req)
}

// A step that fails has changed nothing and fails alone, though others share its
// run. Seen to fail when each.lua called step without pcall.
func TestAStepThatFailsDoesNotHoldUpTheOthers(t *testing.T) {
	s := shared(t)
	names := []string{"acme/a", "acme/b", "acme/c"}
	var calls []call
	for _, n := range names {
		grant(t, s, n, 10)
		req := takes(3, n)
		calls = append(calls, s.takeCall(&req))
	}
	ctx := context.Background()
	// What cannot be read: of two rows, so that something is there of the answer.
	if err := s.client.Del(ctx, s.keys.row("acme/b")).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.LPush(ctx, s.keys.row("acme/b"), "no row").Err(); err != nil {
		t.Fatal(err)
	}
	two := takes(3, "acme/c", "acme/b")
	calls = append(calls, s.takeCall(&two))
	if runs := together(calls); len(runs) != 1 {
		t.Fatalf("%d runs", len(runs))
	}
	replies, errs := exchanged(s, calls...)
	for i, want := range []bool{true, false, true, false} {
		if !want {
			wantUnavailable(t, errs[i])
			if errs[i] == nil || !strings.Contains(errs[i].Error(), "WRONGTYPE") {
				t.Errorf("%d: %v", i, errs[i])
			}
			continue
		}
		if errs[i] != nil {
			t.Errorf("%d: %v", i, errs[i])
			continue
		}
		if got, err := replies[i].taken(); err != nil || !got.Took || got.Results[0].Live != 7 {
			t.Errorf("%d: %+v %v", i, got, err)
		}
	}
	if used := lump(read(t, s, "acme/c")).Used; used != 3 {
		t.Errorf("%d used of one whose second take failed", used)
	}
}

// A refill that fails for one budget says what the others got: nobody else knows of
// their tokens. Seen to fail where an error stands for all.
func TestARefillThatFailsForOneSaysWhatOthersGot(t *testing.T) {
	s, ctx := shared(t), context.Background()
	names := []string{"acme/a", "acme/b", "acme/c"}
	list := make([]regionstore.Take, len(names))
	for i, n := range names {
		grant(t, s, n, 10)
		list[i] = regionstore.Take{Budget: n, Prefetch: 4}
	}
	if err := s.client.Del(ctx, s.keys.row("acme/b")).Err(); err != nil {
		t.Fatal(err)
	}
	if err := s.client.LPush(ctx, s.keys.row("acme/b"), "no row").Err(); err != nil {
		t.Fatal(err)
	}
	got, err := s.Refill(ctx, list)
	wantUnavailable(t, err)
	for i, want := range []regionstore.Outcome{regionstore.OK, 0, regionstore.OK} {
		if got[i].Outcome != want || want != 0 && got[i].Parts[0].Tokens != 4 {
			t.Errorf("%s: %+v", names[i], got[i])
		}
	}
}

// What a step had answered before it failed is not there, or the next ones' answers
// would be read from within it. Seen to fail when each.lua left it.
func TestAStepThatFailsLateDoesNotShiftTheOthersAnswers(t *testing.T) {
	s := shared(t)
	var calls []call
	for i, n := range []string{"acme/a", "acme/b", "acme/c"} {
		grant(t, s, n, 10)
		req := begin(t, s, n, lump(read(t, s, n)).Incarnation)
		req.States[0].Granted = 20
		if i == 1 {
			req.States = append(req.States, req.States[0], lease.State{Kind: lease.Lump, Incarnation: "x", Status: lease.Active, Holder: "\x01"})
		}
		var args arguments
		args.now(regionstore.Now{})
		args.num(int64(len(req.States)))
		for i := range req.States {
			args.state(&req.States[i])
		}
		calls = append(calls, s.onRow(s.scripts.install, n, args))
	}
	replies, errs := exchanged(s, calls...)
	for i, n := range []string{"acme/a", "acme/b", "acme/c"} {
		want := lease.Tokens(20)
		if i == 1 {
			want = 10
			wantUnavailable(t, errs[i])
		} else if errs[i] != nil || replies[i].outcome() != regionstore.OK {
			t.Errorf("%s: %v", n, errs[i])
		} else if v := replies[i].view(); v.Outcome != regionstore.OK || replies[i].err != nil || replies[i].more() {
			t.Errorf("%s: %+v %v", n, v, replies[i].err)
		}
		if got := lump(read(t, s, n)).Granted; got != want {
			t.Errorf("%s: %d granted, want %d", n, got, want)
		}
	}
}

// Calls share a run if they are of one script and slot and touch few rows
// together. Seen to fail without each of these.
func TestWhatSharesARun(t *testing.T) {
	a, b, single := &script{each: true}, &script{each: true}, &script{}
	of := func(sc *script, slot uint32, rows int) call {
		return call{script: sc, slot: slot, keys: make([]string, rows)}
	}
	for _, c := range []struct {
		name  string
		calls []call
		want  [][]int
	}{
		{"one script", []call{of(a, 0, 1), of(a, 0, 2), of(a, 0, 1)}, [][]int{{0, 1, 2}}},
		{"two scripts in turn", []call{of(a, 0, 1), of(b, 0, 1), of(a, 0, 1), of(b, 0, 1)}, [][]int{{0, 2}, {1, 3}}},
		{"two slots in turn", []call{of(a, 1, 1), of(a, 2, 1), of(a, 1, 1)}, [][]int{{0, 2}, {1}}},
		{"a script for one", []call{of(single, 0, 1), of(single, 0, 1)}, [][]int{{0}, {1}}},
		{"full", []call{of(a, 0, runRows-1), of(a, 0, 1), of(a, 0, 1)}, [][]int{{0, 1}, {2}}},
		{"in their order", []call{of(a, 0, runRows-1), of(a, 0, runRows), of(a, 0, 1)}, [][]int{{0}, {1}, {2}}},
		{"more than a run has", []call{of(a, 0, 2*runRows), of(a, 0, 1)}, [][]int{{0}, {1}}},
	} {
		var got [][]int
		for _, r := range together(c.calls) {
			got = append(got, r.at)
			if len(r.calls) != len(r.at) {
				t.Errorf("%s: %+v", c.name, r)
			}
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Rows that are read, or settled, together are one run of a script for many of
// them. Seen to fail with a run for each.
func TestManyRowsAreFewRuns(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	names := make([]string, 8*othersBatch)
	for i := range names {
		names[i] = fmt.Sprintf("acme/%d", i)
	}
	server.Do("CONFIG", "RESETSTAT")
	if _, err := s.Read(t.Context(), names, make([]regionstore.Now, len(names))); err != nil {
		t.Fatal(err)
	}
	stats := server.Do("INFO", "commandstats").(string)
	var runs int
	for _, name := range []string{"cmdstat_evalsha", "cmdstat_eval"} {
		var n int
		if line, ok := infoField(stats, name); ok {
			if _, err := fmt.Sscanf(line, "calls=%d,", &n); err != nil {
				t.Fatal(err)
			}
		}
		runs += n
	}
	if most := len(names)/othersBatch + 1; runs > most { // one more for a script that was not known yet
		t.Errorf("%d runs for %d rows", runs, len(names))
	}
}

// An answer that is not what a run of several gives is an error of each call, and
// no panic.
func TestAnswersThatAreNoneAreErrors(t *testing.T) {
	for _, vals := range [][]any{
		{"id"}, {"id", int64(1)}, {"id", int64(-2)}, {"id", "1", int64(1)}, {"id", int64(-1)}, {"id", int64(-1), int64(3)}, {"id", int64(1 << 40), int64(1)},
	} {
		whole := &reply{vals: vals, at: 1}
		for range 2 {
			if r, err := whole.step(); err == nil {
				t.Errorf("%v: %+v", vals, r)
			}
		}
	}
	whole := &reply{vals: []any{"id", int64(1), int64(7), int64(-1), "OOM no room", int64(0)}, at: 1}
	first, err := whole.step()
	if err != nil || first.num() != 7 || first.more() {
		t.Errorf("%+v %v", first, err)
	}
	if _, err := whole.step(); err == nil || !strings.Contains(err.Error(), "OOM no room") || lease.CodeOf(err) != lease.Unavailable {
		t.Errorf("%v", err)
	}
	if last, err := whole.step(); err != nil || last.more() {
		t.Errorf("%+v %v", last, err)
	}
}
