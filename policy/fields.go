package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/ration-dev/ration/lease"
)

// Errors are all the faults found in one budget, in the order of its fields.
// Never empty when returned as an error.
type Errors []*lease.Error

func (e Errors) Error() string {
	lines := make([]string, len(e))
	for i, one := range e {
		lines[i] = one.Error()
	}
	return strings.Join(lines, "\n")
}

// Unwrap lets errors.As and lease.CodeOf find the first fault.
func (e Errors) Unwrap() []error {
	all := make([]error, len(e))
	for i, one := range e {
		all[i] = one
	}
	return all
}

// AllErrors returns the faults in err: an Errors' own, a lone *lease.Error, or
// err itself as an Internal one.
func AllErrors(err error) Errors {
	if err == nil {
		return nil
	}
	if all, ok := errors.AsType[Errors](err); ok {
		return all
	}
	if one, ok := errors.AsType[*lease.Error](err); ok {
		return Errors{one}
	}
	return Errors{lease.Errorf(lease.Internal, "", "%v", err)}
}

// faults collects errors while a budget is checked.
type faults struct{ all Errors }

func (f *faults) add(field, format string, args ...any) {
	f.all = append(f.all, lease.Errorf(lease.Invalid, field, format, args...))
}

// err returns nil when nothing was added.
func (f *faults) err() error {
	if len(f.all) == 0 {
		return nil
	}
	return f.all
}

// Field joins path elements as in regions.us.weight. An element that is not a
// plain word is quoted in brackets, so that a path is never ambiguous.
func Field(elements ...string) string {
	var b strings.Builder
	for _, e := range elements {
		if !plain(e) {
			b.WriteString("[" + strconv.Quote(e) + "]")
			continue
		}
		if b.Len() > 0 {
			b.WriteByte('.')
		}
		b.WriteString(e)
	}
	return b.String()
}

func plain(s string) bool {
	for _, r := range s {
		word := r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !word {
			return false
		}
	}
	return s != ""
}

// CheckName returns why s cannot name a budget, region, or descriptor, or "".
// Every character is allowed but NUL, which no database text holds.
func CheckName(s string) string {
	switch {
	case s == "":
		return "must not be empty"
	case len(s) > MaxName:
		return fmt.Sprintf("has %d bytes, at most %d are allowed", len(s), MaxName)
	case !utf8.ValidString(s):
		return "is not valid UTF-8"
	case strings.ContainsRune(s, 0):
		return "contains a NUL character"
	}
	return ""
}

func (f *faults) name(field, s string) {
	if why := CheckName(s); why != "" {
		f.add(field, "%s", why)
	}
}

func (f *faults) tokens(field string, n lease.Tokens) {
	if n < 0 || n > lease.MaxTokens {
		f.add(field, "is %d tokens, must be 0 to %d", n, lease.MaxTokens)
	}
}
