package storetest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

var ctx = context.Background()

var errStep = errors.New("storetest: the step says no")

// spend takes n tokens out of a budget's pool, and keeps its books.
func spend(s *allocation.State, n lease.Tokens) {
	s.Pools[0].Available -= n
	s.Pools[0].Totals.Debt += n
}

func testUnknown(t *testing.T, h Harness) {
	create(t, h.Store, "known")
	err := h.Store.Update(ctx, []string{"unknown", "known", "also unknown"}, func(_ allocation.Now, states []*allocation.State) error {
		if len(states) != 3 || states[0] != nil || states[1] == nil || states[2] != nil {
			t.Errorf("got %v, want the second state alone", states)
			return nil
		}
		spend(states[1], 1)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := load(t, h.Store, "known").Pools[0].Totals.Debt; got != 1 {
		t.Errorf("the known budget's write is lost: debt %d, want 1", got)
	}
}

func testStepError(t *testing.T, h Harness) {
	create(t, h.Store, "a", "b")
	err := h.Store.Update(ctx, []string{"b", "a"}, func(_ allocation.Now, states []*allocation.State) error {
		spend(states[0], 1)
		spend(states[1], 1)
		return errStep
	})
	if !errors.Is(err, errStep) {
		t.Errorf("Update returned %v, want the step's error", err)
	}
	for _, name := range []string{"a", "b"} {
		if got := load(t, h.Store, name).Pools[0].Totals.Debt; got != 0 {
			t.Errorf("%s was written despite the error", name)
		}
	}
}

// A retried step starts from stored states again, never from what its last
// run left behind.
func testFreshStates(t *testing.T, h Harness) {
	create(t, h.Store, "a")
	if h.FailNext != nil {
		h.FailNext()
	}
	runs := 0
	err := h.Store.Update(ctx, []string{"a"}, func(_ allocation.Now, states []*allocation.State) error {
		runs++
		if got := states[0].Pools[0].Totals.Debt; got != 0 {
			t.Errorf("run %d sees a debt of %d, want 0", runs, got)
		}
		spend(states[0], 7)
		states[0].Regions = append(states[0].Regions, allocation.Region{Name: "us"})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if h.FailNext != nil && runs < 2 {
		t.Errorf("the step ran %d times, want a retry", runs)
	}
	got := load(t, h.Store, "a")
	if got.Pools[0].Totals.Debt != 7 || len(got.Regions) != 1 {
		t.Errorf("after %d runs the debt is %d with %d regions, want 7 and 1", runs, got.Pools[0].Totals.Debt, len(got.Regions))
	}
}

// What a step kept of a state is not the store's.
func testAliasing(t *testing.T, h Harness) {
	create(t, h.Store, "a")
	kept := load(t, h.Store, "a")
	spend(kept, 5)
	if got := load(t, h.Store, "a").Pools[0].Totals.Debt; got != 0 {
		t.Errorf("a change after Update reached the store: debt %d", got)
	}
	view, _, err := h.Store.View(ctx, "", 10)
	if err != nil || len(view) != 1 {
		t.Fatalf("View: %d states, %v", len(view), err)
	}
	spend(&view[0], 5)
	if got := load(t, h.Store, "a").Pools[0].Totals.Debt; got != 0 {
		t.Errorf("a change of a view reached the store: debt %d", got)
	}
}

// Transactions over overlapping sets of budgets, named in any order, neither
// lose an update nor wait for one another for ever.
func testConcurrent(t *testing.T, h Harness) {
	const workers, rounds = 8, 20
	names := []string{"a", "b", "c", "d", "e"}
	create(t, h.Store, names...)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(w)))
			for range rounds {
				order := slices.Clone(names)
				rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
				subset := order[:3]
				err := h.Store.Update(ctx, subset, func(_ allocation.Now, states []*allocation.State) error {
					for _, s := range states {
						spend(s, 1)
					}
					return nil
				})
				if err != nil {
					t.Errorf("Update(%q): %v", subset, err)
				}
			}
		})
	}
	wg.Wait()
	sum := lease.Tokens(0)
	for _, name := range names {
		sum += load(t, h.Store, name).Pools[0].Totals.Debt
	}
	if want := lease.Tokens(workers * rounds * 3); sum != want {
		t.Errorf("%d of %d updates are kept", sum, want)
	}
}

