package redis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

func TestCluster(t *testing.T) {
	nodes := testredis.Cluster(t, 3)
	s := open(t, Options{}, testredis.Addrs(nodes)...)
	tenants := tenantPerNode(s)

	t.Run("budgets of a tenant are taken together", func(t *testing.T) {
		for _, tenant := range tenants {
			a, b := tenant+"/a", tenant+"/b"
			grant(t, s, a, 5)
			grant(t, s, b, 3)
			if s.Slot(a) != s.Slot(b) {
				t.Errorf("%s and %s have other slots", a, b)
			}
			if !take(t, s, 3, a, b).Took || take(t, s, 1, a, b).Took {
				t.Errorf("%s: not all or none", tenant)
			}
			if got := lump(read(t, s, a)).Used; got != 3 {
				t.Errorf("%s has used %d: a denial was charged", a, got)
			}
		}
	})
	t.Run("tenants live on different primaries", func(t *testing.T) {
		seen := map[string]bool{}
		for _, tenant := range tenants {
			seen[s.Primary(tenant+"/a")] = true
		}
		if len(seen) != 3 || seen[""] {
			t.Errorf("primaries: %v", seen)
		}
	})
	t.Run("a batch reads over all nodes", func(t *testing.T) {
		names := []string{tenants[0] + "/a", tenants[1] + "/a", tenants[2] + "/a", tenants[0] + "/b"}
		views, err := s.Read(context.Background(), names, make([]regionstore.Now, len(names)))
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range views {
			if v.Outcome != regionstore.OK {
				t.Errorf("%s: %v", names[i], v.Outcome)
			}
		}
	})
	t.Run("the region's registers work", func(t *testing.T) {
		ctx := context.Background()
		if err := s.Touch(ctx, []string{"a/1", "b/2"}, time.Minute); err != nil {
			t.Fatal(err)
		}
		if got, err := s.InUse(ctx); err != nil || len(got) != 2 {
			t.Errorf("in use: %v, %v", got, err)
		}
		if ok, err := s.Lead(ctx, "me", time.Minute); err != nil || !ok {
			t.Errorf("lead: %v, %v", ok, err)
		}
	})
	t.Run("a step whose answer is lost runs once", func(t *testing.T) { lostAnswers(t, nodes, tenants[0]+"/lost") })
	t.Run("a single address of a cluster is refused", func(t *testing.T) {
		_, err := Open(context.Background(), Options{Region: "us", Timeout: patience}, nodes[0].Addr())
		if err == nil || !final(err) {
			t.Errorf("got %v", err)
		}
	})
}

// tenantPerNode finds a tenant for each third of the slots.
func tenantPerNode(s *Store) [3]string {
	var found [3]string
	for i, n := 0, 0; n < 3; i++ {
		tenant := fmt.Sprintf("tenant-%d", i)
		if node := s.Slot(tenant) * 3 / clusterSlots; found[node] == "" {
			found[node] = tenant
			n++
		}
	}
	return found
}

// lostAnswers loses the answer of one Take and one Settle. The client library
// repeats such commands on a Cluster; seen to fail without onceCmd.
func lostAnswers(t *testing.T, nodes []*testredis.Server, budget string) {
	var armed atomic.Bool
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		return &deafConn{Conn: c, armed: &armed}, err
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: testredis.Addrs(nodes), MaxRetries: -1, ContextTimeoutEnabled: true, Dialer: dial,
	})
	defer client.Close()
	s, err := New(context.Background(), client, Options{Region: "us", Timeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	inc := grant(t, s, budget, 10)
	settle := regionstore.Settle{Budget: budget, Kind: lease.Lump, Incarnation: inc, Generation: 9, Back: 1}
	take(t, s, 0, budget) // the server knows both scripts from here on
	if _, err := s.Settle(context.Background(), []regionstore.Settle{settle}); err != nil {
		t.Fatal(err)
	}

	armed.Store(true)
	req := takes(1, budget)
	req.Takes[0].Prefetch = 4
	_, err = s.Take(context.Background(), req)
	wantUnavailable(t, err)
	l := lump(read(t, s, budget))
	if l.Used != 1 || l.Cur.Tokens != 4 {
		t.Fatalf("take: used %d, prefetched %d", l.Used, l.Cur.Tokens)
	}

	armed.Store(true)
	settle.Generation = l.Cur.ID
	_, err = s.Settle(context.Background(), []regionstore.Settle{settle})
	wantUnavailable(t, err)
	if l = lump(read(t, s, budget)); l.Cur.Tokens != 3 {
		t.Errorf("settle ran %d times", 4-l.Cur.Tokens)
	}
}

// deafConn loses the next answer to a script once armed; the server has run it.
type deafConn struct {
	net.Conn
	armed *atomic.Bool
	deaf  atomic.Bool
}

func (c *deafConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("evalsha")) && c.armed.CompareAndSwap(true, false) {
		c.deaf.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *deafConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err == nil && c.deaf.Load() {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}

func TestSentinelFailover(t *testing.T) {
	primary := testredis.Start(t, testredis.Options{})
	replica := testredis.Replica(t, primary)
	s := open(t, Options{MasterName: testredis.MasterName, Timeout: time.Second}, testredis.Sentinels(t, primary)...)
	grant(t, s, "acme/search", 5)
	before := s.Primary("acme/search")
	primary.Do("WAIT", 1, 10000)
	replica.Do("CONFIG", "SET", "repl-ping-replica-period", "1")
	primary.Kill()
	eventually(t, "the failover", func() bool {
		v, err := s.Read(context.Background(), []string{"acme/search"}, make([]regionstore.Now, 1))
		return err == nil && v[0].Outcome == regionstore.Missing
	})
	eventually(t, "the row of the old primary to be void", func() bool {
		o, err := s.Open(context.Background(), regionstore.OpenRequest{
			Budget: "acme/search", Nonces: nonces(), LocalNonce: "n",
		})
		return err == nil && o.Void
	})
	if after := s.Primary("acme/search"); after == before || after == "" {
		t.Errorf("primary %q after %q", after, before)
	}
}
