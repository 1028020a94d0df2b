package acceptance

import (
	"testing"
	"time"
)

func at(ms ...int) (ds []decision) {
	for _, m := range ms {
		t := time.Duration(m) * time.Millisecond
		ds = append(ds, decision{asked: t, answered: t})
	}
	return ds
}

// The measurement itself must see an excess, or the run proves nothing.
func TestExcessIsSeen(t *testing.T) {
	b := bucket{rate: 2, burst: 3}
	for _, tc := range []struct {
		name     string
		ds       []decision
		in1s     float64
		anywhere float64
	}{
		{"the full burst", at(0, 0, 0), 3 - 5, 0},
		{"one more at once", at(0, 0, 0, 0), 4 - 5, 1},
		{"six in a second", at(0, 0, 0, 300, 600, 900), 6 - 5, 1.2},
		{"a second apart is another window", at(0, 0, 0, 1000, 1000), 3 - 5, 0},
	} {
		if got := largestExcess(tc.ds, b, time.Second); got != tc.in1s {
			t.Errorf("%s: within 1s %v, want %v", tc.name, got, tc.in1s)
		}
		if got := worstQueue(tc.ds, b); got < tc.anywhere-1e-9 || got > tc.anywhere+1e-9 {
			t.Errorf("%s: in any window %v, want %v", tc.name, got, tc.anywhere)
		}
	}
}

func TestUtilisationComparesWithTheIdeal(t *testing.T) {
	b := bucket{rate: 2, burst: 2}
	ds := at(0, 0, 0, 500, 900)
	for i := range ds {
		if i > 1 {
			ds[i].outcome = denied
		}
	}
	// The ideal bucket admits the two at 0 and the one at 500.
	ratio, seconds := utilisation(ds, b, time.Second)
	if seconds != 1 || ratio != 2.0/3 {
		t.Errorf("utilisation %v over %d s, want 2/3 over 1 s", ratio, seconds)
	}
}

func TestTraceShiftsBetweenRegions(t *testing.T) {
	trace, err := ReadTrace("../../testdata/worldcup98-three-days.csv")
	if err != nil {
		t.Fatal(err)
	}
	if len(trace) != 4320 {
		t.Fatalf("%d minutes", len(trace))
	}
	first, later := trace.Shares(0, 3), trace.Shares(8*60, 3)
	for i := range 2 {
		if first[i+1] != later[i] {
			t.Errorf("eight hours later region %d has %v, want what region %d had: %v", i, later[i], i+1, first[i+1])
		}
	}
}
