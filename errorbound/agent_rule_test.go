package errorbound

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"
)

// The agent's rule for prefetch, the planner's pace and the region's are
// theirs to change, and are not exported; what is assumed of them here must be
// what stands there.
func TestRulesAreThoseOfTheirOwners(t *testing.T) {
	for _, c := range []struct{ file, name, value string }{
		{"../agent/take.go", "prefetchLimit", "100"},
		{"../agent/take.go", "prefetchPart", "8"},
		{"../agent/decide.go", "localWait", "50 * time.Millisecond"},
		{"../allocation/plan.go", "reportEvery", "100 * time.Millisecond"},
		{"../allocation/plan.go", "decideTime", "20 * time.Millisecond"},
		{"../allocation/longpoll.go", "LongestHold", "500 * time.Millisecond"},
		{"../agent/entry.go", "denialMemory", "100 * time.Millisecond"},
		{"../agent/keeper.go", "mostBackoff", "5 * time.Second"},
		{"../allocation/plan_dynamic.go", "paceAbove", "0.04"},
		{"../allocation/plan_dynamic.go", "nearby", "4 * time.Millisecond"},
		{"../allocation/plan_dynamic.go", "paceTiny", "0.30"},
		{"../allocation/plan_dynamic.go", "tinyBelow", "7"},
		{"../agent/ward.go", "tinyBelow", "7"},
	} {
		if got := constant(t, c.file, c.name); got != c.value {
			t.Errorf("%s in %s is %q, this package assumes %q", c.name, c.file, got, c.value)
		}
	}
}

// constant is a constant's value as written.
func constant(t *testing.T, file, name string) string {
	t.Helper()
	set := token.NewFileSet()
	parsed, err := parser.ParseFile(set, file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	value := ""
	ast.Inspect(parsed, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok {
			return true
		}
		for i, id := range spec.Names {
			if id.Name == name && i < len(spec.Values) {
				value = written(spec.Values[i])
			}
		}
		return true
	})
	return value
}

func written(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		return e.Value
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return written(e.X) + "." + e.Sel.Name
	case *ast.BinaryExpr:
		return written(e.X) + " " + e.Op.String() + " " + written(e.Y)
	}
	return "?"
}
