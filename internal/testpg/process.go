package testpg

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// binary finds one of Postgres's own programs, newest version first.
func binary(name string) (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	sort.Slice(found, func(i, j int) bool { return major(found[i]) > major(found[j]) })
	if len(found) > 0 {
		return found[0], nil
	}
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s is not installed: these tests need PostgreSQL 15 or later "+
		"(Debian, Ubuntu: apt-get install postgresql, or make test), "+
		"or RATION_TEST_DATABASE_URL of a server on which databases may be created", name)
}

func major(path string) int {
	n, _ := strconv.Atoi(strings.Split(path, "/")[4])
	return n
}

// credential is who runs the server: user postgres when the tests run as
// root, which initdb refuses; nil for whoever runs the tests.
func credential() (*syscall.Credential, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		return nil, fmt.Errorf("the tests run as root, and Postgres must not: %w (the package postgresql makes the user)", err)
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}, nil
}

// command prepares a program to run as the server's user, in dir, in a
// process group of its own: an interrupt at the terminal is for the tests,
// which then end the server.
func command(dir, name string, args ...string) (*exec.Cmd, error) {
	path, err := binary(name)
	if err != nil {
		return nil, err
	}
	cred, err := credential()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: cred}
	return cmd, nil
}

// run runs a program to its end; the error has its output.
func run(dir, name string, args ...string) error {
	cmd, err := command(dir, name, args...)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w: %s", name, err, out)
	}
	return nil
}

// tempDir makes a short directory that the server's user owns. (A test's own
// TempDir lies in one that user cannot enter.)
func tempDir() (string, error) {
	dir, err := os.MkdirTemp("", "ration-pg-")
	if err != nil {
		return "", err
	}
	cred, err := credential()
	if err != nil || cred == nil {
		return dir, err
	}
	return dir, os.Chown(dir, int(cred.Uid), int(cred.Gid))
}

// startReaper starts a shell that waits until the test process is gone, however it
// ended, then ends the server and removes its directory. It holds one end of
// a pipe whose other end only the test process has.

const reap = `
trap '' INT TERM HUP
cat >/dev/null
pid=$(head -n 1 "$0/data/postmaster.pid" 2>/dev/null) && kill -QUIT "$pid" 2>/dev/null
i=0
while [ -n "$pid" ] && kill -0 "$pid" 2>/dev/null && [ $i -lt 100 ]; do sleep 0.05; i=$((i+1)); done
rm -rf "$0"`

func startReaper(dir string) (stop func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", reap, dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_ = pipe.Close()
		_ = cmd.Wait()
	}, nil
}

// children lists the processes whose parent is pid, where /proc tells.
func children(pid int) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// pid (name) state parent: the name may hold anything but the last ')'.
		s := string(raw)
		fields := strings.Fields(s[strings.LastIndexByte(s, ')')+1:])
		if len(fields) < 2 || fields[1] != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			list = append(list, child)
		}
	}
	return list
}

// waitGone waits until none of the processes is left.
func waitGone(pids []int) error {
	deadline := time.Now().Add(startTimeout)
	for _, pid := range pids {
		for syscall.Kill(pid, 0) == nil {
			if time.Now().After(deadline) {
				return errors.New("a killed server's process does not end")
			}
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}