func testApplyAllOrNone(t *testing.T, h Harness) {
	create(t, h.Store, "old")
	version := load(t, h.Store, "old").Budget.Version
	err := h.Store.Apply(ctx, []string{"new", "old"}, func(now allocation.Now, states []*allocation.State) ([]*allocation.State, error) {
		if states[0] != nil || states[1] == nil {
			t.Errorf("Apply loads %v, want nil and the old state", states)
		}
		return []*allocation.State{allocation.NewState(now, bucket("new", 1, 1)), states[1]}, errStep
	})
	if !errors.Is(err, errStep) {
		t.Errorf("Apply returned %v, want the step's error", err)
	}
	if load(t, h.Store, "new") != nil || load(t, h.Store, "old").Budget.Version != version {
		t.Error("a failed Apply left something behind")
	}
	err = h.Store.Apply(ctx, []string{"new", "old"}, func(now allocation.Now, states []*allocation.State) ([]*allocation.State, error) {
		spend(states[1], 1)
		return []*allocation.State{allocation.NewState(now, bucket("new", 1, 1)), nil}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	old := load(t, h.Store, "old")
	if load(t, h.Store, "new") == nil || old.Budget.Version != version || old.Pools[0].Totals.Debt != 0 {
		t.Error("a nil state must leave its budget alone, and no other")
	}
}

// Each write of a budget gets a version of its own, above all before it, and
// Update keeps it.
func testVersions(t *testing.T, h Harness) {
	last := uint64(0)
	for i := range 6 {
		s := &allocation.State{Budget: bucket([]string{"a", "b", "c"}[i%3], 1, lease.Tokens(i))}
		apply(t, h.Store, s)
		if s.Budget.Version <= last {
			t.Errorf("version %d after %d", s.Budget.Version, last)
		}
		last = s.Budget.Version
		if got := load(t, h.Store, s.Budget.Name).Budget; got.Version != last || got.Contract.Burst != lease.Tokens(i) {
			t.Errorf("stored version %d of burst %d, want %d of %d", got.Version, got.Contract.Burst, last, i)
		}
	}
	list, next, err := h.Store.Budgets(ctx, 0, 10)
	if err != nil || next != last || len(list) != 3 {
		t.Fatalf("Budgets(0): %d budgets, next %d, %v; want 3 and %d", len(list), next, err, last)
	}
}

func testBudgetPages(t *testing.T, h Harness) {
	names := []string{"e", "b", "d", "a", "c"}
	for _, name := range names {
		create(t, h.Store, name)
	}
	var got []string
	since := uint64(0)
	for range 10 {
		page, next, err := h.Store.Budgets(ctx, since, 2)
		if err != nil || len(page) > 2 {
			t.Fatalf("Budgets(%d): %d, %v", since, len(page), err)
		}
		for _, b := range page {
			got = append(got, b.Name)
		}
		since = next
		if len(page) == 0 {
			break
		}
	}
	if !slices.Equal(got, names) {
		t.Errorf("pages list %q, want %q in order of version", got, names)
	}
	apply(t, h.Store, load(t, h.Store, "d"))
	page, next, err := h.Store.Budgets(ctx, since, 2)
	if err != nil || len(page) != 1 || page[0].Name != "d" || next != page[0].Version {
		t.Errorf("after a change of d: %v, next %d, %v", page, next, err)
	}
	if page, newest, err := h.Store.Budgets(ctx, next+1000, 2); err != nil || len(page) != 0 || newest != next {
		t.Errorf("Budgets above the newest version: %v, next %d, %v; want none and %d", page, newest, err, next)
	}
}

// due gives a state a lease that is to be reclaimed at a time.
func due(name string, at lease.Time) *allocation.State {
	return &allocation.State{
		Budget: bucket(name, 1, 10),
		Pools:  []allocation.Pool{{Burst: 10, Outstanding: 1, Totals: allocation.Totals{Start: 1, LumpGranted: 1}}},
		Leases: []allocation.Lease{{Region: "us", Kind: lease.Lump, Incarnation: "i", Seq: 1, Granted: 1, Hold: 1, Reclaim: at}},
	}
}

func testDue(t *testing.T, h Harness) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) lease.Time { return now.Governed.Add(d) }
	create(t, h.Store, "never")
	apply(t, h.Store, due("soon", in(time.Hour)), due("later", in(3*time.Hour)))
	expectDue(t, h)
	h.Advance(2 * time.Hour)
	expectDue(t, h, "soon")
	h.Advance(2 * time.Hour)
	expectDue(t, h, "later", "soon")
	if names, err := h.Store.Due(ctx, 1); err != nil || len(names) != 1 {
		t.Errorf("Due(1) is %q, %v", names, err)
	}
	sweepAll(t, h.Store, "soon")
	expectDue(t, h, "later")
}

