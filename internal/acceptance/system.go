package acceptance

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// process is one of the system's own programs, run as users run it.
type process struct {
	name string
	path string
	args []string
	log  string
	http string // address of its health and metrics

	mu  sync.Mutex
	cmd *exec.Cmd
}

// build compiles the commands into a directory of the test's.
func build(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	cmd := exec.Command("go", "build", "-o", dir, "../../cmd/allocator", "../../cmd/regional-agent")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return dir
}

func (p *process) start(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr = log, log
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := p.cmd.Start(); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
}

// kill ends the process at once, as a crash would.
func (p *process) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil {
		_ = p.cmd.Process.Kill()
		_ = p.cmd.Wait()
		p.cmd = nil
	}
}

// stop asks the process to drain and waits for its end.
func (p *process) stop(t *testing.T) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil {
		return
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%s ended with %v; its log ends:\n%s", p.name, err, p.tail())
		}
	case <-time.After(30 * time.Second):
		_ = p.cmd.Process.Kill()
		t.Errorf("%s did not drain within 30 s: %v; its log ends:\n%s", p.name, <-done, p.tail())
	}
	p.cmd = nil
}

func (p *process) ready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		if body, err := get(p.http, "/readyz"); err == nil && body != "" {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s is not ready after 60 s; its log ends:\n%s", p.name, p.tail())
}

func (p *process) tail() string {
	b, _ := os.ReadFile(p.log)
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return strings.Join(lines[max(0, len(lines)-15):], "\n")
}

func get(addr, path string) (string, error) {
	client := http.Client{Timeout: 2 * time.Second}
	resp, err := client.Get("http://" + addr + path)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s%s: %s", addr, path, resp.Status)
	}
	return string(b), err
}

// counter sums the samples of a metric whose line contains every given label.
func (p *process) counter(metric string, labels ...string) (sum float64) {
	body, err := get(p.http, "/metrics")
	if err != nil {
		return 0
	}
lines:
	for line := range strings.Lines(body) {
		name, _, _ := strings.Cut(line, "{")
		name, _, _ = strings.Cut(name, " ")
		if name != metric {
			continue
		}
		for _, l := range labels {
			if !strings.Contains(line, l) {
				continue lines
			}
		}
		fields := strings.Fields(line)
		v, _ := strconv.ParseFloat(fields[len(fields)-1], 64)
		sum += v
	}
	return sum
}

// freeAddr names a port that nobody listens on. It is below those that the
// system gives to outgoing connections, or one of the system's own could take
// it before the program does that it is meant for.
func freeAddr(t *testing.T) string {
	t.Helper()
	for range 100 {
		addr := fmt.Sprintf("127.0.0.1:%d", 20000+rand.IntN(12000))
		if l, err := net.Listen("tcp", addr); err == nil {
			l.Close()
			return addr
		}
	}
	t.Fatal("no free port from 20000 to 31999")
	return ""
}

// command runs one of the allocator's commands to its end.
func command(t *testing.T, bin string, args ...string) (output string, code int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, "allocator"), args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		t.Fatalf("allocator %s: %v", strings.Join(args, " "), err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}
