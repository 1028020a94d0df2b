package proof_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// elsewhere are the scenarios that a simulator over the memory stores cannot
// express, why, and the tests that play them instead.
var elsewhere = []struct {
	scenario, why, pkg string
	tests              []string
}{
	{
		scenario: "S07 a standby stands still, COMMIT is cancelled, it is promoted",
		why:      "what Postgres makes of a cancelled wait, on real servers",
		pkg:      "allocation/postgres",
		tests:    []string{"TestNoGrantIsAnsweredThatAStandbyDoesNotHave", "TestACommitGoesOnWhenTheCallersContextEnds"},
	},
	{
		scenario: "S08 the same, and a replay of a row that the standby lacks",
		why:      "the same test: the second grant of budget a is the replay",
		pkg:      "allocation/postgres",
		tests:    []string{"TestNoGrantIsAnsweredThatAStandbyDoesNotHave"},
	},
	{
		scenario: "S32 a request repeated after its row was forgotten",
		why:      "rows are kept for 24 h, far beyond a run",
		pkg:      "allocation",
		tests:    []string{"TestPurgedLeaseStaysEnded", "TestRepetitionAfterThePurgeStrandsItsLump"},
	},
	{
		scenario: "S34 a store comes back old and no replication id is compared",
		why:      "the memory store always compares: it needs the mutant",
		pkg:      "sim/proof",
		tests:    []string{"TestMutantStaleStoreIsTight"},
	},
	{
		scenario: "S39 SCRIPT FLUSH, and a write that fails in the middle of a script",
		why:      "what real Redis does",
		pkg:      "regionstore/redis",
		tests:    []string{"TestUnknownScriptsAreHealedInSilence", "TestOutOfMemoryChangesNothing"},
	},
	{
		scenario: "S45 an agent that names no incarnation",
		why:      "no agent in a run speaks otherwise than the allocator",
		pkg:      "allocation",
		tests:    []string{"TestEveryFieldOfAnItemIsBounded"},
	},
}

// Each of the 50 scenarios has a test of its name here or a line in elsewhere,
// and each test that is named there exists.
func TestEveryScenarioIsTested(t *testing.T) {
	var missing []string
	here := testsIn(t, "sim/proof")
	for n := 1; n <= 50; n++ {
		name := "S" + string(rune('0'+n/10)) + string(rune('0'+n%10))
		starts := func(s string) bool { return strings.HasPrefix(s, "Test"+name) }
		listed := false
		for _, e := range elsewhere {
			listed = listed || strings.HasPrefix(e.scenario, name+" ")
		}
		if slices.ContainsFunc(here, starts) == listed {
			missing = append(missing, name)
		}
	}
	if len(missing) > 0 {
		t.Errorf("neither or both tested here and listed: %v", missing)
	}
	for _, e := range elsewhere {
		tests := testsIn(t, e.pkg)
		for _, name := range e.tests {
			if !slices.Contains(tests, name) {
				t.Errorf("%s: %s has no %s", e.scenario, e.pkg, name)
			}
		}
	}
}

// testsIn lists the test functions of a package's directory, whatever their
// build tags.
func testsIn(t *testing.T, pkg string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range parsed.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") {
				names = append(names, fn.Name.Name)
			}
		}
	}
	return names
}
