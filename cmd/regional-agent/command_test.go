package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/internal/app"
	"github.com/ration-dev/ration/internal/credentials"
	"github.com/ration-dev/ration/internal/testredis"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// buffer is a bytes.Buffer that a command writes while a test reads.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

type call struct {
	out, err buffer
	env      map[string]string
}

func (c *call) run(ctx context.Context, args ...string) int {
	return run(ctx, args, environment{
		out: &c.out, err: &c.err,
		lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
	})
}

func TestUsageErrorsExit2(t *testing.T) {
	good := "--region us --allocator localhost:1 --redis-url localhost:1 "
	for _, c := range []struct{ line, want string }{
		{"", "--region is required (or RATION_REGION)"},
		{"--region us", "--allocator is required"},
		{"--region us --allocator x:1", "--redis-url is required"},
		{"--region us --redis-url redis://x --allocator nowhere", "--allocator: address nowhere: missing port"},
		{"--region us --redis-url redis://x --allocator x:1,:7700", "--allocator: \":7700\" needs a host"},
		{good, "--token-file or RATION_TOKEN is required"},
		{good + "--token-file /absent", "/absent"},
		{good + "--insecure --tls-cert x", "go together"},
		{good + "--insecure --max-agents 0", "--max-agents"},
		{good + "--insecure --clock-drift-ppm 600000", "clock bounds"},
		{good + "--tls-ca /absent --token-file " + tokenFile(t, "x"), "/absent"},
		{good + "--insecure --token-file " + tokenFile(t, "two words"), "one token"},
		{good + "extra", "unknown command"},
		{"--region us --allocator x:1 --insecure --redis-url http://x", "--redis-url: "},
	} {
		var call call
		if code := call.run(t.Context(), strings.Fields(c.line)...); code != 2 || !strings.Contains(call.err.String(), c.want) {
			t.Errorf("%s: exit %d, want 2 and %q: %s", c.line, code, c.want, call.err.String())
		}
	}
}

func tokenFile(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// allocator starts one in this process, with one budget and one region's
// token.
func allocator(t *testing.T) (*app.Allocator, *ledger.Store) {
	t.Helper()
	table, err := credentials.ParseList("tokens", "us=secret")
	if err != nil {
		t.Fatal(err)
	}
	store := ledger.New(func() lease.Time { return lease.Time(time.Now().UnixMicro()) })
	a := app.NewAllocator(app.AllocatorOptions{
		Store: store, Credentials: table, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler),
	})
	budget := policy.Budget{
		Name: "acme/search", Match: map[string]string{"tenant": "acme"},
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Hour}, Burst: 5},
	}
	if _, err := a.Core().Apply(t.Context(), []policy.Budget{budget}); err != nil {
		t.Fatal(err)
	}
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a, store
}

func await(t *testing.T, done <-chan int, c *call, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern)
	for range 2000 {
		if m := match.FindStringSubmatch(c.err.String()); m != nil {
			return m[1]
		}
		select {
		case code := <-done:
			t.Fatalf("ended with %d: %s", code, c.err.String())
		case <-time.After(5 * time.Millisecond):
		}
	}
	t.Fatalf("no %s in\n%s", pattern, c.err.String())
	return ""
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, string) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 1000 {
		if holds() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s: it never came", what)
}

// The agent over a real Redis and a real allocator: of a burst of five, five
// are admitted; the last agent gives its lease back; nothing is left running.
func TestAgent(t *testing.T) {
	redis := testredis.Start(t, testredis.Options{})
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	server, ledger := allocator(t)
	defer func() { _ = server.Stop(context.Background()) }()
	defer http.DefaultClient.CloseIdleConnections()

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	c := &call{env: map[string]string{"RATION_REDIS_URL": redis.Addr(), "RATION_DRAIN_PAUSE": "200ms"}}
	done := make(chan int, 1)
	go func() {
		done <- c.run(ctx, "--region", "us", "--allocator", server.GRPCAddr(), "--insecure", "--token-file", tokenFile(t, "secret\n"),
			"--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--store-deadline", "10s", "--redis-timeout", "10s")
	}()
	url := "http://" + await(t, done, c, `"msg":"serving".*"http":"([^"]+)"`)
	eventually(t, "ready", func() bool { status, _ := get(t, url+"/readyz"); return status == 200 })

	// A check may be answered before there is a lease: it costs nothing, and is
	// asked again. Redis gets long to answer, as a step that was given up may
	// have taken its token.
	counts := map[int]int{}
	for range 200 {
		status, answer := check(t, url)
		if counts[status]++; status == 200 && answer["allowed"] != true {
			t.Errorf("answered 200: %v", answer)
		}
		if counts[429] == 3 {
			break
		}
	}
	if counts[200] != 5 || counts[429] != 3 || len(counts) > 2 && counts[503] == 0 {
		t.Errorf("of a burst of 5, answers by status: %v", counts)
	}
	if _, text := get(t, url+"/metrics"); !strings.Contains(text, `ration_decisions_total{mode=`) || !strings.Contains(text, "ration_build_info{") {
		t.Error("the metrics lack decisions or build_info")
	}

	stop()
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
	if strings.Contains(c.err.String(), "secret") {
		t.Error("the token was logged")
	}
	states, _, err := ledger.View(context.Background(), "", 10)
	if err != nil || len(states) != 1 {
		t.Fatalf("%d states, %v", len(states), err)
	}
	if held := states[0].Pools[0].Outstanding; held != 0 {
		t.Errorf("%d tokens are still leased after the last agent ended", held)
	}
}

