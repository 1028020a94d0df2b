package yamlfile

import (
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Scope reads one thing of a file and remembers where each of its fields
// stands.
type Scope struct {
	*Reader
	Root *yaml.Node
	at   map[string]*yaml.Node
}

// Scope starts reading n.
func (r *Reader) Scope(n *yaml.Node) *Scope {
	return &Scope{Reader: r, Root: Resolve(n), at: map[string]*yaml.Node{}}
}

// Place finds the node of a field path, or of the nearest part that was
// written.
func (s *Scope) Place(field string) *yaml.Node {
	for field != "" {
		if n := s.at[field]; n != nil {
			return n
		}
		cut := max(strings.LastIndexByte(field, '.'), strings.LastIndexByte(field, '['))
		field = field[:max(cut, 0)]
	}
	return s.Root
}

// Mark remembers where a field stands.
func (s *Scope) Mark(field string, n *yaml.Node) { s.at[field] = n }

// Value returns the resolved node of a field and its path, remembering its
// place; nil when it is absent or null, which is a fault.
func (s *Scope) Value(f Fields, key string) (*yaml.Node, string) {
	full := Join(f.Path, key)
	n := f.Nodes[key]
	if n == nil {
		return nil, full
	}
	s.at[full] = n
	resolved := Resolve(n)
	if IsNull(resolved) {
		s.Fail(n, full, "has no value")
		return nil, full
	}
	return resolved, full
}

// Scalar returns a field's text as written, and false when it has none.
func (s *Scope) Scalar(f Fields, key string) (text, full string, ok bool) {
	n, full := s.Value(f, key)
	if n == nil {
		return "", full, false
	}
	if n.Kind != yaml.ScalarNode {
		s.Fail(f.Nodes[key], full, "must be a single value, not %s", KindOf(n))
		return "", full, false
	}
	return n.Value, full, true
}

// Text reads a text that is not empty, "" when it is absent.
func (s *Scope) Text(f Fields, key string) string {
	text, full, ok := s.Scalar(f, key)
	if ok && text == "" {
		s.Fail(f.Nodes[key], full, "must not be empty")
	}
	return text
}

// Parsed reads a scalar with a parser, the zero value when it is absent.
func Parsed[T any](s *Scope, f Fields, key string, parse func(string) (T, error)) T {
	var zero T
	text, full, ok := s.Scalar(f, key)
	if !ok {
		return zero
	}
	v, err := parse(text)
	if err != nil {
		s.Fail(f.Nodes[key], full, "%v", err)
		return zero
	}
	return v
}

// Rate reads tokens per period.
func (s *Scope) Rate(f Fields, key string) lease.Rate { return Parsed(s, f, key, policy.ParseRate) }

// Tokens reads a number of tokens.
func (s *Scope) Tokens(f Fields, key string) lease.Tokens {
	return Parsed(s, f, key, policy.ParseTokens)
}

// Duration reads a duration.
func (s *Scope) Duration(f Fields, key string) time.Duration {
	return Parsed(s, f, key, policy.ParseDuration)
}

// Lifetime reads a duration that must not be 0, which would silently become
// the default.
func (s *Scope) Lifetime(f Fields, key string) time.Duration {
	return Parsed(s, f, key, func(text string) (time.Duration, error) {
		d, err := policy.ParseDuration(text)
		if err == nil && d == 0 {
			err = fmt.Errorf("must be above 0; leave it out for the default")
		}
		return d, err
	})
}

// Inner reads a field that is a mapping; false when it is absent or unsound.
func (s *Scope) Inner(f Fields, key string, known ...string) (Fields, bool) {
	n, full := s.Value(f, key)
	if n == nil {
		return Fields{}, false
	}
	return s.Mapping(n, full, known...)
}

// List reads a field that is a list, nil when it is absent or unsound.
func (s *Scope) List(f Fields, key string) []*yaml.Node {
	n, full := s.Value(f, key)
	if n == nil {
		return nil
	}
	if n.Kind != yaml.SequenceNode {
		s.Fail(n, full, "must be a list, not %s", KindOf(n))
		return nil
	}
	return n.Content
}
