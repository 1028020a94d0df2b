package redis

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Seen to admit more when take.lua saved nothing.
func TestTwentyCallersShareFiveTokens(t *testing.T) {
	s := shared(t)
	grant(t, s, "acme/search", 5)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if take(t, s, 1, "acme/search").Took {
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if n := admitted.Load(); n != 5 {
		t.Errorf("%d admitted of 5", n)
	}
}

// Seen to fail when current did not compare replication ids.
func TestPromotedReplicaSpendsNothingTwice(t *testing.T) {
	primary := testredis.Start(t, testredis.Options{})
	replica := testredis.Replica(t, primary)
	s := open(t, Options{}, primary.Addr())
	inc := grant(t, s, "acme/search", 5)
	if primary.Do("WAIT", 1, 10000) != int64(1) {
		t.Fatal("the grant did not reach the replica")
	}
	replica.Pause()
	primary.Do("CLIENT", "KILL", "TYPE", "replica") // what follows is lost
	if !take(t, s, 5, "acme/search").Took {
		t.Fatal("not taken from the primary")
	}
	primary.Kill()
	replica.Continue()

	client := redis.NewClient(&redis.Options{Addr: replica.Addr(), MaxRetries: -1})
	defer client.Close()
	r, err := New(context.Background(), client, Options{Region: "us", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Take(context.Background(), takes(5, "acme/search"))
	wantUnavailable(t, err) // a replica that is not promoted refuses
	replica.Promote()
	if got := take(t, r, 5, "acme/search"); got.Took || got.Results[0].Outcome != regionstore.Missing {
		t.Errorf("taken again from the promoted replica: %+v", got)
	}
	if o := openRow(t, r, "acme/search"); !o.Void || lump(o.View).Incarnation == inc {
		t.Errorf("the row of the old life lives on: %+v", o)
	}
}

// Seen to fail when current did not compare replication ids, and when
// replication_id read master_replid2.
func TestRestartMakesTheRowVoid(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	grant(t, s, "acme/search", 5)
	before := s.Primary("acme/search")
	server.Snapshot()
	if !take(t, s, 5, "acme/search").Took {
		t.Fatal("not taken")
	}
	server.Restart() // the snapshot has all five
	lostConnections(s)
	if got := take(t, s, 1, "acme/search"); got.Took {
		t.Errorf("taken again from an old snapshot: %+v", got)
	}
	if s.Primary("acme/search") == before {
		t.Errorf("another life has the same name: %s", before)
	}
	if o := openRow(t, s, "acme/search"); !o.Void || !o.Created {
		t.Errorf("open on an old snapshot: created %v, void %v", o.Created, o.Void)
	}
	server.RestartEmpty()
	lostConnections(s)
	if o := openRow(t, s, "acme/search"); o.Void || !o.Created {
		t.Errorf("open on an empty server: created %v, void %v", o.Created, o.Void)
	}
}

// lostConnections lets the client notice that its connections are gone: a step
// over one of them has an unknown outcome and is not repeated.
func lostConnections(s *Store) {
	for range s.opts.PoolSize {
		if _, err := s.InUse(context.Background()); err == nil {
			return
		}
	}
}

// An answer that is installed again after its row was lost must not make the
// tokens a second time. Seen to fail when install did not compare incarnations.
func TestInstallAfterFlushCreatesNothing(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	inc := openRow(t, s, "acme/search").View.Row.Leases[lease.Lump-1].Incarnation
	answer := begin(t, s, "acme/search", inc)
	install(t, s, answer, 5)
	take(t, s, 5, "acme/search")
	server.Do("FLUSHALL")
	if r := install(t, s, answer, 5); r.Outcomes[0] != regionstore.Missing {
		t.Errorf("install without a row: %v", r.Outcomes)
	}
	if o := openRow(t, s, "acme/search"); o.Void || !o.Created {
		t.Errorf("open after a flush: created %v, void %v", o.Created, o.Void)
	}
	if r := install(t, s, answer, 5); r.Outcomes[0] != regionstore.Stale {
		t.Errorf("install of another incarnation's answer: %v", r.Outcomes)
	}
}

func TestUnknownScriptsAreHealedInSilence(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	inc := grant(t, s, "acme/search", 10)
	server.Do("SCRIPT", "FLUSH")
	req := takes(1, "acme/search")
	req.Takes[0].Prefetch = 6
	got, err := s.Take(context.Background(), req)
	if err != nil || !got.Took {
		t.Fatalf("take: %+v, %v", got, err)
	}
	part := got.Results[0].Parts[0]
	one := regionstore.Settle{
		Budget: "acme/search", Kind: lease.Lump, Incarnation: inc, Generation: part.Generation, Used: 1,
	}
	server.Do("SCRIPT", "FLUSH")
	outcomes, err := s.Settle(context.Background(), []regionstore.Settle{one, one, one})
	if err != nil || !slices.Equal(outcomes, []regionstore.Outcome{1, 1, 1}) {
		t.Errorf("settle: %v, %v", outcomes, err)
	}
	if l := lump(read(t, s, "acme/search")); l.Used != 4 || l.Cur.Tokens != 3 {
		t.Errorf("used %d, prefetched %d; want 4 and 3", l.Used, l.Cur.Tokens)
	}
}

// Seen to fail when save used redis.pcall.
func TestOutOfMemoryChangesNothing(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	grant(t, s, "acme/a", 5)
	grant(t, s, "acme/b", 5)
	before := fmt.Sprint(read(t, s, "acme/a").Row, read(t, s, "acme/b").Row.DemandTotal)
	server.Do("CONFIG", "SET", "maxmemory", "1")
	_, err := s.Take(context.Background(), takes(2, "acme/a", "acme/b"))
	wantUnavailable(t, err)
	server.Do("CONFIG", "SET", "maxmemory", "0")
	for _, b := range []string{"acme/a", "acme/b"} {
		if l := read(t, s, b); lump(l).Used != 0 || l.Row.DemandTotal != 0 {
			t.Errorf("%s after a refused write: %+v (before: %s)", b, l.Row, before)
		}
	}
	if !take(t, s, 5, "acme/a", "acme/b").Took {
		t.Error("not all tokens were left")
	}
}

// A stopped server costs every caller its timeout: all of them come back while
// it is stopped, and none is left in a queue.
func TestStalledServerQueuesNothing(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{Timeout: 50 * time.Millisecond, PoolSize: 4}, server.Addr())
	eventually(t, "the first step", func() bool {
		_, err := s.InUse(context.Background())
		return err == nil
	})
	server.Pause()
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() {
			_, err := s.Take(context.Background(), takes(1, "acme/search"))
			wantUnavailable(t, err)
		})
	}
	wg.Wait()
	server.Continue()
	eventually(t, "the store to go on", func() bool {
		_, err := s.InUse(context.Background())
		return err == nil
	})
}