// serving runs an agent of a region, over that Redis and an allocator for "us",
// until end, which checks that it ended well.
func serving(t *testing.T, region string, redis *testredis.Server) (c *call, url string, end func()) {
	t.Helper()
	server, _ := allocator(t)
	ctx, stop := context.WithCancel(t.Context())
	c = &call{}
	done := make(chan int, 1)
	go func() {
		done <- c.run(ctx, "--region", region, "--allocator", server.GRPCAddr(), "--insecure", "--token-file", tokenFile(t, "secret\n"),
			"--redis-url", redis.Addr(), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", "--drain-pause", "1ms")
	}()
	t.Cleanup(func() { stop(); _ = server.Stop(context.Background()) })
	url = "http://" + await(t, done, c, `"msg":"serving".*"http":"([^"]+)"`)
	return c, url, func() {
		stop()
		if code := <-done; code != 0 {
			t.Errorf("exit %d", code)
		}
	}
}

// An agent that has another region's token is never ready, and says why in its
// log and at /readyz. Seen to catch: the budgets asked for in nobody's name.
func TestAnotherRegionsTokenIsNotReady(t *testing.T) {
	redis := testredis.Start(t, testredis.Options{})
	c, url, end := serving(t, "eu", redis)
	const why = `the token is that of region "us", and the caller says that it is "eu"`
	eventually(t, "the reason at /readyz", func() bool {
		status, text := get(t, url+"/readyz")
		if status == 200 {
			t.Fatal("ready")
		}
		return strings.Contains(text, why)
	})
	eventually(t, "the reason in the log", func() bool {
		return strings.Contains(c.err.String(), `"msg":"the allocator refuses the token"`) &&
			strings.Contains(c.err.String(), strings.ReplaceAll(why, `"`, `\"`))
	})
	end()
}

// A Redis that goes away is said once, not per request, in the log's own form.
// Seen to catch: a breaker that opens in silence.
func TestAnOutageOfRedisIsLoggedOnce(t *testing.T) {
	redis := testredis.Start(t, testredis.Options{})
	c, url, end := serving(t, "us", redis)
	eventually(t, "ready", func() bool { status, _ := get(t, url+"/readyz"); return status == 200 })
	redis.Kill()
	const away = `"msg":"the region's store does not answer"`
	eventually(t, "the outage in the log", func() bool {
		if status, _ := check(t, url); status == 200 {
			t.Error("admitted without a store")
		}
		return strings.Contains(c.err.String(), away)
	})
	end()
	if n := strings.Count(c.err.String(), away); n != 1 {
		t.Errorf("said %d times", n)
	}
	for line := range strings.Lines(c.err.String()) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
}

// check asks for one token.
func check(t *testing.T, url string) (int, map[string]any) {
	t.Helper()
	body := `{"descriptors":[{"key":"tenant","value":"acme"}],"cost":1}`
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/limits:check", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	status, text := do(t, req)
	var answer map[string]any
	if err := json.Unmarshal([]byte(text), &answer); err != nil {
		t.Fatalf("%d: %q", status, text)
	}
	return status, answer
}

// A replaced token is used from the next look on, and a bad file changes
// nothing.
func TestTokenIsReadAgain(t *testing.T) {
	path := tokenFile(t, "one")
	tok, err := newToken(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	replace := func(text, want string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		tok.looked = time.Time{}
		if got := tok.read(); got != want {
			t.Errorf("after %q: token %q, want %q", text, got, want)
		}
	}
	replace("two\n", "two")
	replace("", "two")
	replace("not one", "two")
	replace(strings.Repeat("x", maxToken+1), "two")
	replace("three", "three")
}
