package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/cobra"
)

// buffer is a bytes.Buffer that a command writes while a test reads.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// call is one command line on its way.
type call struct {
	out, err buffer
	env      map[string]string
	in       string
}

func (c *call) run(ctx context.Context, args ...string) int {
	return run(ctx, args, environment{
		in: strings.NewReader(c.in), out: &c.out, err: &c.err,
		lookup: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
	})
}

// expect runs a command and requires an exit code and words of its output.
func expect(t *testing.T, code int, want []string, args ...string) string {
	t.Helper()
	var c call
	got := c.run(t.Context(), args...)
	all := c.out.String() + c.err.String()
	if got != code {
		t.Fatalf("%v: exit %d, want %d\n%s", args, got, code, all)
	}
	for _, w := range want {
		if !strings.Contains(all, w) {
			t.Errorf("%v: %q is not in\n%s", args, w, all)
		}
	}
	return c.out.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "budgets.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestUsageErrorsExit2(t *testing.T) {
	bad := write(t, "budgets:\n  - name: a\n    limti: {rate: 1/s, burst: 1}\n")
	for _, c := range []struct{ line, want string }{
		{"budgets apply", "-f is required"},
		{"budgets apply -f x.yaml --database-url x", "x.yaml"},
		{"budgets apply --database-url x -f " + bad, bad + `:3:5: budgets[0] has no field "limti", did you mean "limit"?`},
		{"budgets get", "--database-url is required (or RATION_DATABASE_URL)"},
		{"budgets get --database-url ://", "database_url"},
		{"budgets get -o csv", `"csv" is not one of table, json, yaml`},
		{"budgets delete --database-url x", "one of the two"},
		{"budgets delete a --database-url x", "--yes"},
		{"budgets aply", "unknown command"},
		{"serve --insecure", "--database-url is required"},
		{"serve --database-url x", "exactly one of --tokens-file, RATION_TOKENS and --insecure"},
		{"serve --database-url x --insecure --tls-cert c", "go together"},
		{"serve --database-url x --insecure --clock-drift-ppm -1", "clock bounds"},
		{"serve --database-url x --tokens-file /absent", "--tokens-file: open /absent"},
		{"budgets diff", "Run 'allocator budgets diff --help'"},
		{"migrate down --database-url x", "--yes"},
		{"dev --rtt us", `--rtt "us"`},
		{"dev --rtt us=1ms --rtt us=2ms", "twice"},
		{"dev --for -1s", "--for"},
		{"dev extra", "unknown command"},
		{"audit --timeout 0s --database-url x", "--timeout"},
		{"nonsense", "unknown command"},
	} {
		expect(t, 2, []string{c.want}, strings.Fields(c.line)...)
	}
}

func TestUnreachableExits3(t *testing.T) {
	url := "postgres://127.0.0.1:1/none?connect_timeout=1"
	for _, line := range []string{"audit --timeout 1s", "budgets get --timeout 1s", "migrate status --timeout 1s", "serve --insecure"} {
		expect(t, 3, nil, append(strings.Fields(line), "--database-url", url)...)
	}
}

// A flag takes its environment twin, the command line wins, and a bad value is
// named by its variable.
func TestEnvironmentTwins(t *testing.T) {
	c := call{env: map[string]string{"RATION_DATABASE_URL": "://"}}
	if code := c.run(t.Context(), "audit"); code != 2 || strings.Contains(c.err.String(), "required") {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
	c = call{env: map[string]string{"RATION_TIMEOUT": "soon"}}
	if code := c.run(t.Context(), "audit"); code != 2 || !strings.Contains(c.err.String(), "RATION_TIMEOUT") {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
	c = call{env: map[string]string{"RATION_TIMEOUT": "0s"}}
	if code := c.run(t.Context(), "audit", "--timeout", "5s", "--database-url", "://"); code != 2 || strings.Contains(c.err.String(), "--timeout") {
		t.Errorf("exit %d: %s", code, c.err.String())
	}
}

// Every command says what it is for, gives an example, with files that are
// there, and names the environment twin of each flag.
func TestEveryCommandIsDocumented(t *testing.T) {
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Name() != "help" && cmd.Name() != "completion" {
			if cmd.Short == "" || cmd.Example == "" {
				t.Errorf("%s has no summary or no example", cmd.CommandPath())
			}
			for _, path := range regexp.MustCompile(`sim/scenarios/[\w*.-]+`).FindAllString(cmd.Example, -1) {
				if found, err := filepath.Glob("../../" + path); err != nil || len(found) == 0 {
					t.Errorf("%s: the example's %s is not there: %v", cmd.CommandPath(), path, err)
				}
			}
			for line := range strings.Lines(cmd.LocalFlags().FlagUsages()) {
				if !strings.Contains(line, "--help") && !strings.Contains(line, "[RATION_") {
					t.Errorf("%s: no environment twin in %q", cmd.CommandPath(), line)
				}
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
	}
	walk(root(environment{lookup: os.LookupEnv}))
}

func TestVersion(t *testing.T) { expect(t, 0, []string{"allocator "}, "version") }
