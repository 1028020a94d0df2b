package testpg

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a standby of the server, waits until it follows, and makes
// the server's commits wait for it. It ends with the test.
func (s *Server) Standby(t testing.TB) *Server {
	t.Helper()
	b, err := prepare(Options{Settings: s.settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.stop)
	err = run(b.dir, "pg_basebackup", "-D", b.data(), "-R", "--checkpoint=fast", "--no-sync",
		"-d", s.URL("postgres")+"&application_name=standby")
	if err == nil {
		err = b.launchAnywhere()
	}
	if err == nil {
		err = s.WaitFor("SELECT count(*) = 1 FROM pg_stat_replication WHERE state = 'streaming'")
	}
	if err == nil {
		err = s.Exec("ALTER SYSTEM SET synchronous_standby_names = '*'")
	}
	if err == nil {
		err = s.Exec("SELECT pg_reload_conf()")
	}
	if err == nil {
		err = s.WaitFor("SELECT count(*) = 1 FROM pg_stat_replication WHERE sync_state = 'sync'")
	}
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Promote makes a standby a server of its own, which waits for no other.
func (s *Server) Promote(t testing.TB) {
	t.Helper()
	err := s.WaitFor("SELECT pg_promote()")
	if err == nil {
		err = s.WaitFor("SELECT NOT pg_is_in_recovery()")
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Exec runs one statement as the server's superuser.
func (s *Server) Exec(sql string) error { return s.host().exec(sql) }

// WaitFor repeats a query until it says true.
func (s *Server) WaitFor(sql string) error {
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		done, err := s.ask(sql)
		if err != nil {
			return err
		}
		if done {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	return fmt.Errorf("testpg: it never became true that %s", sql)
}

func (s *Server) ask(sql string) (yes bool, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return false, err
	}
	defer conn.Close(ctx)
	err = conn.QueryRow(ctx, sql).Scan(&yes)
	return yes, err
}
