package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
)

func open(t testing.TB, url string, opts postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(context.Background(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// put creates or replaces budgets whole.
func put(t testing.TB, s allocation.Store, states ...*allocation.State) {
	t.Helper()
	var names []string
	for _, state := range states {
		names = append(names, state.Budget.Name)
	}
	err := s.Apply(context.Background(), names, func(allocation.Now, []*allocation.State) ([]*allocation.State, error) {
		return states, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s allocation.Store, name string) (state *allocation.State) {
	t.Helper()
	err := s.Update(context.Background(), []string{name}, func(_ allocation.Now, states []*allocation.State) error {
		state = states[0]
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return state
}

// Seen to catch: two columns swapped in a statement, a column left out of the
// conflict's SET.
func TestEveryFieldComesBack(t *testing.T) {
	s := open(t, testpg.Database(t), postgres.Options{})
	var next int64
	names := []string{"acme/\x00 'quoted' _:{}", "日本/語", strings.Repeat("x", 256)}
	for _, name := range names {
		first := filledState(name, &next)
		put(t, s, first)
		if got := get(t, s, name); !reflect.DeepEqual(got, first) {
			t.Fatalf("inserted\n%+v\nread\n%+v", first, got)
		}
		want := changeRows(t, s, name, &next)
		if got := get(t, s, name); !reflect.DeepEqual(got, want) {
			t.Fatalf("changed to\n%+v\nread\n%+v", want, got)
		}
	}
	list, _, err := s.View(context.Background(), "", 10)
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != len(names) {
		t.Fatalf("View has %d budgets, want %d", len(list), len(names))
	}
}

// changeRows gives every field that is not of a key a new value, in all rows
// but the last of each table, and deletes that one.
func changeRows(t *testing.T, s allocation.Store, name string, next *int64) (want *allocation.State) {
	t.Helper()
	err := s.Update(context.Background(), []string{name}, func(_ allocation.Now, states []*allocation.State) error {
		st := states[0]
		was := *st
		other := filledState(name, next)
		p, l, r, c := other.Pools[0], other.Leases[0], other.Regions[0], other.Locals[0]
		p.Start = was.Pools[0].Start
		l.Region, l.Kind, l.Incarnation = was.Leases[0].Region, was.Leases[0].Kind, was.Leases[0].Incarnation
		r.Name = was.Regions[0].Name
		c.Region, c.Source = was.Locals[0].Region, was.Locals[0].Source
		l.Closing, r.Paced, l.Ending, l.Window = false, false, allocation.Open, p.Start
		st.Pools, st.Leases = []allocation.Pool{p}, []allocation.Lease{l}
		st.Regions, st.Locals = []allocation.Region{r}, []allocation.Local{c}
		copied := *st
		want = &copied
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return want
}

func TestAStepsErrorWritesNothingAndComesBackAsItIs(t *testing.T) {
	s := open(t, testpg.Database(t), postgres.Options{})
	var next int64
	put(t, s, filledState("a", &next))
	before := get(t, s, "a")
	refused := errors.New("refused")
	err := s.Update(context.Background(), []string{"a"}, func(_ allocation.Now, states []*allocation.State) error {
		states[0].Pools[0].Available++
		return refused
	})
	if err != refused {
		t.Errorf("Update returned %v, want the step's own error", err)
	}
	if got := get(t, s, "a"); !reflect.DeepEqual(got, before) {
		t.Errorf("the refused step changed the state to %+v", got)
	}
}

func TestAPanickingStepLeavesNothingLocked(t *testing.T) {
	s := open(t, testpg.Database(t), postgres.Options{MaxConns: 1})
	var next int64
	put(t, s, filledState("a", &next))
	func() {
		defer func() { _ = recover() }()
		_ = s.Update(context.Background(), []string{"a"}, func(allocation.Now, []*allocation.State) error { panic("bug") })
	}()
	get(t, s, "a")
}

// Seen to catch: a lock without FOR UPDATE.
func TestConcurrentUpdatesOfManyBudgetsLoseNothing(t *testing.T) {
	url := testpg.Database(t)
	stores := []*postgres.Store{open(t, url, postgres.Options{}), open(t, url, postgres.Options{})}
	names := []string{"c", "a", "d", "b"}
	for _, name := range names {
		put(t, stores[0], &allocation.State{Budget: bucket(name), Pools: []allocation.Pool{{}}})
	}
	const workers, rounds = 8, 25
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			// Each worker names the budgets in another order.
			mine := append(append([]string{}, names[w%4:]...), names[:w%4]...)
			for range rounds {
				err := stores[w%2].Update(context.Background(), mine, func(_ allocation.Now, states []*allocation.State) error {
					for i, state := range states {
						if state.Budget.Name != mine[i] {
							return fmt.Errorf("state %d is of %q, want %q", i, state.Budget.Name, mine[i])
						}
						state.Pools[0].Available++
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	for _, name := range names {
		if got := get(t, stores[0], name).Pools[0].Available; got != workers*rounds {
			t.Errorf("%s has %d, want %d", name, got, workers*rounds)
		}
	}
}

// Seen to catch: versions taken from a sequence, which commits out of order.
func TestAReaderOfVersionsSkipsNone(t *testing.T) {
	url := testpg.Database(t)
	s := open(t, url, postgres.Options{})
	const writers, rounds = 4, 15
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range rounds {
				put(t, s, &allocation.State{Budget: bucket(fmt.Sprintf("%d/%d", w, i))})
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	seen, since := map[string]bool{}, uint64(0)
	for finished := false; !finished; {
		select {
		case <-done:
			finished = true // and read once more
		default:
		}
		for {
			list, next, err := s.Budgets(context.Background(), since, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(list) == 0 {
				break
			}
			for _, b := range list {
				seen[b.Name] = true
			}
			since = next
		}
	}
	if len(seen) != writers*rounds {
		t.Errorf("the reader saw %d budgets of %d", len(seen), writers*rounds)
	}
	if since != writers*rounds {
		t.Errorf("the last version is %d, want %d", since, writers*rounds)
	}
}

func TestAMissingSchemaSaysWhatToRun(t *testing.T) {
	_, err := postgres.Open(context.Background(), testpg.Empty(t), postgres.Options{})
	if lease.CodeOf(err) != lease.Unavailable || !strings.Contains(err.Error(), "allocator migrate up") {
		t.Errorf("Open on an empty database: %v", err)
	}
}

// An older schema has columns that nothing fills any more. Seen to catch: the
// refusal taken for a bug of the program's.
func TestAnOlderSchemaSaysWhatToRun(t *testing.T) {
	url := testpg.Database(t)
	newFakeTime(t, url).exec("ALTER TABLE budgets ADD COLUMN gone bigint NOT NULL")
	s := open(t, url, postgres.Options{})
	err := s.Apply(context.Background(), []string{"acme/search"}, func(allocation.Now, []*allocation.State) ([]*allocation.State, error) {
		return []*allocation.State{counted("acme/search")}, nil
	})
	if lease.CodeOf(err) != lease.Unavailable || !strings.Contains(err.Error(), "migrate up") {
		t.Errorf("%v, want unavailable, and to run migrate up", err)
	}
}

func TestAVolatileDatabaseIsRefused(t *testing.T) {
	url := testpg.Database(t) + "&options=-c%20synchronous_commit%3Doff"
	if _, err := postgres.Open(context.Background(), url, postgres.Options{}); !errors.Is(err, postgres.ErrVolatile) {
		t.Errorf("Open with synchronous_commit off: %v, want ErrVolatile", err)
	}
	open(t, url, postgres.Options{AllowVolatile: true})
}
