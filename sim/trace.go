package sim

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// MaxBins bounds a trace.
const MaxBins = 5_000_000

// TraceError says which line of a trace is wrong, and why.
type TraceError struct {
	Name   string
	Line   int
	Reason string
}

func (e *TraceError) Error() string { return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Reason) }

// ReadTrace reads lines of time,count. A time is "2006-01-02 15:04:05", RFC
// 3339, or seconds as a number; the first line may be a header, and # begins
// a comment. Times rise; counts are finite and not negative. A gap of more
// than ten times the shortest distance is an error: what happened in it is
// not known. name is for errors, which are *TraceError.
func ReadTrace(name string, r io.Reader) ([]Bin, error) {
	var bins []Bin
	var start, last float64
	shortest := math.Inf(1)
	line := 0
	fail := func(format string, args ...any) ([]Bin, error) {
		return nil, &TraceError{Name: name, Line: line, Reason: fmt.Sprintf(format, args...)}
	}
	scan := bufio.NewScanner(r)
	scan.Buffer(make([]byte, 0, 4096), 1<<16)
	lines := []int{}
	for scan.Scan() {
		line++
		text := strings.TrimSpace(scan.Text())
		if text == "" || strings.HasPrefix(text, "#") {
			continue
		}
		when, count, ok := strings.Cut(text, ",")
		if !ok {
			return fail("%q is not time,count", text)
		}
		at, err := parseInstant(strings.TrimSpace(when))
		if err != nil {
			if len(bins) == 0 && line == 1 {
				continue // a header
			}
			return fail("%q is not a time: write 2006-01-02 15:04:05, RFC 3339, or seconds", when)
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(count), 64)
		switch {
		case err != nil || math.IsNaN(n) || math.IsInf(n, 0):
			return fail("%q is not a count", count)
		case n < 0:
			return fail("the count %v is negative", n)
		case n > 1e12:
			return fail("the count %v is above 1e12", n)
		case len(bins) > 0 && at <= last:
			return fail("the time %s does not come after the one before", when)
		case len(bins) == MaxBins:
			return fail("more than %d lines", MaxBins)
		}
		if len(bins) == 0 {
			start = at
		} else {
			shortest = min(shortest, at-last)
		}
		last = at
		bins = append(bins, Bin{At: time.Duration(math.Round((at-start)*1e6)) * time.Microsecond, Count: n})
		lines = append(lines, line)
	}
	if err := scan.Err(); err != nil {
		return fail("%v", err)
	}
	if len(bins) < 2 {
		return fail("has %d counts, at least 2 are needed to know how long one lasts", len(bins))
	}
	for i := 1; i < len(bins); i++ {
		if gap := (bins[i].At - bins[i-1].At).Seconds(); gap > 10*shortest {
			line = lines[i]
			return fail("a gap of %v before this line: write counts of 0 where nothing came", bins[i].At-bins[i-1].At)
		}
	}
	return bins, nil
}

// parseInstant returns seconds.
func parseInstant(s string) (float64, error) {
	for _, layout := range [...]string{time.DateTime, time.RFC3339Nano} {
		if t, err := time.Parse(layout, s); err == nil {
			return float64(t.UnixMicro()) / 1e6, nil
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(math.Abs(n) <= 1e11) {
		return 0, fmt.Errorf("%q is not a time", s)
	}
	return n, nil
}
