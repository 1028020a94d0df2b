package file

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

// fields is a mapping with its keys in order.
type fields struct {
	keys  []string
	nodes map[string]*yaml.Node
	// at has each key's own node, for problems with the key itself.
	at map[string]*yaml.Node
}

// resolve follows an alias to what it stands for.
func resolve(n *yaml.Node) *yaml.Node {
	for range maxMerges {
		if n.Kind != yaml.AliasNode || n.Alias == nil {
			return n
		}
		n = n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// mapping reads n as a mapping. With known keys any other is a fault; without,
// every key is allowed. A null counts as empty.
func (p *parser) mapping(n *yaml.Node, field string, known ...string) (fields, bool) {
	f := fields{nodes: map[string]*yaml.Node{}, at: map[string]*yaml.Node{}}
	n = resolve(n)
	if isNull(n) {
		return f, true
	}
	if n.Kind != yaml.MappingNode {
		p.fail(n, field, "must be a mapping of fields, not %s", kindOf(n))
		return f, false
	}
	ok := p.collect(&f, n, field, known, 0)
	return f, ok
}

// collect adds the pairs of n to f. Those of a merged mapping come after and
// do not replace what is there.
func (p *parser) collect(f *fields, n *yaml.Node, field string, known []string, depth int) bool {
	ok := true
	own := map[string]bool{}
	var merge *yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			p.fail(key, field, "has a key that is not a word")
			ok = false
			continue
		}
		if key.ShortTag() == "!!merge" {
			merge = resolve(value)
			continue
		}
		switch {
		case own[key.Value]:
			p.fail(key, join(field, key.Value), "is given twice")
			ok = false
		case known != nil && !slices.Contains(known, key.Value):
			p.fail(key, field, "has no field %q%s", clip(key.Value), suggestion(key.Value, known))
			ok = false
		case f.nodes[key.Value] == nil:
			f.keys = append(f.keys, key.Value)
			f.nodes[key.Value], f.at[key.Value] = value, key
		}
		own[key.Value] = true
	}
	if merge == nil {
		return ok
	}
	if merge.Kind != yaml.MappingNode || depth == maxMerges {
		p.fail(merge, field, "merges what is not a mapping, or merges too deeply")
		return false
	}
	return p.collect(f, merge, field, known, depth+1) && ok
}

// join appends a key to a field path, quoted where it is not a plain word.
func join(parent, key string) string {
	last := policy.Field(key)
	if parent == "" || last[0] == '[' {
		return parent + last
	}
	return parent + "." + last
}

func kindOf(n *yaml.Node) string {
	switch n.Kind {
	case yaml.SequenceNode:
		return "a list"
	case yaml.MappingNode:
		return "a mapping"
	}
	return fmt.Sprintf("%q", clip(n.Value))
}

// clip shortens what is quoted back to the owner.
func clip(s string) string {
	const most = 64
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// suggestion names the known field that was probably meant.
func suggestion(word string, known []string) string {
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
