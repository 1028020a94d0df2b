package scenario

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/internal/yamlfile"
)

// Bounds of what is read.
const (
	// MaxSize is the largest scenario file, in bytes.
	MaxSize = 1 << 20
	// maxExtends is how many files may extend one another.
	maxExtends = 8
)

// Load reads a scenario file, and what it extends and replays. Each setting
// replaces a field of the file: a path that begins with a top-level field as
// in topology.commit or workloads.NAME.rate, or else a field of every budget,
// as in lease.ttl or limit.burst. The error is a yamlfile.Errors, or says why
// the file itself could not be read.
func Load(path string, settings ...Setting) (*Scenario, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, err
	}
	return parse(path, data, settings...)
}

// Parse is Load for a text that was already read. Other files are found
// relative to the path.
func Parse(path string, data []byte, settings ...Setting) (*Scenario, error) {
	return parse(path, data, settings...)
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, MaxSize+1))
}

func parse(path string, data []byte, settings ...Setting) (*Scenario, error) {
	r := &reader{Reader: &yamlfile.Reader{File: path}, scenario: &Scenario{File: path, Sweep: settings}}
	root := r.tree(path, data, nil)
	if root != nil {
		m := &merger{r.Reader}
		for _, s := range settings {
			root = m.set(root, s)
		}
		r.read(root)
	}
	if len(r.Problems) > 0 {
		r.Problems.Sort()
		return nil, r.Problems
	}
	return r.scenario, nil
}

// tree reads a file's one document over that of the file it extends; nil if
// there is a fault.
func (r *reader) tree(path string, data []byte, chain []string) *yaml.Node {
	r.File = path
	if len(data) > MaxSize {
		r.Fail(nil, "", "is larger than %d bytes", MaxSize)
		return nil
	}
	roots := r.Documents(data)
	if len(r.Problems) > 0 {
		return nil
	}
	if len(roots) != 1 {
		r.Fail(nil, "", "has %d documents, must be one", len(roots))
		return nil
	}
	root := roots[0]
	r.Adopt(root)
	all := pairs(root, 0)
	at := index(all, "extends")
	if at < 0 {
		return root
	}
	base := r.base(path, all[at+1], append(chain, filepath.Clean(path)))
	r.File = path
	if base == nil {
		return nil
	}
	return extended(&merger{r.Reader}, base, root)
}

// base reads the file that another extends.
func (r *reader) base(path string, n *yaml.Node, chain []string) *yaml.Node {
	n = yamlfile.Resolve(n)
	if n.Kind != yaml.ScalarNode || n.Value == "" {
		r.Fail(n, "extends", "must be the path of another scenario file, not %s", yamlfile.KindOf(n))
		return nil
	}
	other := beside(path, n.Value)
	if slices.Contains(chain, filepath.Clean(other)) || len(chain) > maxExtends {
		r.Fail(n, "extends", "goes round in a circle, or over more than %d files", maxExtends)
		return nil
	}
	data, err := readFile(other)
	if err != nil {
		r.Fail(n, "extends", "%v", err)
		return nil
	}
	return r.tree(other, data, chain)
}

// beside is a path as another file writes it.
func beside(file, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(filepath.Dir(file), path)
}
