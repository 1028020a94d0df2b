package file

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/policy"
)

// Kind says what applying a file would do to a budget.
type Kind string

// The kinds of change.
const (
	Add    Kind = "add"
	Modify Kind = "change"
	Remove Kind = "delete"
	Keep   Kind = "same"
)

// Change is what would become of one budget.
type Change struct {
	Budget string        `yaml:"budget" json:"budget"`
	Kind   Kind          `yaml:"change" json:"change"`
	Fields []FieldChange `yaml:"fields,omitempty" json:"fields,omitempty"`
}

// FieldChange is one field's old and new text; "" where it is not set.
type FieldChange struct {
	Field string `yaml:"field" json:"field"`
	From  string `yaml:"from" json:"from"`
	To    string `yaml:"to" json:"to"`
}

// Diff compares normalized budgets; nil stands for one that is not there.
func Diff(from, to *policy.Budget) Change {
	c := Change{Kind: Keep}
	before := map[string]string{}
	var after map[string]string
	switch {
	case from == nil && to == nil:
		return c
	case from == nil:
		c.Kind, c.Budget = Add, to.Name
		after = flat(*to)
	case to == nil:
		c.Kind, c.Budget = Remove, from.Name
		return c
	default:
		c.Budget = to.Name
		before, after = flat(*from), flat(*to)
	}
	for _, field := range union(before, after) {
		if before[field] != after[field] {
			c.Fields = append(c.Fields, FieldChange{field, before[field], after[field]})
		}
	}
	if c.Kind == Keep && len(c.Fields) > 0 {
		c.Kind = Modify
	}
	return c
}

// flat is a budget as field paths and their text, the computed float included.
func flat(b policy.Budget) map[string]string {
	out := map[string]string{}
	text, err := json.Marshal(written(b))
	var tree map[string]any
	if err == nil {
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		err = d.Decode(&tree)
	}
	if err != nil {
		panic(err) // the form has only strings and numbers
	}
	delete(tree, "name")
	flatten(out, "", tree)
	if b.Float > 0 {
		out["float (tokens)"] = fmt.Sprint(int64(b.Float))
	}
	return out
}

func flatten(out map[string]string, path string, v any) {
	tree, ok := v.(map[string]any)
	if !ok {
		out[path] = fmt.Sprint(v)
		return
	}
	if len(tree) == 0 && path != "" {
		out[path] = "{}"
	}
	for key, inner := range tree {
		flatten(out, yamlfile.Join(path, key), inner)
	}
}

func union(a, b map[string]string) []string {
	var keys []string
	for k := range a {
		keys = append(keys, k)
	}
	for k := range b {
		if _, ok := a[k]; !ok {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys
}
