// Package testredis starts real Redis servers for tests: single ones,
// replicas, Sentinels and a Cluster, each in a temporary directory on a free
// loopback port. A missing binary fails the test; nothing is ever skipped.
package testredis

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout bounds how long a server may take to answer, and how long a
// test waits for replication, failover or a cluster to settle.
const startTimeout = 30 * time.Second

// Options says how a server is started. The zero value is a server that keeps
// nothing on disk and evicts nothing.
type Options struct {
	// AppendOnly keeps an append-only file.
	AppendOnly bool
	// Args are further command line arguments, as in "--maxmemory", "3mb".
	Args []string
}

// Server is one Redis process. Its methods are for the test's own goroutine.
type Server struct {
	t    testing.TB
	args []string
	dir  string
	port int

	proc *process
}

// Start starts a server and stops it when the test ends.
func Start(t testing.TB, opts Options) *Server {
	t.Helper()
	s := &Server{t: t, dir: t.TempDir(), args: arguments(opts)}
	s.launchAnywhere()
	t.Cleanup(s.Kill)
	return s
}

func arguments(opts Options) []string {
	args := []string{
		"--save", "", "--bind", "127.0.0.1", "--protected-mode", "no",
		"--maxmemory-policy", "noeviction", "--repl-diskless-sync-delay", "0",
		"--appendfsync", "always", "--appendonly",
	}
	if opts.AppendOnly {
		args = append(args, "yes")
	} else {
		args = append(args, "no")
	}
	return append(args, opts.Args...)
}

// Addr is the server's host:port; it stays the same over restarts.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

// Client returns a plain client, closed when the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr()})
	s.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs one command and fails the test on an error.
func (s *Server) Do(args ...any) any {
	s.t.Helper()
	c := redis.NewClient(&redis.Options{Addr: s.Addr(), MaxRetries: -1})
	defer c.Close()
	v, err := c.Do(context.Background(), args...).Result()
	if err != nil {
		s.t.Fatalf("redis %s: %v: %v", s.Addr(), args, err)
	}
	return v
}

// Kill ends the process with SIGKILL and waits until it is gone. Killing a
// server twice is fine.
func (s *Server) Kill() { s.proc.kill() }

// Restart starts the server again on the same port with what its directory
// holds: a snapshot (see Snapshot), an append-only file, or nothing. A server
// that runs is killed first.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.launch(); err != nil {
		s.t.Fatalf("restarting redis-server: %v", err)
	}
}

// RestartEmpty starts the server again without any data.
func (s *Server) RestartEmpty() {
	s.t.Helper()
	s.Kill()
	if err := os.RemoveAll(s.dir); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Mkdir(s.dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.Restart()
}

// Snapshot writes an RDB file that the next Restart loads.
func (s *Server) Snapshot() {
	s.t.Helper()
	s.Do("SAVE")
}

// Pause stops the process without ending it; Continue lets it go on.
func (s *Server) Pause() { s.proc.signal(s.t, syscall.SIGSTOP) }

// Continue ends a Pause.
func (s *Server) Continue() { s.proc.signal(s.t, syscall.SIGCONT) }

// launchAnywhere picks a free port; another process may take it before the
// server does, so a few are tried.
func (s *Server) launchAnywhere() {
	s.t.Helper()
	var err error
	for range 5 {
		if s.port, err = freePort(); err != nil {
			s.t.Fatal(err)
		}
		if err = s.launch(); err == nil {
			return
		}
	}
	s.t.Fatalf("starting redis-server: %v", err)
}

func (s *Server) launch() error {
	args := append([]string{"--port", strconv.Itoa(s.port), "--dir", s.dir}, s.args...)
	proc, err := startProcess("redis-server", args...)
	if err != nil {
		return err
	}
	s.proc = proc
	if err := proc.waitReady(s.Addr()); err != nil {
		proc.kill()
		return err
	}
	return nil
}

func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

// process is a child that dies with the test process.
type process struct {
	cmd  *exec.Cmd
	out  *syncBuffer
	done chan struct{}
}

// startProcess keeps the thread that forks alive for as long as the child
// lives: the death signal is tied to that thread, not to the process.
func startProcess(name string, args ...string) (*process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%s is not in PATH: install Redis 7 (Debian, Ubuntu: apt-get install redis-server redis-sentinel, or make test)", name)
	}
	p := &process{cmd: exec.Command(path, args...), out: &syncBuffer{}, done: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait()
		}
		close(p.done)
	}()
	return p, <-started
}

func (p *process) kill() {
	if p.cmd.Process == nil {
		return
	}
	_ = p.cmd.Process.Kill()
	<-p.done
}

func (p *process) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil {
		t.Fatalf("signal %v: %v", sig, err)
	}
}

// waitReady waits for a PONG, or for the process to end.
func (p *process) waitReady(addr string) error {
	deadline := time.Now().Add(startTimeout)
	for time.Now().Before(deadline) {
		if pong(addr) {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended: %s", filepath.Base(p.cmd.Path), p.out)
		case <-time.After(5 * time.Millisecond):
		}
	}
	return fmt.Errorf("%s did not answer at %s: %s", filepath.Base(p.cmd.Path), addr, p.out)
}

func pong(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(time.Second))
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, len("+PONG"))
	_, err = io.ReadFull(c, answer)
	return err == nil && string(answer) == "+PONG"
}

// syncBuffer collects a child's output.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
