// Package testpg starts real Postgres servers for tests, in temporary
// directories on free loopback ports, and makes a fresh, migrated database
// for each test. A missing server fails the test; nothing is ever skipped.
package testpg

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout bounds how long a server may take to start or to end.
const startTimeout = 60 * time.Second

// Options says how a server is started. The zero value is a durable server.
type Options struct {
	// NoFsync makes commits fast. Data still survives Kill, which leaves the
	// machine running.
	NoFsync bool
	// Settings are further ones, as in "log_statement=all".
	Settings []string
}

// Server is one Postgres server of a test's own. Its methods are for the
// test's goroutine.
type Server struct {
	dir      string
	port     int
	settings []string
	reap     func()

	cmd  *exec.Cmd
	gone chan struct{} // closed when cmd has ended
}

// New starts a server that the test may kill, and ends it with the test.
func New(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := start(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

func start(opts Options) (*Server, error) {
	s, err := prepare(opts)
	if err != nil {
		return nil, err
	}
	err = run(s.dir, "initdb", "-D", s.data(), "-U", "postgres", "-A", "trust",
		"-E", "UTF8", "--locale=C", "--no-sync", "--no-instructions")
	if err == nil {
		err = s.launchAnywhere()
	}
	if err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// prepare makes the directory, and sees to it that it is removed.
func prepare(opts Options) (*Server, error) {
	dir, err := tempDir()
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, settings: opts.Settings}
	if opts.NoFsync {
		s.settings = append([]string{"fsync=off"}, s.settings...)
	}
	if s.reap, err = startReaper(dir); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

// URL is how to reach one of the server's databases; it stays the same over
// restarts.
func (s *Server) URL(database string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}

// Addr is the server's host:port, for a proxy in front of it.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// launchAnywhere picks a free port; another process may take it before the
// server does, so a few are tried.
func (s *Server) launchAnywhere() (err error) {
	for range 5 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.launch(); err == nil {
			return nil
		}
	}
	return err
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// launch starts the server on what its directory holds, and waits until it
// answers.
func (s *Server) launch() error {
	args := []string{
		"-D", s.data(), "-p", strconv.Itoa(s.port), "-h", "127.0.0.1",
		"-c", "unix_socket_directories=" + s.sockets(),
		"-c", "max_connections=200", "-c", "shared_buffers=32MB",
		"-c", "autovacuum_naptime=10s", "-c", "timezone=UTC",
	}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	cmd, err := command(s.dir, "postgres", args...)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	s.cmd, s.gone = cmd, make(chan struct{})
	go func(gone chan struct{}) {
		_ = cmd.Wait()
		close(gone)
	}(s.gone)
	return s.waitReady()
}

// sockets is where the server listens besides TCP: nowhere when the path
// would be too long for a socket.
func (s *Server) sockets() string {
	if len(s.dir) > 80 {
		return ""
	}
	return s.dir
}

func (s *Server) log() string { return filepath.Join(s.dir, "log") }

func (s *Server) waitReady() error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := ping(s.URL("postgres"))
		if err == nil {
			return nil
		}
		select {
		case <-s.gone:
			err = errors.New("it ended at once")
		case <-time.After(20 * time.Millisecond):
			if time.Now().Before(deadline) {
				continue
			}
		}
		raw, _ := os.ReadFile(s.log())
		return fmt.Errorf("starting postgres: %w; its log: %s", err, raw)
	}
}

func ping(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

// Kill ends the server and all its processes with SIGKILL, and waits until
// they are gone. Killing twice is fine.
func (s *Server) Kill(t testing.TB) {
	t.Helper()
	if err := s.kill(); err != nil {
		t.Fatal(err)
	}
}

func (s *Server) kill() error {
	if s.cmd == nil {
		return nil
	}
	// Stopped first, so that it starts no more children while they are listed.
	pid := s.cmd.Process.Pid
	_ = syscall.Kill(pid, syscall.SIGSTOP)
	backends := children(pid)
	_ = syscall.Kill(pid, syscall.SIGKILL)
	for _, child := range backends {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	<-s.gone
	s.cmd = nil
	return waitGone(backends)
}

// Restart starts the server again on the same port with what its directory
// holds. A server that runs is killed first.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Kill(t)
	if err := s.launch(); err != nil {
		t.Fatal(err)
	}
}

// Freeze stops all the server's processes without ending them; Thaw lets them
// go on.
func (s *Server) Freeze() { s.signal(syscall.SIGSTOP) }

// Thaw ends a Freeze.
func (s *Server) Thaw() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	pid := s.cmd.Process.Pid
	_ = syscall.Kill(pid, sig)
	for _, child := range children(pid) {
		_ = syscall.Kill(child, sig)
	}
}

// stop ends the server and removes its directory.
func (s *Server) stop() {
	_ = s.kill()
	s.reap()
}