// testDueExtended moves what is due, to later and to earlier. A store may name
// the former in vain once; swept, it is not due before its time, and then is.
func testDueExtended(t *testing.T, h Harness) {
	now, err := h.Store.Now(ctx)
	if err != nil {
		t.Fatal(err)
	}
	in := func(d time.Duration) lease.Time { return now.Governed.Add(d) }
	reclaimAt := func(name string, at lease.Time) {
		update(t, h.Store, name, func(_ allocation.Now, s *allocation.State) { s.Leases[0].Reclaim = at })
	}
	apply(t, h.Store, due("later", in(time.Hour)), due("earlier", in(5*time.Hour)))
	reclaimAt("later", in(3*time.Hour))
	reclaimAt("earlier", in(time.Hour))
	h.Advance(2 * time.Hour)
	sweepAll(t, h.Store, "later")
	expectDue(t, h, "earlier")
	h.Advance(2 * time.Hour)
	expectDue(t, h, "earlier", "later")
	sweepAll(t, h.Store, "earlier", "later")
	expectDue(t, h)
}

// sweepAll sweeps each of the named budgets.
func sweepAll(t *testing.T, s allocation.Store, names ...string) {
	t.Helper()
	for _, name := range names {
		update(t, s, name, func(now allocation.Now, s *allocation.State) { allocation.Sweep(allocation.Config{}, now, s) })
	}
}

func update(t *testing.T, s allocation.Store, name string, step func(allocation.Now, *allocation.State)) {
	t.Helper()
	err := s.Update(ctx, []string{name}, func(now allocation.Now, states []*allocation.State) error {
		step(now, states[0])
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func expectDue(t *testing.T, h Harness, want ...string) {
	t.Helper()
	got, err := h.Store.Due(ctx, 10)
	slices.Sort(got)
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("due are %q, %v; want %q", got, err, want)
	}
}

func testViewPages(t *testing.T, h Harness) {
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("budget %d", i))
	}
	shuffled := slices.Clone(want)
	slices.Reverse(shuffled)
	create(t, h.Store, shuffled...)
	var got []string
	after := ""
	for range 10 {
		page, now, err := h.Store.View(ctx, after, 3)
		if err != nil || now.Governed == 0 {
			t.Fatalf("View(%q): %v at %v", after, err, now)
		}
		for _, s := range page {
			got = append(got, s.Budget.Name)
			after = s.Budget.Name
		}
		if len(page) < 3 {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("pages have %q, want %q", got, want)
	}
}

func testTime(t *testing.T, h Harness) {
	before, err := h.Store.Now(ctx)
	if err != nil || before.Governed <= 0 || before.Raw <= 0 {
		t.Fatalf("Now is %v, %v", before, err)
	}
	h.Advance(1500 * time.Millisecond)
	create(t, h.Store, "a")
	var inside allocation.Now
	err = h.Store.Update(ctx, []string{"a"}, func(now allocation.Now, _ []*allocation.State) error {
		inside = now
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if inside.Governed < before.Governed.Add(1500*time.Millisecond) || inside.Raw < before.Raw.Add(1500*time.Millisecond) {
		t.Errorf("1.5 s after %v the time is %v", before, inside)
	}
	after, err := h.Store.Now(ctx)
	if err != nil || after.Governed < inside.Governed || after.Raw < inside.Raw {
		t.Errorf("time went from %v back to %v, %v", inside, after, err)
	}
}
