package testpg

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/migrations"
)

// host is a server on which databases are made: one of ours, or that of
// RATION_TEST_DATABASE_URL.
type host struct {
	url func(database string) string
	// admin is a database that exists.
	admin string

	once     sync.Once
	template string
	err      error
}

// shared is the process's one server for tests that do not harm it. Its reaper
// ends it when the process ends.
var shared = sync.OnceValues(func() (*host, error) {
	if raw := os.Getenv("RATION_TEST_DATABASE_URL"); raw != "" {
		return external(raw)
	}
	s, err := start(Options{NoFsync: true})
	if err != nil {
		return nil, err
	}
	return s.host(), nil
})

func external(raw string) (*host, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("RATION_TEST_DATABASE_URL must be a URL as in postgres://user@host/database")
	}
	return &host{admin: trimSlash(u.Path), url: func(database string) string {
		v := *u
		v.Path = "/" + database
		return v.String()
	}}, nil
}

func trimSlash(path string) string {
	if path == "" || path == "/" {
		return "postgres"
	}
	return path[1:]
}

func (s *Server) host() *host { return &host{url: s.URL, admin: "postgres"} }

// Database makes a fresh database with the ledger's schema on the process's
// shared server, and returns its URL. It is dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	h, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	template, err := h.migrated()
	if err != nil {
		t.Fatal(err)
	}
	return h.create(t, template)
}

// Empty is Database without the schema.
func Empty(t testing.TB) string {
	t.Helper()
	h, err := shared()
	if err != nil {
		t.Fatal(err)
	}
	return h.create(t, "template0")
}

// Database makes a database with the ledger's schema on the server.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := freshName()
	if err := s.host().exec("CREATE DATABASE " + name); err != nil {
		t.Fatal(err)
	}
	if _, err := migrations.Up(context.Background(), s.URL(name)); err != nil {
		t.Fatal(err)
	}
	return s.URL(name)
}

var counter atomic.Int64

func freshName() string { return fmt.Sprintf("ration_test_%d_%d", os.Getpid(), counter.Add(1)) }

// migrated returns the name of a database to copy; copying is faster than
// migrating.
func (h *host) migrated() (string, error) {
	h.once.Do(func() {
		h.template = freshName()
		if h.err = h.exec("CREATE DATABASE " + h.template); h.err == nil {
			_, h.err = migrations.Up(context.Background(), h.url(h.template))
		}
	})
	return h.template, h.err
}

func (h *host) create(t testing.TB, template string) string {
	t.Helper()
	name := freshName()
	if err := h.exec("CREATE DATABASE " + name + " TEMPLATE " + template); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.exec("DROP DATABASE " + name + " WITH (FORCE)"); err != nil {
			t.Errorf("dropping the test's database: %v", err)
		}
	})
	return h.url(name)
}

func (h *host) exec(sql string) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, h.url(h.admin))
	if err != nil {
		return fmt.Errorf("testpg: %w", err)
	}
	defer conn.Close(ctx)
	_, err = conn.Exec(ctx, sql)
	return err
}
