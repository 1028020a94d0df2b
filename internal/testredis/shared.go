package testredis

import (
	"context"
	"crypto/rand"
	"os"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"
)

// EnvURL names the environment variable that points tests of a single server
// to one that runs already.
const EnvURL = "RATION_TEST_REDIS_URL"

// Shared returns the URL of one server for all tests of this process, and a
// key prefix that no other test uses; keys under it are deleted when the test
// ends. It is the server that EnvURL names, if set.
func Shared(t testing.TB) (url, prefix string) {
	t.Helper()
	url, err := sharedURL()
	if err != nil {
		t.Fatal(err)
	}
	prefix = "test-" + rand.Text()[:12]
	t.Cleanup(func() { deletePrefix(t, url, prefix) })
	return url, prefix
}

// sharedURL starts the server of this process once; it dies with it.
var sharedURL = sync.OnceValues(func() (string, error) {
	if url := os.Getenv(EnvURL); url != "" {
		return url, nil
	}
	s := &Server{dir: os.TempDir(), args: arguments(Options{})}
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return "", err
		}
		if err = s.launch(); err == nil {
			return "redis://" + s.Addr(), nil
		}
	}
	return "", err
})

func deletePrefix(t testing.TB, url, prefix string) {
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Errorf("%s: %v", EnvURL, err)
		return
	}
	c := redis.NewClient(opts)
	defer c.Close()
	ctx := context.Background()
	keys := c.Scan(ctx, 0, "{"+prefix+"*", 1000).Iterator()
	for keys.Next(ctx) {
		c.Unlink(ctx, keys.Val())
	}
	if err := keys.Err(); err != nil {
		t.Errorf("deleting the keys of %s: %v", prefix, err)
	}
}
