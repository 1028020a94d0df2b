package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
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
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, MaxSize+1))
	if err != nil {
		return Source{}, err
	}
	return Source{Name: path, Data: data}, nil
}

// Problem is one fault and where it stands.
type Problem = yamlfile.Problem

// Errors has every problem of the files that were read together, in the order
// of files and lines.
type Errors = yamlfile.Errors

// Parse is Load for texts that were already read.
func Parse(d policy.Deployment, sources ...Source) ([]policy.Budget, error) {
	p := &parser{List: List{Reader: &yamlfile.Reader{}, Deployment: d}}
	var all Errors
	for _, s := range sources {
		p.File, p.Problems = s.Name, nil
		p.source(s.Data)
		p.Problems.Sort()
		all = append(all, p.Problems...)
	}
	if len(all) > 0 {
		return nil, all
	}
	return p.budgets, nil
}

// parser collects the budgets of all sources.
type parser struct {
	List
	budgets []policy.Budget
}

// source reads every document of one file.
func (p *parser) source(data []byte) {
	if len(data) > MaxSize {
		p.Fail(nil, "", "is larger than %d bytes", MaxSize)
		return
	}
	documents := p.Documents(data)
	for _, root := range documents {
		p.document(root)
	}
	if len(documents) == 0 && len(p.Problems) == 0 {
		p.Fail(nil, "", "is empty: write a budgets list")
	}
}

// document reads the budgets list of one document. An empty document is
// allowed beside others, so that a trailing separator is not a fault.
func (p *parser) document(root *yaml.Node) {
	m, ok := p.Mapping(root, "", "budgets")
	if !ok {
		return
	}
	list := m.Nodes["budgets"]
	if list == nil {
		p.Fail(root, "", "has no budgets list")
		return
	}
	list = yamlfile.Resolve(list)
	if list.Kind != yaml.SequenceNode {
		p.Fail(list, "budgets", "must be a list")
		return
	}
	for i, n := range list.Content {
		if len(p.budgets) >= MaxBudgets {
			p.Fail(n, "budgets", "are more than %d", MaxBudgets)
			return
		}
		if _, b, ok := p.Budget(fmt.Sprintf("budgets[%d]", i), n); ok {
			p.budgets = append(p.budgets, b)
		}
	}
}
