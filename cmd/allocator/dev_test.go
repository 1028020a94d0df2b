package main

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// The whole of dev: it serves, measures, ends with 0, and leaves nothing
// running.
func TestDevUnderLoad(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	out := expect(t, 0, []string{"acme/search", "us", "eu", "ap", "kept"}, "dev", "--for", "2s", "--load", "--port", "0")
	if strings.Contains(out, "BROKEN") {
		t.Error(out)
	}
	// Each region met load, and some of it was admitted.
	for _, region := range []string{"us", "eu", "ap"} {
		row := regexp.MustCompile(`(?m)^` + region + ` +(\d+) +(\d+) `).FindStringSubmatch(out)
		if row == nil || row[1] == "0" || row[2] == "0" {
			t.Errorf("%s: %v in\n%s", region, row, out)
		}
	}
}

// The curl line works as printed, taken apart by a shell.
func TestDevCurlLine(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	ctx, cancel := context.WithCancel(t.Context())
	var c call
	done := make(chan int, 1)
	go func() { done <- c.run(ctx, "dev", "--port", "0") }()
	line := await(t, done, &c, `(?m)^  (curl .*)$`)

	status, answer := post(t, shellWords(t, line))
	if status != http.StatusOK || answer["allowed"] != true || answer["limit"] != "500" && answer["limit"] != 500.0 {
		t.Errorf("%s\nanswered %d: %v", line, status, answer)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("interrupted: exit %d: %s", code, c.err.String())
	}
	http.DefaultClient.CloseIdleConnections()
}

// await waits until the command has printed a match, and returns its group.
func await(t *testing.T, done <-chan int, c *call, pattern string) string {
	t.Helper()
	match := regexp.MustCompile(pattern)
	for range 2000 {
		if m := match.FindStringSubmatch(c.out.String() + c.err.String()); m != nil {
			return m[1]
		}
		select {
		case code := <-done:
			t.Fatalf("ended with %d: %s%s", code, c.out.String(), c.err.String())
		case <-time.After(10 * time.Millisecond):
		}
	}
	t.Fatalf("no %s in\n%s%s", pattern, c.out.String(), c.err.String())
	return ""
}

// shellWords are the arguments that curl would get.
func shellWords(t *testing.T, line string) []string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", "-c", `curl() { for a; do printf '%s\n' "$a"; done; }; `+line).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(out)), "\n")
}

// post does what curl does with -s, -H and -d.
func post(t *testing.T, args []string) (int, map[string]any) {
	t.Helper()
	var url, header, body string
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "-s":
		case "-H":
			i++
			header = args[i]
		case "-d":
			i++
			body = args[i]
		default:
			url = args[i]
		}
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	name, value, _ := strings.Cut(header, ": ")
	req.Header.Set(name, value)
	return do(t, req)
}

func do(t *testing.T, req *http.Request) (int, map[string]any) {
	t.Helper()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	var answer map[string]any
	if err := json.Unmarshal(text, &answer); err != nil {
		t.Fatalf("%d: %q: %v", resp.StatusCode, text, err)
	}
	return resp.StatusCode, answer
}

func TestDevEndsAfterItsTime(t *testing.T) {
	expect(t, 0, []string{"curl "}, "dev", "--for", "50ms", "--port", "0")
}

// A busy port is named with the flag that moves it, and nothing is left
// running.
func TestDevBusyPort(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	expect(t, 3, []string{"127.0.0.1:" + port + " is in use by another process: choose another with --port"}, "dev", "--port", port)
}

// Budgets with quotes in their names give a line that a shell still takes.
func TestDevCurlLineQuotes(t *testing.T) {
	path := write(t, `budgets: [{name: "it's $HOME", limit: {rate: 10/s, burst: 10}}]`)
	ctx, cancel := context.WithCancel(t.Context())
	var c call
	done := make(chan int, 1)
	go func() { done <- c.run(ctx, "dev", "--port", "0", "-f", path, "--rtt", "us=0s") }()
	line := await(t, done, &c, `(?m)^  (curl .*)$`)
	if status, answer := post(t, shellWords(t, line)); status != http.StatusOK || answer["allowed"] != true {
		t.Errorf("%s\nanswered %d: %v", line, status, answer)
	}
	cancel()
	if code := <-done; code != 0 {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
}
