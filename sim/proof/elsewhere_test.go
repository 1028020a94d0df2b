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
		"S07 a standby stands still, COMMIT is cancelled, it is promoted", "what Postgres makes of a cancelled wait, on real servers",
		"allocation/postgres", []string{"TestNoGrantIsAnsweredThatAStandbyDoesNotHave", "TestACommitGoesOnWhenTheCallersContextEnds"},
	},
	{
		"S08 the same, and a replay of a row that the standby lacks", "the same test: the second grant of budget a is the replay",
		"allocation/postgres", []string{"TestNoGrantIsAnsweredThatAStandbyDoesNotHave"},
	},
	{
		"S32 a request repeated after its row was forgotten", "rows are kept for 24 h, far beyond a run",
		"allocation", []string{"TestPurgedLeaseStaysEnded", "TestRepetitionAfterThePurgeStrandsItsLump"},
	},
	{
		"S34 a store comes back old and no replication id is compared", "the memory store always compares: it needs the mutant",
		"sim/proof", []string{"TestMutantStaleStoreIsTight"},
	},
	{
		"S39 SCRIPT FLUSH, and a write that fails in the middle of a script", "what real Redis does",
		"regionstore/redis", []string{"TestUnknownScriptsAreHealedInSilence", "TestOutOfMemoryChangesNothing"},
	},
	{
		"S45 an agent that names no incarnation", "no agent in a run speaks otherwise than the allocator",
		"allocation", []string{"TestEveryFieldOfAnItemIsBounded"},
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
