// Package acceptance drives the whole system, as its users would run it, with
// a load that shifts between regions, and measures what was promised. Its one
// test is behind the build tag acceptance: `make acceptance`.
package acceptance

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
)

// Trace is a count of requests per minute.
type Trace []float64

// ReadTrace reads a CSV of minute and count with a header line.
func ReadTrace(path string) (Trace, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	r := csv.NewReader(f)
	r.FieldsPerRecord = 2
	if _, err := r.Read(); err != nil {
		return nil, fmt.Errorf("%s: header: %w", path, err)
	}
	var t Trace
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return t, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		n, err := strconv.ParseFloat(rec[1], 64)
		if err != nil || n < 0 {
			line, _ := r.FieldPos(1)
			return nil, fmt.Errorf("%s:%d: count %q is not a number of at least 0", path, line, rec[1])
		}
		t = append(t, n)
	}
}

// Shares returns, for the minute, what part of mean the load is in each of n
// regions whose clocks are 24/n hours apart: 1 is the trace's mean per minute
// spread evenly over the regions.
func (t Trace) Shares(minute, n int) []float64 {
	var mean float64
	for _, c := range t {
		mean += c
	}
	mean /= float64(len(t))
	shares := make([]float64, n)
	for i := range shares {
		at := (minute + i*24*60/n) % len(t)
		shares[i] = t[at] / mean / float64(n)
	}
	return shares
}
