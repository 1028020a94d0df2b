package file

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/policy"
)

// Bounds of what is read.
const (
	// MaxSize is the largest budget file, in bytes.
	MaxSize = 4 << 20
	// MaxBudgets is the most budgets of all files together.
	MaxBudgets = 100_000
)

// Source is the text of one file.
type Source struct {
	// Name is what problems are reported under.
	Name string
	Data []byte
}

// Load reads budget files and directories of them (every *.yaml and *.yml in
// the directory itself, by name), and "-" as standard input. The budgets are
// normalized for the deployment, in the order read. The error is an Errors,
// or says why a path could not be read.
func Load(d policy.Deployment, paths ...string) ([]policy.Budget, error) {
	var sources []Source
	for _, path := range paths {
		files, err := expand(path)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			s, err := read(f)
			if err != nil {
				return nil, err
			}
			sources = append(sources, s)
		}
	}
	return Parse(d, sources...)
}

// expand lists the budget files of a directory, or the file itself.
func expand(path string) ([]string, error) {
	if path == "-" {
		return []string{path}, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	var files []string
	for _, pattern := range []string{"*.yaml", "*.yml"} {
		found, err := filepath.Glob(filepath.Join(escapeGlob(path), pattern))
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: the directory has no *.yaml or *.yml file", path)
	}
	slices.Sort(files)
	return files, nil
}

func escapeGlob(path string) string {
	var b []byte
	for i := range len(path) {
		if bytes.IndexByte([]byte(`*?[\`), path[i]) >= 0 {
			b = append(b, '\\')
		}
		b = append(b, path[i])
	}
	return string(b)
}

func read(path string) (Source, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return Source{}, err
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
	if err != nil {
		return Source{}, err
	}
	return Source{Name: path, Data: data}, nil
}

// Parse is Load for texts that were already read.
func Parse(d policy.Deployment, sources ...Source) ([]policy.Budget, error) {
	p := &parser{deployment: d, places: map[string]string{}}
	var all Errors
	for _, s := range sources {
		p.file, p.problems = s.Name, nil
		p.source(s.Data)
		p.problems.sortWithin()
		all = append(all, p.problems...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return p.budgets, nil
}

// parser collects the budgets and problems of all sources.
type parser struct {
	deployment policy.Deployment
	file       string
	budgets    []policy.Budget
	// places has where each name was first given.
	places   map[string]string
	problems Errors
}

func (p *parser) fail(n *yaml.Node, field, format string, args ...any) {
	problem := Problem{File: p.file, Field: field, Reason: fmt.Sprintf(format, args...)}
	if n != nil {
		problem.Line, problem.Column = n.Line, n.Column
	}
	p.problems = append(p.problems, problem)
}

// source reads every document of one file.
func (p *parser) source(data []byte) {
	if len(data) > MaxSize {
		p.fail(nil, "", "is larger than %d bytes", MaxSize)
		return
	}
	loader, err := yaml.NewLoader(bytes.NewReader(data))
	if err != nil {
		p.fail(nil, "", "%v", err)
		return
	}
	documents := 0
	for {
		var doc yaml.Node
		err := loader.Load(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			p.syntax(err)
			return
		}
		documents++
		p.document(&doc)
	}
	if documents == 0 {
		p.fail(nil, "", "is empty: write a budgets list")
	}
}

func (p *parser) syntax(err error) {
	problem := Problem{File: p.file, Reason: err.Error()}
	if e, ok := errors.AsType[*yaml.LoadError](err); ok {
		problem.Line, problem.Column, problem.Reason = e.Mark.Line, max(e.Mark.Column, 1), e.Message
	}
	p.problems = append(p.problems, problem)
}

// document reads the budgets list of one document. An empty document is
// allowed beside others, so that a trailing separator is not a fault.
func (p *parser) document(doc *yaml.Node) {
	root := doc
	if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
		root = root.Content[0]
	}
	m, ok := p.mapping(root, "", "budgets")
	if !ok {
		return
	}
	list := m.nodes["budgets"]
	if list == nil {
		p.fail(root, "", "has no budgets list")
		return
	}
	list = resolve(list)
	if list.Kind != yaml.SequenceNode {
		p.fail(list, "budgets", "must be a list")
		return
	}
	for i, n := range list.Content {
		if len(p.budgets) >= MaxBudgets {
			p.fail(n, "budgets", "are more than %d", MaxBudgets)
			return
		}
		p.budget(fmt.Sprintf("budgets[%d]", i), n)
	}
}
