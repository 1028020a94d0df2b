package testredis

import (
	"context"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Seen to fail when RestartEmpty kept the directory.
func TestRestartKeepsOnlyTheSnapshot(t *testing.T) {
	s := Start(t, Options{})
	s.Do("SET", "old", "1")
	s.Snapshot()
	s.Do("SET", "new", "1")
	s.Restart()
	if n := s.Do("EXISTS", "old"); n != int64(1) {
		t.Errorf("the snapshot's key is gone")
	}
	if n := s.Do("EXISTS", "new"); n != int64(0) {
		t.Errorf("a key written after the snapshot survived SIGKILL")
	}
	s.RestartEmpty()
	if n := s.Do("DBSIZE"); n != int64(0) {
		t.Errorf("an empty server has %v keys", n)
	}
}

func TestPromotedReplicaHasTheData(t *testing.T) {
	s := Start(t, Options{})
	s.Do("SET", "k", "1")
	r := Replica(t, s)
	r.Promote()
	if v := r.Do("GET", "k"); v != "1" {
		t.Errorf("GET on the promoted replica: %v", v)
	}
	r.Do("SET", "k", "2")
}

func TestClusterServesAllSlots(t *testing.T) {
	c := redis.NewClusterClient(&redis.ClusterOptions{Addrs: Addrs(Cluster(t, 3))})
	defer c.Close()
	for _, k := range []string{"a", "b", "c", "d", "e", "f"} {
		if err := c.Set(context.Background(), k, k, 0).Err(); err != nil {
			t.Errorf("SET %s: %v", k, err)
		}
	}
}

func TestSharedPrefixesDiffer(t *testing.T) {
	u1, p1 := Shared(t)
	u2, p2 := Shared(t)
	if u1 != u2 || p1 == p2 {
		t.Errorf("got %s %s and %s %s", u1, p1, u2, p2)
	}
}
