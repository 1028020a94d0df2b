package allocation_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// An item's failure is its own, and each has its typed error and path.
func TestItemsFailAlone(t *testing.T) {
	alloc := allocation.NewAllocator(ledger(t, 100), allocation.Config{})
	req := lumpRequest("eu", 1, 0, 5)
	bad, unknown := req.Items[0], req.Items[0]
	bad.Demand = math.NaN()
	unknown.Budget = "nobody's"
	req.Items = append(req.Items, bad, unknown)
	reply, err := alloc.SyncLeases(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if reply.Items[0].Err != nil || reply.Items[0].Leases[0].Granted < 5 {
		t.Errorf("the sound item: %+v", reply.Items[0])
	}
	if e := reply.Items[1].Err; e == nil || e.Code != lease.Invalid || e.Field != "items[1].demand" {
		t.Errorf("the invalid item: %v", e)
	}
	if e := reply.Items[2].Err; e == nil || e.Code != lease.UnknownBudget || e.Field != "items[2].budget" || reply.Items[2].Budget != "nobody's" {
		t.Errorf("the unknown budget: %v", e)
	}
	if _, err := alloc.SyncLeases(t.Context(), lease.SyncRequest{}); lease.CodeOf(err) != lease.Invalid {
		t.Errorf("a request of no region: %v", err)
	}
	items := &alloc.Stats().Items
	if items[0].Load() != 1 || items[lease.Invalid].Load() != 1 || items[lease.UnknownBudget].Load() != 1 {
		t.Error("the items are not counted by their outcome")
	}
}

// A store's error reaches regions as unavailable, with a time to retry and
// without the store's words, which the observer hears. Fault seen to be caught:
// a driver's error passed on because its store has given it a type.
func TestStoreErrorsAreTranslated(t *testing.T) {
	for name, broken := range map[string]*faulty{
		"failed":  {rng: rand.New(rand.NewPCG(1, 1)), fails: 100},
		"unknown": {rng: rand.New(rand.NewPCG(1, 1)), lost: 100},
		"typed": {rng: rand.New(rand.NewPCG(1, 1)), fails: 100, failure: fmt.Errorf("postgres: %w",
			lease.Errorf(lease.Unavailable, "", "no answer from the store at db-1"))},
	} {
		broken.Store = ledger(t, 10)
		var heard error
		alloc := allocation.NewAllocator(broken, allocation.Config{}, allocation.WithObserver(func(err error) { heard = err }))
		reply, err := alloc.SyncLeases(t.Context(), lumpRequest("eu", 1, 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if e := reply.Items[0].Err; e == nil || e.Code != lease.Unavailable || e.RetryAfter <= 0 || len(reply.Items[0].Leases) > 0 {
			t.Errorf("%s: answered %+v", name, reply.Items[0])
		} else if strings.Contains(e.Reason, "store") || strings.Contains(e.Reason, "connection") {
			t.Errorf("%s: the region hears %q", name, e.Reason)
		}
		if heard == nil {
			t.Errorf("%s: the observer heard nothing", name)
		}
	}
}

// late is a store that panics once it has committed.
type late struct{ allocation.Store }

func (l late) Update(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	if err := l.Store.Update(ctx, budgets, step); err != nil {
		return err
	}
	panic("after the commit")
}

// A store that panics leaves the outcome unknown, and the same request finds
// it out. Fault seen to be caught: the panic answered as a refusal.
func TestPanicOfTheStoreIsAnUnknownOutcome(t *testing.T) {
	store := ledger(t, 10)
	alloc := allocation.NewAllocator(late{store}, allocation.Config{})
	req := lumpRequest("eu", 1, 0, 3)
	reply, err := alloc.SyncLeases(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	if e := reply.Items[0].Err; e == nil || e.Code != lease.Unavailable {
		t.Errorf("answered %+v", reply.Items[0])
	}
	if s := alloc.Stats(); s.Panics.Load() != 1 || s.UnknownCommits.Load() != 1 {
		t.Errorf("%d panics and %d unknown commits counted", s.Panics.Load(), s.UnknownCommits.Load())
	}
	again, err := allocation.NewAllocator(store, allocation.Config{}).SyncLeases(t.Context(), req)
	if err != nil || grantedIn(again) != pool(t, store, "b").Totals.LumpGranted {
		t.Errorf("the repetition is answered %+v, %v", again, err)
	}
}

func named(name string, burst lease.Tokens) policy.Budget {
	return policy.Budget{
		Name:     name,
		Strategy: policy.Dynamic,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 10, Per: time.Second}, Burst: burst},
	}
}

func versions(budgets []policy.Budget) map[string]uint64 {
	out := map[string]uint64{}
	for _, b := range budgets {
		out[b.Name] = b.Version
	}
	return out
}

func TestBudgetsAreAppliedListedAndDeleted(t *testing.T) {
	store := memory.New(standing, memory.WithCheck(), memory.WithReruns(1))
	alloc := allocation.NewAllocator(store, allocation.Config{})
	applied, err := alloc.Apply(t.Context(), []policy.Budget{named("a", 5), named("b", 5)})
	if err != nil {
		t.Fatal(err)
	}
	all, err := alloc.ListBudgets(t.Context(), 0)
	if err != nil || !all.Full || len(all.Budgets) != 2 || fmt.Sprint(versions(all.Budgets)) != fmt.Sprint(versions(applied)) {
		t.Fatalf("applied %v, listed %+v, %v", versions(applied), all, err)
	}

	again, err := alloc.Apply(t.Context(), []policy.Budget{named("a", 5), named("b", 6)})
	if err != nil || again[0].Version != applied[0].Version || again[1].Version <= applied[1].Version {
		t.Errorf("a was %v and is %v, %v: only b changed", versions(applied), versions(again), err)
	}
	news, err := alloc.ListBudgets(t.Context(), all.Version)
	if err != nil || news.Full || len(news.Budgets) != 1 || news.Budgets[0].Name != "b" || news.Version != again[1].Version {
		t.Errorf("news %+v, %v", news, err)
	}

	if _, err := alloc.Delete(t.Context(), []string{"a", "nobody's"}); lease.CodeOf(err) != lease.UnknownBudget {
		t.Errorf("deleting one that is unknown: %v", err)
	}
	gone, err := alloc.Delete(t.Context(), []string{"a"})
	if err != nil || !gone[0].Deleted {
		t.Errorf("deleted %+v, %v", gone, err)
	}
	twice, err := alloc.Delete(t.Context(), []string{"a"})
	if err != nil || twice[0].Version != gone[0].Version {
		t.Errorf("deleted again: %+v, %v", twice, err)
	}
	if ahead, err := alloc.ListBudgets(t.Context(), 1000); err != nil || !ahead.Full || len(ahead.Budgets) != 2 {
		t.Errorf("a list since a version that never was: %+v, %v", ahead, err)
	}
}

// A bad budget changes nothing of the batch it comes in, and is named.
func TestApplyIsAllOrNone(t *testing.T) {
	store := memory.New(standing)
	alloc := allocation.NewAllocator(store, allocation.Config{})
	bad := named("b", -1)
	_, err := alloc.Apply(t.Context(), []policy.Budget{named("a", 5), bad})
	if lease.CodeOf(err) != lease.Invalid || policy.AllErrors(err)[0].Field[:len("budgets[1].")] != "budgets[1]." {
		t.Errorf("refused with %v", err)
	}
	if _, err := alloc.Apply(t.Context(), []policy.Budget{named("a", 5), named("a", 6)}); lease.CodeOf(err) != lease.Invalid {
		t.Errorf("one name twice: %v", err)
	}
	if list, err := alloc.ListBudgets(t.Context(), 0); err != nil || len(list.Budgets) != 0 {
		t.Errorf("something was applied: %+v, %v", list, err)
	}
}

// The sweep writes off what expired, in batches, and counts it.
func TestSweepExpiresInBatches(t *testing.T) {
	now := standing()
	store := memory.New(func() lease.Time { return now }, memory.WithCheck(), memory.WithReruns(1))
	alloc := allocation.NewAllocator(store, allocation.Config{})
	var budgets []policy.Budget
	var req lease.SyncRequest
	for i := range 100 {
		b := named(fmt.Sprint("b", i), 10)
		b.TTL = 10 * time.Second
		budgets = append(budgets, b)
		item := lumpRequest("eu", 1, 0, 2).Items[0]
		item.Budget = b.Name
		req.Items = append(req.Items, item)
	}
	if _, err := alloc.Apply(t.Context(), budgets); err != nil {
		t.Fatal(err)
	}
	req.Region = "eu"
	reply, err := alloc.SyncLeases(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	granted := lease.Tokens(0)
	for _, item := range reply.Items {
		granted += item.Leases[0].Granted
	}
	if n, err := alloc.Sweep(t.Context()); n != 0 || err != nil {
		t.Errorf("swept %d before anything was due, %v", n, err)
	}
	now = now.Add(time.Minute)
	first, err := alloc.Sweep(t.Context())
	if err != nil || first != 64 {
		t.Errorf("swept %d, %v; want a batch of 64", first, err)
	}
	second, err := alloc.Sweep(t.Context())
	if err != nil || second != 36 {
		t.Errorf("swept %d, %v; want the other 36", second, err)
	}
	stats := alloc.Stats()
	if stats.Expired.Load() != 100 || stats.WrittenOff.Load() != uint64(granted) {
		t.Errorf("%d expired with %d tokens, want 100 with %d", stats.Expired.Load(), stats.WrittenOff.Load(), granted)
	}
}
