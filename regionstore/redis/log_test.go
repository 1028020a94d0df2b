package redis

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"
)

type lockedBuffer struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all.String()
}

// What the client library has to say of a server that is away goes where all
// else is logged. Seen to catch: a LogTo that does nothing.
func TestTheClientLibraryLogsWhereTold(t *testing.T) {
	var out lockedBuffer
	LogTo(slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	t.Cleanup(func() { LogTo(slog.New(slog.DiscardHandler)) })
	s, err := Open(t.Context(), Options{Region: "us", Timeout: 100 * time.Millisecond}, "127.0.0.1:1")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = s.Shutdown() }()
	if _, err := s.InUse(context.Background()); err == nil {
		t.Fatal("nobody listens there")
	}
	if !strings.Contains(out.String(), `"msg":"the redis client"`) {
		t.Errorf("logged: %q", out.String())
	}
}
