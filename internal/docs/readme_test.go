// Package docs runs what the documentation tells people to type.
package docs

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/internal/testredis"
)

const root = "../.."

// blocks returns the README's shell blocks that are marked with the word,
// joined in their order.
func blocks(t *testing.T, mark string) string {
	t.Helper()
	text, err := os.ReadFile(root + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, m := range regexp.MustCompile("(?ms)^```"+mark+"\n(.*?)^```").FindAllSubmatch(text, -1) {
		all = append(all, string(m[1]))
	}
	if len(all) == 0 {
		t.Fatalf("README.md has no block marked %q", mark)
	}
	return strings.Join(all, "\n")
}

// The steps of "Deploy it" and "Limits", word for word but for the addresses of
// the servers and the places of files, which are the test's own.
func TestDeploy(t *testing.T) {
	database := testpg.Empty(t)
	redis := testredis.Start(t, testredis.Options{})
	page := filepath.Join(t.TempDir(), "report.html")
	script := replaceAll(t, blocks(t, "sh deploy"), map[string]string{
		"postgres://postgres@localhost:5432/ration": database,
		"localhost:6379":      redis.Addr(),
		"localhost:7700":      freeAddr(t),
		"localhost:7701":      freeAddr(t),
		"localhost:7710":      freeAddr(t),
		"localhost:7711":      freeAddr(t),
		"-o bin/":             "-o " + t.TempDir() + "/",
		"--html report.html":  "--html " + page,
		"bin/allocator ":      "$BIN/allocator ",
		"bin/regional-agent ": "$BIN/regional-agent ",
	})
	dir := regexp.MustCompile(`-o (\S+)/ `).FindStringSubmatch(script)[1]
	out := run(t, 5*time.Minute, "export BIN="+dir+"\n"+script)
	for _, want := range []string{
		`{"allowed":true,"limit":2000,`, `"policyVersion":"search@1"`, "conservation holds",
		"within any 2s at most 4000 + 200; its file promises + 200: kept", "kept    over-admission at most 0",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q:\n%s", want, out)
		}
	}
	if html, err := os.ReadFile(page); err != nil || !bytes.Contains(html, []byte("fails over")) {
		t.Errorf("%v: the report is not about the scenario", err)
	}
}

// The measured run of "Try it" ends by itself, with exit code 0.
func TestTryIt(t *testing.T) {
	for line := range strings.Lines(blocks(t, "sh")) {
		if strings.Contains(line, "--load") {
			out := run(t, 5*time.Minute, strings.TrimSpace(line)+" --port 0")
			if !strings.Contains(out, "kept") || strings.Contains(out, "BROKEN") {
				t.Errorf("no promise was seen to be kept:\n%s", out)
			}
			return
		}
	}
	t.Error("README.md does not show a run with --load")
}

// The two commands that a newcomer types first.
func TestFirstCommands(t *testing.T) {
	shell := blocks(t, "sh")
	for _, command := range []string{"go run ./cmd/allocator dev\n", "make test\n"} {
		if !strings.Contains(shell, command) {
			t.Errorf("README.md does not show %q", command)
		}
	}
	out := run(t, time.Minute, "make help")
	for _, target := range []string{"make test ", "make acceptance ", "make lint "} {
		if !strings.Contains(out, target) {
			t.Errorf("make help does not list %q:\n%s", target, out)
		}
	}
}

// replaceAll fails where the text lacks one of the olds: then the README has
// changed and the test no longer runs what it says.
func replaceAll(t *testing.T, text string, news map[string]string) string {
	t.Helper()
	var pairs []string
	for old, new := range news {
		if !strings.Contains(text, old) {
			t.Fatalf("the README's steps lack %q", old)
		}
		pairs = append(pairs, old, new)
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// run runs a script as a shell would, stops at the first command that fails,
// and ends everything it started.
func run(t *testing.T, limit time.Duration, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\n"+script)
	cmd.Dir = root
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stop := func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Cancel = stop
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// Servers that the script leaves behind hold the output open.
	cmd.WaitDelay = time.Second
	state, err := cmd.Process.Wait()
	stop()
	_ = cmd.Wait()
	if err != nil || !state.Success() {
		t.Fatalf("%v, %v:\n%s\n%s", state, err, script, out.String())
	}
	return out.String()
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}
