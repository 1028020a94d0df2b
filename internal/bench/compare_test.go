package bench

import (
	"fmt"
	"slices"
	"strconv"
	"testing"
)

// rounds is how often ours and the yardstick are measured in turn, at least.
const rounds = 5

// compared has the medians of what both reached and of the rounds' ratios.
// That is not the ratio of the medians: a round's two measurements shared
// whatever else the machine did.
type compared struct{ Ours, Yardstick, Ratio float64 }

// compare measures ours and the yardstick in turn, n times, and swaps who goes
// first from round to round. Both return what they reached in the same unit.
func compare(n int, ours, yardstick func() float64) compared {
	var all [3][]float64
	for i := range n {
		var a, b float64
		if i%2 == 0 {
			a = ours()
			b = yardstick()
		} else {
			b = yardstick()
			a = ours()
		}
		all[0], all[1], all[2] = append(all[0], a), append(all[1], b), append(all[2], a/b)
	}
	return compared{median(all[0]), median(all[1]), median(all[2])}
}

// median is the middle one, or the mean of the two; values is sorted by it and
// not empty.
func median(values []float64) float64 {
	slices.Sort(values)
	half := len(values) / 2
	if len(values)%2 == 1 {
		return values[half]
	}
	return (values[half-1] + values[half]) / 2
}

// count writes a number with three significant digits and thousands apart.
func count(x float64) string {
	if x < 100 {
		return strconv.FormatFloat(x, 'g', 3, 64)
	}
	digits := strconv.Itoa(int(x + 0.5))
	out := digits[:(len(digits)-1)%3+1]
	for rest := digits[len(out):]; rest != ""; rest = rest[3:] {
		out += "," + rest[:3]
	}
	return out
}

func perSecond(x float64) string { return count(x) + "/s" }

func ratio(x float64) string { return fmt.Sprintf("%.2f", x) }

func TestCompareTakesTurnsAndMedians(t *testing.T) {
	var order string
	a, b := []float64{1, 9, 2, 3, 100}, []float64{10, 10, 20, 10, 10}
	got := compare(5,
		func() float64 { order += "a"; v := a[0]; a = a[1:]; return v },
		func() float64 { order += "b"; v := b[0]; b = b[1:]; return v })
	if want := (compared{3, 10, 0.3}); got != want || order != "abbaabbaab" {
		t.Errorf("%+v in the order %s", got, order)
	}
	if m := median([]float64{4, 1, 3, 2}); m != 2.5 {
		t.Errorf("the median of four: %v", m)
	}
}

func TestCountsAreReadable(t *testing.T) {
	for x, want := range map[float64]string{0: "0", 0.1234: "0.123", 99.5: "99.5", 100: "100", 999.6: "1,000", 55900: "55,900", 1234567: "1,234,567"} {
		if got := count(x); got != want {
			t.Errorf("%v: %q, want %q", x, got, want)
		}
	}
}
