package bench

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	pretty "github.com/jedib0t/go-pretty/v6/table"
)

type rows []Row

func (t *rows) add(r Row) {
	for i := range *t {
		if (*t)[i].Item == r.Item {
			(*t)[i] = r
			return
		}
	}
	*t = append(*t, r)
}

// writer is the table of these rows.
func (t rows) writer() pretty.Writer {
	w := pretty.NewWriter()
	w.AppendHeader(pretty.Row{"what", "ours", "yardstick", "ratio", "goal"})
	for _, r := range t {
		w.AppendRow(pretty.Row{r.Item, r.Ours, r.Yardstick, r.Ratio, r.Goal})
	}
	return w
}

func (t rows) text() string { return t.writer().Render() + "\n" }

// Marks between which a Markdown file has the table.
const (
	markBegin = "<!-- measured -->\n"
	markEnd   = "<!-- /measured -->"
)

var errNoMarks = errors.New("the marks around the table are missing")

// write puts the table and the machine into a Markdown file; "" for none.
func (t rows) write(path string) error {
	if path == "" {
		return nil
	}
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := t.into(string(old))
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

func (t rows) into(text string) (string, error) {
	before, rest, begun := strings.Cut(text, markBegin)
	_, after, ended := strings.Cut(rest, markEnd)
	if !begun || !ended {
		return "", errNoMarks
	}
	return before + markBegin + machine() + "\n\n" + t.writer().RenderMarkdown() + "\n" + markEnd + after, nil
}

func TestRowsReplaceTheirOwnItemOnly(t *testing.T) {
	var all rows
	all.add(Row{Item: "a", Ours: "1"})
	all.add(Row{Item: "b", Ours: "2"})
	all.add(Row{Item: "a", Ours: "3"})
	if len(all) != 2 || all[0].Ours != "3" || all[1].Ours != "2" {
		t.Errorf("%v", all)
	}
}

func TestTheTableIsWrittenBetweenTheMarks(t *testing.T) {
	text, err := rows{{Item: "a|b", Ours: "1"}}.into("head\n" + markBegin + "old\n" + markEnd + "\ntail\n")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "head\n"+markBegin) || !strings.HasSuffix(text, markEnd+"\ntail\n") || strings.Contains(text, "old") {
		t.Errorf("%s", text)
	}
	if !strings.Contains(text, `| a\|b | 1 |`) {
		t.Errorf("the row is not there: %s", text)
	}
	if _, err := (rows{}).into("no marks"); !errors.Is(err, errNoMarks) {
		t.Errorf("without marks: %v", err)
	}
}
