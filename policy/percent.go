package policy

import (
	"fmt"
	"strconv"
	"strings"
)

// ParsePercent reads a percentage with at most three decimals, as a whole
// number of thousandths of a percent.
func ParsePercent(s string) (int64, error) {
	whole, decimals, _ := strings.Cut(s, ".")
	n, err := strconv.ParseUint(whole, 10, 32)
	if err != nil || len(decimals) > 3 || strings.HasSuffix(s, ".") {
		return 0, badPercent(s)
	}
	milli := int64(n) * 1000
	if decimals != "" {
		part, err := strconv.ParseUint((decimals + "00")[:3], 10, 32)
		if err != nil {
			return 0, badPercent(s)
		}
		milli += int64(part)
	}
	return milli, nil
}

func badPercent(s string) error {
	return fmt.Errorf("%q is not a percentage: write 5 or 2.5, with at most three decimals", s)
}

// FormatPercent writes thousandths of a percent as ParsePercent reads them.
func FormatPercent(milli int64) string {
	if milli < 0 {
		return strconv.FormatFloat(float64(milli)/1000, 'f', -1, 64)
	}
	s := fmt.Sprintf("%d.%03d", milli/1000, milli%1000)
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}
