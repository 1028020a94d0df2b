// Package yamlfile reads YAML that people write: fields by name, with every
// fault of every file reported at once, each with its file, line and column.
// Fields that nobody knows are faults too, with the one that was probably meant.
package yamlfile

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/ration-dev/ration/lease"
)

// maxReported is how many problems an error names before it only counts them.
const maxReported = 20

// Problem is one fault and where it stands.
type Problem struct {
	File string
	// Line and Column count from 1; 0 when the fault is the whole file's.
	Line, Column int
	// Field is the path within what is read; "" when no field is at fault.
	Field, Reason string
}

func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Field != "" {
		b.WriteString(p.Field + " ")
	}
	b.WriteString(p.Reason)
	return b.String()
}

// Errors has every problem of the files that were read together, in the order
// of files and lines.
type Errors []Problem

func (e Errors) Error() string {
	var b strings.Builder
	for i, p := range e {
		if i == maxReported {
			fmt.Fprintf(&b, "\nand %d more", len(e)-i)
			break
		}
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(p.String())
	}
	return b.String()
}

// Unwrap makes the whole an Invalid lease.Error to those who ask for its code.
func (e Errors) Unwrap() error {
	return lease.Errorf(lease.Invalid, "", "%s", e.Error())
}

// Sort orders one file's problems by line.
func (e Errors) Sort() {
	slices.SortStableFunc(e, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}
