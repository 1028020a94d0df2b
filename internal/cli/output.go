package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"
)

// Format is the value of an -o flag.
type Format string

// The formats.
const (
	Table Format = "table"
	JSON  Format = "json"
	YAML  Format = "yaml"
)

var formats = []Format{Table, JSON, YAML}

func (f *Format) String() string { return string(*f) }

// Type is what the help calls the value.
func (f *Format) Type() string { return "format" }

// Set implements pflag.Value.
func (f *Format) Set(s string) error {
	if !slices.Contains(formats, Format(s)) {
		return fmt.Errorf("%q is not one of table, json, yaml", s)
	}
	*f = Format(s)
	return nil
}

// OutputFlag adds -o to cmd.
func OutputFlag(cmd *cobra.Command) *Format {
	f := Table
	cmd.Flags().VarP(&f, "output", "o", "output as table, json or yaml")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions([]string{"table", "json", "yaml"}, cobra.ShellCompDirectiveNoFileComp))
	return &f
}

// Print writes value as JSON or YAML, or the table.
func Print(w io.Writer, f Format, value any, tabular func(io.Writer) error) error {
	switch f {
	case JSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(value)
	case YAML:
		out, err := yaml.Dump(value, yaml.WithLineWidth(-1))
		if err != nil {
			return err
		}
		_, err = w.Write(out)
		return err
	}
	return tabular(w)
}

// WriteTable writes rows under a header. Numbers align right by themselves.
func WriteTable(w io.Writer, header []string, rows [][]any) error {
	t := table.NewWriter()
	style := table.StyleDefault
	style.Options = table.OptionsNoBordersAndSeparators
	style.Box.PaddingLeft, style.Box.PaddingRight = "", "  "
	t.SetStyle(style)
	head := make(table.Row, len(header))
	for i, h := range header {
		head[i] = h
	}
	t.AppendHeader(head)
	for _, r := range rows {
		for i, v := range r {
			if s, ok := v.(string); ok {
				r[i] = Printable(s)
			}
		}
		t.AppendRow(r)
	}
	for line := range strings.Lines(t.Render() + "\n") {
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// Printable makes a name harmless to a terminal: control characters are
// quoted.
func Printable(s string) string {
	for _, r := range s {
		if r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return fmt.Sprintf("%q", s)
		}
	}
	return s
}

// Terminal reports whether w is a terminal.
func Terminal(w any) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Colour reports whether to colour what is written to w.
func Colour(w io.Writer, lookup func(string) (string, bool)) bool {
	if v, ok := lookup("NO_COLOR"); ok && v != "" {
		return false
	}
	return Terminal(w)
}
