package docs

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/ration-dev/ration/lease"
)

// The README explains every reason that an answer may carry, and no other. Seen
// to catch: a word left out, and one that no answer has.
func TestTheReadmeExplainsEveryReason(t *testing.T) {
	words := wordsIn(t, "agent/answer.go", `(?m)^\treason\w+ += "(\w+)"$`)
	for s := lease.PoolEmpty; s.String() != "invalid"; s++ {
		words[s.String()] = true
	}
	want := slices.Sorted(maps.Keys(words))
	table := wordsIn(t, "README.md", "(?m)^\\| (?:\\d{3} )?\\| `(\\w+)` \\|")
	if got := slices.Sorted(maps.Keys(table)); !slices.Equal(got, want) {
		t.Errorf("README.md has the reasons %q\nwant %q", got, want)
	}
}

// wordsIn are what the expression's group matches in a file.
func wordsIn(t *testing.T, path, expression string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(root + "/" + path)
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]bool{}
	for _, m := range regexp.MustCompile(expression).FindAllStringSubmatch(string(text), -1) {
		words[m[1]] = true
	}
	if len(words) == 0 {
		t.Fatalf("%s has no such words", path)
	}
	return words
}
