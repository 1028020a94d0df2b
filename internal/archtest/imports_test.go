// Package archtest holds the architecture: which packages may import what,
// each rule with its reason.
package archtest

import (
	"go/build"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/ration-dev/ration/"

// core packages decide; they are functions of state, event and time, and the
// simulator drives them unchanged. Their sub-packages are adapters and may do
// I/O.
var core = []string{"lease", "policy", "allocation", "agent", "regionstore", "errorbound", "sim"}

// allowed names what a core package may import besides the standard library
// and other core packages.
var allowed = map[string]string{
	module + "internal/mutant": "a constant false outside mutation tests",
}

// driven are the stores that pass the conformance suites and do no I/O: the
// simulator runs the production steps over them.
var driven = map[string][]string{
	"sim": {module + "allocation/memory", module + "regionstore/memory"},
}

// forbidden standard packages, with the reason.
var forbidden = map[string]string{
	"net":          "a decision does no I/O",
	"net/http":     "a decision does no I/O",
	"os":           "a decision does no I/O",
	"database/sql": "a decision does no I/O",
	"math/rand":    "randomness is handed in, so that a run can be repeated",
	"log":          "the edges log",
	"log/slog":     "the edges log",
}

// standardOnly packages hold words that everything shares; they may import
// the standard library, and policy may import lease. A bound must be computed
// from what is declared, not from the code that it bounds.
var standardOnly = map[string][]string{
	"lease":      nil,
	"policy":     {module + "lease"},
	"errorbound": {module + "lease", module + "policy"},
}

func TestCoreImports(t *testing.T) {
	root := moduleRoot(t)
	for _, pkg := range core {
		for _, imp := range importsOf(t, filepath.Join(root, pkg)) {
			if reason, bad := forbidden[imp]; bad {
				t.Errorf("%s imports %s: %s", pkg, imp, reason)
			}
			if !strings.Contains(strings.Split(imp, "/")[0], ".") {
				continue // standard library
			}
			if only, limited := standardOnly[pkg]; limited {
				if !contains(only, imp) {
					t.Errorf("%s imports %s: it holds shared words and may import only the standard library and %v", pkg, imp, only)
				}
				continue
			}
			if _, ok := allowed[imp]; !ok && !isCore(imp) && !contains(driven[pkg], imp) {
				t.Errorf("%s imports %s: core packages import the standard library and one another, so that the simulator can drive them", pkg, imp)
			}
		}
	}
}

// Data flows one way: the global side knows nothing of regions' stores and
// agents, and a region's side nothing of the ledger.
func TestSidesDoNotKnowEachOther(t *testing.T) {
	root := moduleRoot(t)
	apart := map[string][]string{
		"allocation":  {"agent", "regionstore", "sim"},
		"agent":       {"allocation"},
		"regionstore": {"allocation", "agent"},
	}
	for pkg, others := range apart {
		for _, imp := range importsOf(t, filepath.Join(root, pkg)) {
			for _, other := range others {
				if imp == module+other || strings.HasPrefix(imp, module+other+"/") {
					t.Errorf("%s imports %s: the two sides speak only lease messages", pkg, imp)
				}
			}
		}
	}
}

func TestCommandsAreThin(t *testing.T) {
	root := moduleRoot(t)
	for _, cmd := range []string{"cmd/allocator", "cmd/regional-agent"} {
		for _, imp := range importsOf(t, filepath.Join(root, cmd)) {
			for _, driver := range []string{"github.com/jackc/pgx", "github.com/redis/go-redis", "google.golang.org/grpc"} {
				if strings.HasPrefix(imp, driver) {
					t.Errorf("%s imports %s: commands have flags and wiring only; what they start is importable from internal/app", cmd, imp)
				}
			}
		}
	}
}

func isCore(imp string) bool {
	for _, pkg := range core {
		if imp == module+pkg {
			return true
		}
	}
	return false
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

func importsOf(t *testing.T, dir string) []string {
	t.Helper()
	pkg, err := build.ImportDir(dir, 0)
	if err != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	return pkg.Imports
}

func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}
