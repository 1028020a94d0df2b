package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
)

// fakeTime is a database whose clock tests set, and the monotonic clock of the
// processes that use it.
type fakeTime struct {
	t       testing.TB
	url     string
	elapsed atomic.Int64
}

const epoch = 1_700_000_000_000_000

func newFakeTime(t testing.TB, url string) *fakeTime {
	f := &fakeTime{t: t, url: url}
	f.exec("CREATE TABLE test_clock (now bigint NOT NULL)")
	f.exec("INSERT INTO test_clock VALUES ($1)", int64(epoch))
	return f
}

func (f *fakeTime) exec(sql string, args ...any) {
	f.t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, f.url)
	if err != nil {
		f.t.Fatal(err)
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, sql, args...); err != nil {
		f.t.Fatal(err)
	}
}

// options lets a store live in this time.
func (f *fakeTime) options() postgres.Options {
	return postgres.Options{
		ClockSQL: "(SELECT now FROM test_clock)",
		Elapsed:  func() time.Duration { return time.Duration(f.elapsed.Load()) },
		MaxConns: 10,
	}
}

// pass lets d go by for all.
func (f *fakeTime) pass(d time.Duration) {
	f.t.Helper()
	f.elapsed.Add(int64(d))
	f.step(d)
}

// step moves the database's clock alone.
func (f *fakeTime) step(d time.Duration) {
	f.t.Helper()
	f.exec("UPDATE test_clock SET now = now + $1", d.Microseconds())
}

func now(t testing.TB, s allocation.Store) allocation.Now {
	t.Helper()
	n, err := s.Now(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// within returns the time that a transaction sees.
func within(t testing.TB, s allocation.Store) (seen allocation.Now) {
	t.Helper()
	err := s.Update(context.Background(), []string{"a"}, func(n allocation.Now, _ []*allocation.State) error {
		seen = n
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return seen
}

func TestTwoReplicasGoOnOverSteps(t *testing.T) {
	f := newFakeTime(t, testpg.Database(t))
	one, two := open(t, f.url, f.options()), open(t, f.url, f.options())
	last := now(t, one).Governed
	const second = 1_000_000
	expect := func(what string, want int64) {
		t.Helper()
		// The drift of 1e-3 is what a step may add.
		for i, s := range []*postgres.Store{one, two} {
			got := within(t, s).Governed
			if passed := int64(got - last); passed < want || passed > want+want/1000+1 {
				t.Errorf("%s: replica %d saw %d us go by, want %d", what, i, passed, want)
			}
		}
		last = max(now(t, one).Governed, now(t, two).Governed)
	}
	f.pass(time.Second)
	expect("a second", second)
	f.step(time.Hour)
	expect("a step forward", 0)
	f.pass(time.Second)
	expect("a second after it", second)
	f.step(-2 * time.Hour)
	expect("a step back", 0)
	f.pass(time.Second)
	expect("a second after that", second)
	f.step(2 * time.Hour)
	expect("the step undone", 0)
}

func TestTheLedgerGoesOnFromTheStoredTimeAfterAPause(t *testing.T) {
	f := newFakeTime(t, testpg.Database(t))
	s := open(t, f.url, f.options())
	f.pass(time.Second)
	before := now(t, s)
	s.Close()
	f.pass(time.Hour)
	after := now(t, open(t, f.url, f.options()))
	if after.Governed != before.Governed {
		t.Errorf("over a pause of an hour governed time went from %d to %d", before.Governed, after.Governed)
	}
	if want := before.Raw.Add(time.Hour); after.Raw != want {
		t.Errorf("raw time is %d after the pause, want %d", after.Raw, want)
	}
}

func TestAStartBesideARunningReplicaCostsNoTime(t *testing.T) {
	f := newFakeTime(t, testpg.Database(t))
	one := open(t, f.url, f.options())
	for range 10 {
		f.pass(time.Second)
		now(t, one)
	}
	f.pass(900 * time.Millisecond)
	two := open(t, f.url, f.options())
	if a, b := now(t, one), now(t, two); a != b || a.Governed != epoch+10_900_000 {
		t.Errorf("the replicas' times are %+v and %+v", a, b)
	}
}

func TestRawTimeIsHeldMonotone(t *testing.T) {
	f := newFakeTime(t, testpg.Database(t))
	s := open(t, f.url, f.options())
	f.pass(time.Minute)
	before := now(t, s).Raw
	f.step(-30 * time.Second)
	if got := now(t, s).Raw; got != before {
		t.Errorf("raw time went from %d to %d", before, got)
	}
	if got := now(t, open(t, f.url, f.options())).Raw; got != before {
		t.Errorf("another replica's raw time is %d, want %d", got, before)
	}
}
