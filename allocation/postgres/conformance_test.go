package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation/storetest"
	"github.com/ration-dev/ration/internal/testpg"
)

// failures makes the database refuse a transaction's write once, as for a
// conflict, when armed. A sequence arms it: a rollback does not reset one.
const failures = `
CREATE SEQUENCE test_armed MINVALUE 0 START 0;
CREATE FUNCTION test_fail() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF (SELECT last_value FROM test_armed) = 1 THEN
        PERFORM setval('test_armed', 0);
        RAISE EXCEPTION 'conflict' USING ERRCODE = '40001';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER test_fail AFTER INSERT OR UPDATE ON budgets
    FOR EACH STATEMENT EXECUTE FUNCTION test_fail();
CREATE TRIGGER test_fail AFTER INSERT OR UPDATE ON pools
    FOR EACH STATEMENT EXECUTE FUNCTION test_fail();
`

// harness is a store on a database whose time only tests move. It keeps one
// connection for that, since a random history moves it often.
func harness(t *testing.T, check bool) storetest.Harness {
	f := newFakeTime(t, testpg.Database(t))
	f.exec(failures)
	opts := f.options()
	opts.Check = check
	s := open(t, f.url, opts)
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, f.url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(ctx) })
	exec := func(sql string, args ...any) {
		if _, err := conn.Exec(ctx, sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	return storetest.Harness{
		Store: s,
		Advance: func(d time.Duration) {
			f.elapsed.Add(int64(d))
			exec("UPDATE test_clock SET now = now + $1", d.Microseconds())
		},
		FailNext: func() { exec("SELECT setval('test_armed', 1)") },
	}
}

func TestConformance(t *testing.T) {
	storetest.Run(t, func(t *testing.T) storetest.Harness { return harness(t, false) })
}

// The same invariants hold over real transactions; the faults that the state
// machine is seen to catch are listed where it runs over memory.
func TestInvariants(t *testing.T) {
	storetest.Invariants(t, storetest.Size{Runs: 10, Steps: 40}, harness(t, true))
}
