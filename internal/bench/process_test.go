package bench

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// roleEnv names, in the environment, the role that this test binary has instead
// of running tests.
const roleEnv = "RATION_BENCH_ROLE"

// process is this test binary in a role: a server in a process of its own.
type process struct {
	role string
	cmd  *exec.Cmd
	// stdin is open for as long as the process is to serve.
	stdin io.WriteCloser
	told  told
	ended chan struct{}
	err   error // once ended: why, if not because it was told to
}

// told is the one line that a role prints: where it serves, or why it does not.
type told struct{ GRPC, HTTP, Err string }

// start starts the test binary in a role until the test ends.
func start(tb testing.TB, role string, opt roleOptions) *process {
	tb.Helper()
	p, err := launch(role, opt)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := p.end(); err != nil {
			tb.Errorf("the %s ended: %v", role, err)
		}
	})
	return p
}

// launch returns once the role serves. After an error nothing runs.
func launch(role string, opt roleOptions) (*process, error) {
	options, err := json.Marshal(opt)
	if err != nil {
		return nil, err
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &process{role: role, cmd: exec.Command(binary), ended: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), roleEnv+"="+role)
	p.cmd.Stderr = os.Stderr
	// A process that stands still would not see that its stdin was closed.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	begun := make(chan error)
	go p.run(options, stdout, begun)
	if err := <-begun; err != nil {
		_ = p.end()
		return nil, fmt.Errorf("the %s does not serve: %w", role, err)
	}
	return p, nil
}

// run keeps the thread that forks for as long as the child lives: the death
// signal is tied to that thread, not to the process.
func (p *process) run(options []byte, stdout io.Reader, begun chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	if err := p.cmd.Start(); err != nil {
		begun <- err
		return
	}
	_, err := p.stdin.Write(options)
	if err == nil {
		err = json.NewDecoder(stdout).Decode(&p.told)
	}
	if err == nil && p.told.Err != "" {
		err = fmt.Errorf("%s", p.told.Err)
	}
	begun <- err
	p.err = p.cmd.Wait()
}

// end tells the process to end, also one that stands still, and waits for it.
func (p *process) end() error {
	if p.cmd.Process != nil {
		_ = p.proceed() // it may have ended
	}
	_ = p.stdin.Close()
	<-p.ended
	return p.err
}

// pause stops the process without ending it; proceed lets it go on.
func (p *process) pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// proceed ends a pause.
func (p *process) proceed() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// play is the whole life of a process in a role: it reads its options, serves,
// says so, and ends when stdin does.
func play(role string, stdin io.Reader, stdout io.Writer) {
	var opt roleOptions
	var say told
	err := json.NewDecoder(stdin).Decode(&opt)
	if err == nil {
		say, err = serve(role, opt)
	}
	if err != nil {
		say.Err = err.Error()
	}
	_ = json.NewEncoder(stdout).Encode(say)
	_, _ = io.Copy(io.Discard, stdin)
}

// One that stands still is told to end as well: the allocator, whose options
// are the longest.
func TestARoleServesUntilItIsTold(t *testing.T) {
	p, err := launch("allocator", roleOptions{Budgets: routes(t, 2*maxApply, 1)})
	if err != nil {
		t.Fatal(err)
	}
	if p.told.GRPC == "" || p.told.HTTP == "" {
		t.Errorf("it said %+v", p.told)
	}
	if err := p.pause(); err != nil {
		t.Error(err)
	}
	if err := p.end(); err != nil {
		t.Error(err)
	}
}

func TestARoleSaysWhyItDoesNotServe(t *testing.T) {
	_, err := launch("juggler", roleOptions{})
	if err == nil || err.Error() != `the juggler does not serve: no role "juggler"` {
		t.Errorf("%v", err)
	}
}
