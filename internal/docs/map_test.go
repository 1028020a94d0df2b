package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ARCHITECTURE's map names every package, and nothing that is not there. A
// command that stands in its package's folder counts as the package. Seen to
// catch: a package without a line, a line whose package had moved.
func TestTheMapNamesEveryPackage(t *testing.T) {
	named := onTheMap(t)
	for path := range named {
		if info, err := os.Stat(filepath.Join(root, path)); err != nil || !info.IsDir() {
			t.Errorf("ARCHITECTURE.md's map names %s, which is no folder", path)
		}
	}
	for _, path := range packages(t) {
		if !named[path] {
			t.Errorf("ARCHITECTURE.md's map lacks %s", path)
		}
	}
}

// onTheMap reads the folders that the map names: an entry at a line's start,
// and below it, indented by two, more that are inside it.
func onTheMap(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(root + "/ARCHITECTURE.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "## The map\n\n```\n")
	block, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("ARCHITECTURE.md has no map")
	}
	entry := regexp.MustCompile(`^( *)((?:[\w./-]+ )*[\w./-]+) {2,}\S`)
	named := map[string]bool{}
	above := ""
	for line := range strings.Lines(block) {
		m := entry.FindStringSubmatch(strings.TrimRight(line, "\n"))
		if m == nil {
			t.Errorf("the map's line %q is no entry", line)
			continue
		}
		for _, name := range strings.Fields(m[2]) {
			path := strings.TrimSuffix(name, "/")
			if m[1] == "" {
				above = path
			} else {
				path = above + "/" + path
			}
			named[path] = true
		}
	}
	return named
}

// packages lists the module's folders that have Go files, or whose cmd has.
func packages(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
		switch {
		case err != nil || !e.IsDir() || path == root:
			return err
		case strings.HasPrefix(e.Name(), "."), e.Name() == "testdata", e.Name() == "bin", e.Name() == "tools":
			return filepath.SkipDir
		}
		files, err := filepath.Glob(filepath.Join(path, "*.go"))
		if folder, _ := filepath.Rel(root, path); err == nil && len(files) > 0 {
			found = append(found, strings.TrimSuffix(folder, "/cmd"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
