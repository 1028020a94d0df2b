package yamlfile

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/policy"
)

// maxMerges is how many merge keys may follow one another; it also ends a
// merge of a mapping into itself.
const maxMerges = 8

// Fields is a mapping with its keys in order.
type Fields struct {
	// Path is the mapping's own, to which a key is joined.
	Path  string
	Keys  []string
	Nodes map[string]*yaml.Node
	// At has each key's own node, for problems with the key itself.
	At map[string]*yaml.Node
}

// Has reports whether a key is there, with whatever value.
func (f Fields) Has(key string) bool { return f.Nodes[key] != nil }

// Resolve follows an alias to what it stands for.
func Resolve(n *yaml.Node) *yaml.Node {
	for range maxMerges {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			return n
		}
		n = n.Alias
	}
	return n
}

// IsNull reports whether n has no value.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Mapping reads n as a mapping under a path. With known keys any other is a fault; without,
// every key is allowed. A null counts as empty.
func (r *Reader) Mapping(n *yaml.Node, field string, known ...string) (Fields, bool) {
	f := Fields{Path: field, Nodes: map[string]*yaml.Node{}, At: map[string]*yaml.Node{}}
	n = Resolve(n)
	if IsNull(n) {
		return f, true
	}
	if n.Kind != yaml.MappingNode {
		r.Fail(n, field, "must be a mapping of fields, not %s", KindOf(n))
		return f, false
	}
	ok := r.collect(&f, n, field, known, 0)
	return f, ok
}

// collect adds the pairs of n to f. Those of a merged mapping come after and
// do not replace what is there.
func (r *Reader) collect(f *Fields, n *yaml.Node, field string, known []string, depth int) bool {
	ok := true
	own := map[string]bool{}
	var merge *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := Resolve(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			r.Fail(key, field, "has a key that is not a word")
			ok = false
			continue
		}
		if key.ShortTag() == "!!merge" {
			merge = Resolve(value)
			continue
		}
		switch {
		case own[key.Value]:
			r.Fail(key, Join(field, key.Value), "is given twice")
			ok = false
		case known != nil && !slices.Contains(known, key.Value):
			r.Fail(key, field, "has no field %q%s", Clip(key.Value), Suggestion(key.Value, known))
			ok = false
		case f.Nodes[key.Value] == nil:
			f.Keys = append(f.Keys, key.Value)
			f.Nodes[key.Value], f.At[key.Value] = value, key
		}
		own[key.Value] = true
	}
	if merge == nil {
		return ok
	}
	if merge.Kind != yaml.MappingNode || depth == maxMerges {
		r.Fail(merge, field, "merges what is not a mapping, or merges too deeply")
		return false
	}
	return r.collect(f, merge, field, known, depth+1) && ok
}

// Join appends a key to a field path, quoted where it is not a plain word.
func Join(parent, key string) string {
	last := policy.Field(key)
	if parent == "" || last[0] == '[' {
		return parent + last
	}
	return parent + "." + last
}

// KindOf says what n is, to tell what is wrong with it.
func KindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	return fmt.Sprintf("%q", Clip(n.Value))
}

// Clip shortens what is quoted back to the owner.
func Clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// Suggestion names the known word that was probably meant, or else all of them,
// as the end of a sentence.
func Suggestion(word string, known []string) string {
	best, least := "", 3
	for _, k := range known {
		if d := distance(word, k); d < least && d < len(k) {
			best, least = k, d
		}
	}
	if best == "" {
		return ": it has " + strings.Join(known, ", ")
	}
	return fmt.Sprintf(", did you mean %q?", best)
}

// distance is the number of letters to change, add or drop, up to 3.
func distance(a, b string) int {
	if len(a) > len(b)+2 || len(b) > len(a)+2 {
		return 3
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			next := min(row[j+1]+1, row[j]+1, diagonal+cost)
			diagonal, row[j+1] = row[j+1], next
		}
	}
	return min(row[len(b)], 3)
}
