package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What the Makefile names is there: the packages it builds and tests, the
// scripts it runs. Seen to catch: make acceptance running a command that did
// not exist.
func TestTheMakefileNamesWhatIsThere(t *testing.T) {
	text, err := os.ReadFile(root + "/Makefile")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`(?:\./|\bscripts/|\btools/)[\w./-]*`).FindAllString(string(text), -1)
	if len(names) < 5 {
		t.Fatalf("the Makefile names only %q", names)
	}
	for _, name := range names {
		path := strings.TrimRight(strings.TrimSuffix(name, "..."), "/")
		if _, err := os.Stat(filepath.Join(root, path)); err != nil {
			t.Errorf("the Makefile names %s, which is not there", name)
		}
	}
}
