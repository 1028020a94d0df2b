package scenario

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
)

// pairs lists a mapping's keys and values, with what it merges by << put in
// place.
func pairs(n *yaml.Node, depth int) []*yaml.Node {
	if n == nil {
		return nil
	}
	if n = yamlfile.Resolve(n); n.Kind != yaml.MappingNode || depth > 8 {
		return nil
	}
	var own, merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].ShortTag() == "!!merge" {
			merged = append(merged, pairs(n.Content[i+1], depth+1)...)
			continue
		}
		own = append(own, n.Content[i], n.Content[i+1])
	}
	for i := 0; i < len(merged); i += 2 {
		if index(own, merged[i].Value) < 0 {
			own = append(own, merged[i], merged[i+1])
		}
	}
	return own
}

// index finds a key among pairs, -1 if it is not there.
func index(pairs []*yaml.Node, key string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i].Value == key && pairs[i].Kind == yaml.ScalarNode {
			return i
		}
	}
	return -1
}

// how values of a field replace those of the extended file.
type how func(m *merger, base, own *yaml.Node) *yaml.Node

// merger puts one file's tree over another's. The trees are not changed.
type merger struct{ reader *yamlfile.Reader }

func replace(_ *merger, _, own *yaml.Node) *yaml.Node { return own }

// fields merges mappings, each value by a rule of its own or else by other.
func fields(rules map[string]how, other how) how {
	return func(m *merger, base, own *yaml.Node) *yaml.Node {
		b, o := yamlfile.Resolve(base), yamlfile.Resolve(own)
		if b.Kind != yaml.MappingNode || o.Kind != yaml.MappingNode {
			return own
		}
		out := m.like(o)
		mine := pairs(o, 0)
		out.Content = pairs(b, 0)
		for i := 0; i < len(mine); i += 2 {
			key, value := mine[i], mine[i+1]
			at := index(out.Content, key.Value)
			first := at >= 0 && index(mine, key.Value) == i
			if !first { // a key given twice is told by the reader
				out.Content = append(out.Content, key, value)
				continue
			}
			rule, ok := rules[key.Value]
			if !ok {
				rule = other
			}
			out.Content[at], out.Content[at+1] = key, rule(m, out.Content[at+1], value)
		}
		return out
	}
}

// like makes a node that stands where n does.
func (m *merger) like(n *yaml.Node) *yaml.Node {
	out := *n
	file := m.reader.File
	m.reader.File = m.reader.Origin(n)
	out.Content = nil
	m.reader.Adopt(&out)
	m.reader.File = file
	return &out
}

// deep merges mappings all the way down.
func deep(m *merger, base, own *yaml.Node) *yaml.Node { return fields(nil, deep)(m, base, own) }

// named merges lists of things with a name, by that name.
func named(item how) how {
	return func(m *merger, base, own *yaml.Node) *yaml.Node { return m.named(item, base, own) }
}

func (m *merger) named(rule how, base, own *yaml.Node) *yaml.Node {
	b, o := yamlfile.Resolve(base), yamlfile.Resolve(own)
	if b.Kind != yaml.SequenceNode || o.Kind != yaml.SequenceNode {
		return own
	}
	out := m.like(o)
	out.Content = slices.Clone(b.Content)
	merged := map[string]bool{}
	for _, item := range o.Content {
		name := nameOf(item)
		at := slices.IndexFunc(out.Content, func(n *yaml.Node) bool { return name != "" && nameOf(n) == name })
		if at < 0 || merged[name] {
			out.Content = append(out.Content, item)
			continue
		}
		merged[name] = true
		out.Content[at] = rule(m, out.Content[at], item)
	}
	return out
}

func nameOf(n *yaml.Node) string {
	all := pairs(n, 0)
	if i := index(all, "name"); i >= 0 {
		return yamlfile.Resolve(all[i+1]).Value
	}
	return ""
}

// extended is how a file's fields go over those of the file it extends.
// A workload is replaced as a whole: another pattern would not go with the old
// one's fields.
var extended = fields(map[string]how{
	"topology": deep, "budgets": named(fields(nil, replace)), "workloads": named(replace),
}, replace)

// set puts a value at a field's path: below the top level if the path begins
// with one of its fields, else into every budget.
func (m *merger) set(root *yaml.Node, s Setting) *yaml.Node {
	file := m.reader.File
	m.reader.File = "--sweep " + s.Field + "=" + s.Value
	defer func() { m.reader.File = file }()
	path := strings.Split(s.Field, ".")
	if !slices.Contains(topFields, path[0]) {
		path = append([]string{"budgets", "*"}, path...)
	}
	value := &yaml.Node{Kind: yaml.ScalarNode, Value: s.Value}
	m.reader.Adopt(value)
	return m.put(root, path, value)
}

// put returns n with a value at a path, "*" being every item of a list.
func (m *merger) put(n *yaml.Node, path []string, value *yaml.Node) *yaml.Node {
	if len(path) == 0 {
		return value
	}
	key, rest := path[0], path[1:]
	n = yamlfile.Resolve(n)
	if n.Kind == yaml.SequenceNode {
		out := m.like(n)
		for _, item := range n.Content {
			if key == "*" || nameOf(item) == key {
				item = m.put(item, rest, value)
			}
			out.Content = append(out.Content, item)
		}
		return out
	}
	var out *yaml.Node
	if n.Kind == yaml.MappingNode {
		out = m.like(n)
		out.Content = pairs(n, 0)
	} else {
		out = &yaml.Node{Kind: yaml.MappingNode}
		m.reader.Adopt(out)
	}
	if at := index(out.Content, key); at >= 0 {
		out.Content[at+1] = m.put(out.Content[at+1], rest, value)
		return out
	}
	word := &yaml.Node{Kind: yaml.ScalarNode, Value: key}
	m.reader.Adopt(word)
	empty := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	out.Content = append(out.Content, word, m.put(empty, rest, value))
	return out
}
