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
	CSV   Format = "csv"
)

// formatFlag is a flag's value among those that its command can write.
type formatFlag struct {
	value   *Format
	allowed []string
}

func (f formatFlag) String() string {
	if f.value == nil {
		return ""
	}
	return string(*f.value)
}

// Type is what the help calls the value.
func (formatFlag) Type() string { return "format" }

// Set implements pflag.Value.
func (f formatFlag) Set(s string) error {
	if !slices.Contains(f.allowed, s) {
		return fmt.Errorf("%q is not one of %s", s, strings.Join(f.allowed, ", "))
	}
	*f.value = Format(s)
	return nil
}

// OutputFlag adds -o to cmd, with its formats; table, json and yaml if none
// are given.
func OutputFlag(cmd *cobra.Command, formats ...Format) *Format {
	if len(formats) == 0 {
		formats = []Format{Table, JSON, YAML}
	}
	flag := formatFlag{value: new(Format)}
	*flag.value = Table
	for _, f := range formats {
		flag.allowed = append(flag.allowed, string(f))
	}
	last := len(flag.allowed) - 1
	cmd.Flags().VarP(flag, "output", "o", "output as "+strings.Join(flag.allowed[:last], ", ")+" or "+flag.allowed[last])
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(flag.allowed, cobra.ShellCompDirectiveNoFileComp))
	return flag.value
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
