package yamlfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// Reader collects the problems of what is read. The zero value is ready; not
// for concurrent use.
type Reader struct {
	// File is what problems are reported under, where a node does not come from
	// a file of its own.
	File     string
	Problems Errors
	origin   map[*yaml.Node]string
}

// Fail adds a problem at n, or with the whole file if n is nil.
func (r *Reader) Fail(n *yaml.Node, field, format string, args ...any) {
	r.Problems = append(r.Problems, r.At(n, field, format, args...))
}

// At makes a problem without adding it.
func (r *Reader) At(n *yaml.Node, field, format string, args ...any) Problem {
	problem := Problem{File: r.File, Field: field, Reason: fmt.Sprintf(format, args...)}
	if n != nil {
		problem.Line, problem.Column = n.Line, n.Column
		if file, ok := r.origin[n]; ok {
			problem.File = file
		}
	}
	return problem
}

// Adopt remembers that n and all below it come from File, for trees that are
// put together from several files.
func (r *Reader) Adopt(n *yaml.Node) {
	if r.origin == nil {
		r.origin = map[*yaml.Node]string{}
	}
	r.origin[n] = r.File
	for _, inner := range n.Content {
		r.Adopt(inner)
	}
}

// Origin is the file that a node was adopted from, or File.
func (r *Reader) Origin(n *yaml.Node) string {
	if file, ok := r.origin[n]; ok {
		return file
	}
	return r.File
}

// Documents parses every document of one file. Where the text is no YAML, it
// returns those before and adds a problem.
func (r *Reader) Documents(data []byte) []*yaml.Node {
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		r.Fail(nil, "", "%v", err)
		return nil
	}
	var roots []*yaml.Node
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			return roots
		}
		if err != nil {
			r.syntax(err)
			return roots
		}
		root := &doc
		if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
			root = root.Content[0]
		}
		roots = append(roots, root)
	}
}

func (r *Reader) syntax(err error) {
	problem := Problem{File: r.File, Reason: err.Error()}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		problem.Line, problem.Column, problem.Reason = e.Mark.Line, max(e.Mark.Column, 1), e.Message
	}
	r.Problems = append(r.Problems, problem)
}
