package testpg_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/internal/testpg"
)

func count(t *testing.T, url string) (n int) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM budgets").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func insert(t *testing.T, url string) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, "INSERT INTO budgets (name, version, policy, next_due) VALUES ('a', 1, '{}', 0)")
	if err != nil {
		t.Fatal(err)
	}
}

func TestEachTestHasADatabaseOfItsOwn(t *testing.T) {
	one, two := testpg.Database(t), testpg.Database(t)
	insert(t, one)
	if got := count(t, one); got != 1 {
		t.Errorf("budgets in the first database: %d, want 1", got)
	}
	if got := count(t, two); got != 0 {
		t.Errorf("budgets in the second database: %d, want 0", got)
	}
}

func TestKilledServerKeepsWhatWasCommitted(t *testing.T) {
	s := testpg.New(t, testpg.Options{})
	url := s.Database(t)
	insert(t, url)
	s.Kill(t)
	if conn, err := pgx.Connect(context.Background(), url); err == nil {
		conn.Close(context.Background())
		t.Fatal("a killed server answers")
	}
	s.Restart(t)
	if got := count(t, url); got != 1 {
		t.Errorf("budgets after a restart: %d, want 1", got)
	}
}
