package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
)

// served is a serve command that runs.
type served struct {
	call
	grpc, http string
	stop       context.CancelFunc
	done       chan int
}

func serve(t *testing.T, env map[string]string, args ...string) *served {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s := &served{stop: stop, done: make(chan int, 1)}
	s.env = env
	go func() {
		s.done <- s.run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0"}, args...)...)
	}()
	s.grpc = await(t, s.done, &s.call, `"msg":"serving","grpc":"([^"]+)"`)
	s.http = "http://" + await(t, s.done, &s.call, `"msg":"serving","grpc":"[^"]+","http":"([^"]+)"`)
	return s
}

// get returns an HTTP status and body.
func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
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

// eventually waits until a condition holds.
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

func dial(t *testing.T, address, token string) *grpc.ClientConn {
	t.Helper()
	conn, err := rpc.Dial(rpc.Dialing{Target: address, Token: func() string { return token }})
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

func healthOf(t *testing.T, conn *grpc.ClientConn) healthv1.HealthCheckResponse_ServingStatus {
	t.Helper()
	answer, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatal(err)
	}
	return answer.GetStatus()
}

// serve believes tokens, says how it is, and drains: first it says that it
// does not serve, then it ends, with 0 and nothing left running.
func TestServe(t *testing.T) {
	url := testpg.Database(t)
	expect(t, 0, nil, "budgets", "apply", "-f", write(t, twoBudgets), "--database-url", url)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("us: secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serve(t, nil, "--database-url", url, "--tokens-file", tokens, "--drain-pause", "1s")
	conn := dial(t, s.grpc, "secret")
	defer conn.Close()
	defer http.DefaultClient.CloseIdleConnections()

	if status, _ := get(t, s.http+"/healthz"); status != 200 {
		t.Errorf("healthz: %d", status)
	}
	eventually(t, "ready", func() bool { status, _ := get(t, s.http+"/readyz"); return status == 200 })
	eventually(t, "SERVING", func() bool { return healthOf(t, conn) == healthv1.HealthCheckResponse_SERVING })
	list, err := rpc.NewClient(conn, "").ListBudgets(t.Context(), 0)
	if err != nil || len(list.Budgets) != 2 {
		t.Errorf("%d budgets, %v", len(list.Budgets), err)
	}
	wrong := dial(t, s.grpc, "guess")
	defer wrong.Close()
	if _, err := rpc.NewClient(wrong, "").SyncLeases(t.Context(), lease.SyncRequest{Region: "us"}); lease.CodeOf(err) != lease.Unauthenticated {
		t.Errorf("a wrong token: %v", err)
	}
	eventually(t, "the pools' metrics", func() bool {
		_, text := get(t, s.http+"/metrics")
		return strings.Contains(text, `ration_pool_available_tokens{budget="acme/search"} 2000`)
	})
	if _, text := get(t, s.http+"/metrics"); !strings.Contains(text, "ration_unauthenticated_calls_total 1\n") {
		t.Error("the wrong token was not counted")
	}

	s.stop()
	eventually(t, "NOT_SERVING", func() bool { return healthOf(t, conn) == healthv1.HealthCheckResponse_NOT_SERVING })
	if status, body := get(t, s.http+"/readyz"); status != 503 || !strings.Contains(body, "draining") {
		t.Errorf("readyz while draining: %d %s", status, body)
	}
	if _, err := rpc.NewClient(conn, "").ListBudgets(t.Context(), 0); err != nil {
		t.Errorf("a call during the pause: %v", err)
	}
	if code := <-s.done; code != 0 {
		t.Errorf("exit %d: %s", code, s.err.String())
	}
	if strings.Contains(s.err.String(), "secret") {
		t.Error("a token was logged")
	}
}

// Tokens may come from the environment, and two replicas share a ledger.
func TestServeTwoReplicas(t *testing.T) {
	url := testpg.Database(t)
	env := map[string]string{"RATION_TOKENS": "us=one,eu=two", "RATION_DATABASE_URL": url, "RATION_DRAIN_PAUSE": "0s"}
	one, two := serve(t, env), serve(t, env)
	expect(t, 0, nil, "budgets", "apply", "-f", write(t, twoBudgets), "--database-url", url)
	for _, s := range []*served{one, two} {
		conn := dial(t, s.grpc, "two")
		list, err := rpc.NewClient(conn, "").ListBudgets(t.Context(), 0)
		if err != nil || len(list.Budgets) != 2 {
			t.Errorf("%d budgets, %v", len(list.Budgets), err)
		}
		conn.Close()
	}
	for _, s := range []*served{one, two} {
		s.stop()
		if code := <-s.done; code != 0 {
			t.Errorf("exit %d: %s", code, s.err.String())
		}
	}
}
