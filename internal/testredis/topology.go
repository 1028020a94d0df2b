package testredis

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Replica starts a replica of another server and waits until it is in sync.
func Replica(t testing.TB, of *Server) *Server {
	t.Helper()
	s := Start(t, Options{Args: []string{"--replicaof", "127.0.0.1 " + strconv.Itoa(of.port)}})
	waitFor(t, "the replica to be in sync", func() bool {
		info := fmt.Sprint(s.Do("INFO", "replication"))
		return strings.Contains(info, "master_link_status:up")
	})
	return s
}

// Promote makes a replica a primary of its own.
func (s *Server) Promote() {
	s.t.Helper()
	s.Do("REPLICAOF", "NO", "ONE")
}

// MasterName is the name under which Sentinels watch their primary.
const MasterName = "ration-test"

// Sentinels starts three Sentinels over a primary with a quorum of two and
// returns their addresses once they know each other and a replica.
func Sentinels(t testing.TB, primary *Server) []string {
	t.Helper()
	addrs := make([]string, 3)
	for i := range addrs {
		addrs[i] = startSentinel(t, primary)
	}
	waitFor(t, "the sentinels to find each other", func() bool {
		for _, addr := range addrs {
			if !sentinelReady(addr) {
				return false
			}
		}
		return true
	})
	return addrs
}

func startSentinel(t testing.TB, primary *Server) string {
	t.Helper()
	var err error
	for range 5 {
		var port int
		if port, err = freePort(); err != nil {
			t.Fatal(err)
		}
		conf := filepath.Join(t.TempDir(), "sentinel.conf")
		text := fmt.Sprintf("port %d\nbind 127.0.0.1\nprotected-mode no\ndir %s\n"+
			"sentinel monitor %s 127.0.0.1 %d 2\nsentinel down-after-milliseconds %s 500\n"+
			"sentinel failover-timeout %s 3000\n",
			port, filepath.Dir(conf), MasterName, primary.port, MasterName, MasterName)
		if err = os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var proc *process
		if proc, err = startProcess("redis-server", conf, "--sentinel"); err != nil {
			t.Fatalf("starting a sentinel: %v", err)
		}
		t.Cleanup(proc.kill)
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
		if err = proc.waitReady(addr); err == nil {
			return addr
		}
	}
	t.Fatalf("starting a sentinel: %v", err)
	return ""
}

func sentinelReady(addr string) bool {
	c := redis.NewSentinelClient(&redis.Options{Addr: addr})
	defer c.Close()
	m, err := c.Master(context.Background(), MasterName).Result()
	return err == nil && m["num-other-sentinels"] == "2" && m["num-slaves"] != "0"
}

// Cluster starts n primaries that share all slots evenly, without replicas,
// and waits until each of them says that the cluster is ok.
func Cluster(t testing.TB, n int) []*Server {
	t.Helper()
	nodes := make([]*Server, n)
	for i := range nodes {
		bus, err := freePort()
		if err != nil {
			t.Fatal(err)
		}
		nodes[i] = Start(t, Options{Args: []string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus),
			"--cluster-node-timeout", "2000",
		}})
		first, last := i*16384/n, (i+1)*16384/n-1
		nodes[i].Do("CLUSTER", "ADDSLOTSRANGE", first, last)
		nodes[i].Do("CLUSTER", "SET-CONFIG-EPOCH", i+1)
		if i > 0 {
			nodes[i].Do("CLUSTER", "MEET", "127.0.0.1", nodes[0].port, busPort(nodes[0]))
		}
	}
	waitFor(t, "the cluster to be ok", func() bool {
		for _, s := range nodes {
			info := fmt.Sprint(s.Do("CLUSTER", "INFO"))
			if !strings.Contains(info, "cluster_state:ok") ||
				!strings.Contains(info, fmt.Sprintf("cluster_known_nodes:%d\r", n)) {
				return false
			}
		}
		return true
	})
	return nodes
}

func busPort(s *Server) string {
	for i, a := range s.args {
		if a == "--cluster-port" {
			return s.args[i+1]
		}
	}
	return ""
}

// Addrs lists the addresses of servers.
func Addrs(servers []*Server) []string {
	addrs := make([]string, len(servers))
	for i, s := range servers {
		addrs[i] = s.Addr()
	}
	return addrs
}

func waitFor(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(startTimeout)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