func TestServersThatCannotKeepWalletsAreRefused(t *testing.T) {
	ctx := context.Background()
	evicting := testredis.Start(t, testredis.Options{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	if _, err := Open(ctx, Options{Region: "us", Timeout: patience}, evicting.Addr()); !errors.Is(err, ErrEvicts) {
		t.Errorf("evicting: %v", err)
	}
	evicting.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	evicting.Do("ACL", "SETUSER", "mute", "on", ">pw", "allkeys", "+@all", "-info")
	mute := "redis://mute:pw@" + evicting.Addr()
	if _, err := Open(ctx, Options{Region: "us", Timeout: patience}, mute); !errors.Is(err, ErrNoReplicationID) {
		t.Errorf("without INFO: %v", err)
	}
	if _, err := Open(ctx, Options{Region: "us", Prefix: "a}b"}, evicting.Addr()); err == nil {
		t.Error("a prefix with a brace passed")
	}
	if _, err := Open(ctx, Options{Region: "us"}, "redis://u:secret@:bad:port"); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a bad address: %v", err)
	}
}

// A store may be made before its server is there, and checks it then.
func TestUnreachableServerIsCheckedLater(t *testing.T) {
	server := testredis.Start(t, testredis.Options{Args: []string{"--maxmemory-policy", "allkeys-lru"}})
	server.Kill()
	s := open(t, Options{}, server.Addr())
	_, err := s.InUse(context.Background())
	wantUnavailable(t, err)
	server.Restart()
	if _, err := s.InUse(context.Background()); !errors.Is(err, ErrEvicts) {
		t.Errorf("the first step on an evicting server: %v", err)
	}
	server.Do("CONFIG", "SET", "maxmemory-policy", "noeviction")
	if _, err := s.InUse(context.Background()); err != nil {
		t.Errorf("after the operator mended it: %v", err)
	}
}

// Where scripts may not read the replication id, a new connection does.
func TestReplicationIDFromConnections(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{connCheck: true}, server.Addr())
	grant(t, s, "acme/search", 5)
	server.Snapshot()
	take(t, s, 5, "acme/search")
	server.Restart()
	lostConnections(s)
	if got := take(t, s, 1, "acme/search"); got.Took || got.Results[0].Outcome != regionstore.Missing {
		t.Errorf("taken again from an old snapshot: %+v", got)
	}
}

