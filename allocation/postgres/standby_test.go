package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
)

// A standby that stands still holds every commit. Whoever gives up the wait,
// the store or an administrator, no grant and no replay of it is answered with
// success: what the standby does not have may be lost when it takes over.
//
// Seen to catch: the warning of a cancelled wait taken for success, and a
// cancel request that follows a commit which the store gave up.
func TestNoGrantIsAnsweredThatAStandbyDoesNotHave(t *testing.T) {
	primary := testpg.New(t, testpg.Options{NoFsync: true})
	url := primary.Database(t)
	standby := primary.Standby(t)
	opts := postgres.Options{Timeout: time.Second, CommitTimeout: 500 * time.Millisecond, RetryFor: time.Millisecond}
	s := open(t, url, opts)
	patient := open(t, url, postgres.Options{CommitTimeout: time.Minute})
	put(t, s, counted("a"), counted("b"))
	granted := map[string]int64{}
	grant := func(budget string) error {
		var n int64
		err := s.Update(context.Background(), []string{budget}, add("us", 1, &n))
		granted[budget] = n
		return err
	}

	standby.Freeze()
	if err := grant("a"); !errors.Is(err, allocation.ErrUnknownCommit) {
		t.Fatalf("a commit that the store gave up: %v, want ErrUnknownCommit", err)
	}
	// Its transaction goes on on the server and holds its lock.
	if err := grant("a"); lease.CodeOf(err) != lease.Unavailable {
		t.Fatalf("a retry while the first commit waits: %v, want Unavailable", err)
	}
	// The administrator cancels it: what it wrote is now seen, and not safe.
	cancelCommits(t, primary)
	if err := grant("a"); !errors.Is(err, allocation.ErrUnknownCommit) {
		t.Fatalf("a replay of what the standby does not have: %v, want ErrUnknownCommit", err)
	}
	if granted["a"] != 1 {
		t.Fatalf("the replay saw %d granted, want 1", granted["a"])
	}
	cancelCommits(t, primary)

	// Cancelled while the store waits: success with a warning.
	done := make(chan error, 1)
	go func() {
		var n int64
		done <- patient.Update(context.Background(), []string{"b"}, add("us", 1, &n))
	}()
	waitForCommits(t, primary, 1)
	cancelCommits(t, primary)
	if err := <-done; !errors.Is(err, allocation.ErrUnknownCommit) {
		t.Fatalf("a cancelled commit: %v, want ErrUnknownCommit", err)
	}

	// The primary is lost with everything that was never confirmed.
	// The standby restarts too, or it would still read what lies in its socket.
	standby.Kill(t)
	primary.Kill(t)
	standby.Restart(t)
	standby.Promote(t)
	after := open(t, standby.URL(databaseOf(url)), postgres.Options{})
	for _, name := range []string{"a", "b"} {
		if got := len(get(t, after, name).Leases); got != 0 {
			t.Errorf("%s has %d leases at the promoted standby: it was not frozen in time", name, got)
		}
	}
}

func databaseOf(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		panic(err)
	}
	return strings.TrimPrefix(u.Path, "/")
}

const waitingCommits = "FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND backend_type = 'client backend'"

// waitForCommits waits until n commits wait for the standby.
func waitForCommits(t *testing.T, s *testpg.Server, n int) {
	t.Helper()
	if err := s.WaitFor(fmt.Sprintf("SELECT count(*) = %d %s", n, waitingCommits)); err != nil {
		t.Fatal(err)
	}
}

// cancelCommits cancels every commit that waits for the standby.
func cancelCommits(t *testing.T, s *testpg.Server) {
	t.Helper()
	if err := s.Exec("SELECT pg_cancel_backend(pid) " + waitingCommits); err != nil {
		t.Fatal(err)
	}
	waitForCommits(t, s, 0)
}