// Rows of names that look alike are rows of their own.
func TestNamesKeepTheirOwnRows(t *testing.T) {
	s := shared(t)
	names := []string{
		"a/b", "a_b", "a:b", "a b", "{a}/b", "a\x00/b", "größe/日本", strings.Repeat("x", 256), "a/" + strings.Repeat("{", 254),
	}
	for i, n := range names {
		grant(t, s, n, lease.Tokens(i+1))
	}
	for i, n := range names {
		if got := lump(read(t, s, n)).Granted; got != lease.Tokens(i+1) {
			t.Errorf("%q has %d", n, got)
		}
	}
}

// More steps than fit into one round trip come back in their order.
func TestLargeBatchesKeepTheirOrder(t *testing.T) {
	s := shared(t)
	names := make([]string, 3*stepBatch+1)
	for i := range names {
		names[i] = fmt.Sprintf("acme/%d", i)
		if i%2 == 0 {
			openRow(t, s, names[i])
		}
	}
	views, err := s.Read(context.Background(), names, make([]regionstore.Now, len(names)))
	if err != nil {
		t.Fatal(err)
	}
	for i, v := range views {
		if opened := v.Outcome == regionstore.OK; opened != (i%2 == 0) {
			t.Errorf("%s: %v", names[i], v.Outcome)
		}
	}
	if err := s.Touch(context.Background(), names, time.Minute); err != nil {
		t.Fatal(err)
	}
	if used, err := s.InUse(context.Background()); err != nil || len(used) != len(names) {
		t.Errorf("%d in use, %v", len(used), err)
	}
}

// A row is small; the figure is for capacity planning.
func TestMemoryPerRow(t *testing.T) {
	server := testredis.Start(t, testredis.Options{})
	s := open(t, Options{}, server.Addr())
	used := func() (n int64) {
		v, _ := infoField(fmt.Sprint(server.Do("INFO", "memory")), "used_memory_dataset")
		_, _ = fmt.Sscan(v, &n)
		return n
	}
	const rows = 2000
	grant(t, s, "warm/up", 1)
	before := used()
	for i := range rows {
		grant(t, s, fmt.Sprintf("tenant-%d/search", i), 1000)
	}
	per := (used() - before) / rows
	t.Logf("%d bytes per row", per)
	if per <= 0 || per > 700 {
		t.Errorf("a row takes %d bytes", per)
	}
}
