package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
)

const day = 24 * time.Hour

// units are the words that a rate's period may be written as.
func unit(word string) (time.Duration, bool) {
	switch word {
	case "us":
		return time.Microsecond, true
	case "ms":
		return time.Millisecond, true
	case "s", "sec", "second":
		return time.Second, true
	case "m", "min", "minute":
		return time.Minute, true
	case "h", "hour":
		return time.Hour, true
	case "d", "day":
		return day, true
	}
	return 0, false
}

// ParseRate reads tokens per period: "1000/s", "5/min", "20/h", "100/500ms".
// The period is a unit (us, ms, s, min, h, day) or a duration.
func ParseRate(s string) (lease.Rate, error) {
	count, per, found := strings.Cut(s, "/")
	if !found {
		return lease.Rate{}, fmt.Errorf("%q is not a rate: write tokens per period, as in 1000/s or 5/min", s)
	}
	n, err := ParseTokens(strings.TrimSpace(count))
	if err != nil {
		return lease.Rate{}, err
	}
	per = strings.TrimSpace(per)
	period, ok := unit(per)
	if !ok {
		if period, err = ParseDuration(per); err != nil {
			return lease.Rate{}, fmt.Errorf("%q is not a period: write s, min, h, day, or a duration such as 500ms", per)
		}
	}
	r := lease.Rate{Tokens: n, Per: period}
	if why := checkRate(r); why != "" {
		return lease.Rate{}, fmt.Errorf("%q %s", s, why)
	}
	return canonical(r), nil
}

// FormatRate writes r as ParseRate reads it.
func FormatRate(r lease.Rate) string {
	if r.Zero() {
		return "0/s"
	}
	per := FormatDuration(r.Per)
	switch r.Per {
	case time.Second:
		per = "s"
	case time.Minute:
		per = "min"
	case time.Hour:
		per = "h"
	case day:
		per = "day"
	}
	return strconv.FormatInt(int64(r.Tokens), 10) + "/" + per
}

// ParseTokens reads a whole number of tokens, 0 to lease.MaxTokens.
// Underscores may group digits, as in 1_000_000.
func ParseTokens(s string) (lease.Tokens, error) {
	digits := strings.ReplaceAll(s, "_", "")
	n, err := strconv.ParseUint(digits, 10, 63)
	if err != nil || s[0] == '_' || s[len(s)-1] == '_' {
		return 0, fmt.Errorf("%q is not a whole number of tokens from 0 to %d", s, lease.MaxTokens)
	}
	if lease.Tokens(n) > lease.MaxTokens {
		return 0, fmt.Errorf("%s tokens are too many, at most %d are allowed", digits, lease.MaxTokens)
	}
	return lease.Tokens(n), nil
}

// ParseDuration reads a Go duration, or whole days as in 7d. It must be a
// whole number of microseconds.
func ParseDuration(s string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, fmt.Errorf("%q is not a duration: write 200ms, 10s, 5m, 1h or 7d", s)
		}
		return time.Duration(n) * day, nil
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return 0, fmt.Errorf("%q is not a duration: write 200ms, 10s, 5m, 1h or 7d", s)
	}
	if d%time.Microsecond != 0 {
		return 0, fmt.Errorf("%q is not a whole number of microseconds", s)
	}
	return d, nil
}

// FormatDuration writes d shortly: 1h instead of 1h0m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// checkRate returns why r cannot be a rate, or "". A rate of no tokens needs
// no period.
func checkRate(r lease.Rate) string {
	switch {
	case r.Tokens < 0 || r.Tokens > lease.MaxTokens:
		return fmt.Sprintf("has %d tokens, must be 0 to %d", r.Tokens, lease.MaxTokens)
	case r.Tokens == 0 && r.Per == 0:
		return ""
	case r.Per < time.Microsecond || r.Per > lease.MaxPeriod:
		return fmt.Sprintf("has a period of %v, must be 1us to 31d", r.Per)
	case r.Per%time.Microsecond != 0:
		return fmt.Sprintf("has a period of %v, must be whole microseconds", r.Per)
	}
	return ""
}

func (f *faults) rate(field string, r lease.Rate) {
	if why := checkRate(r); why != "" {
		f.add(field, "%s", why)
	}
}

// canonical gives the rate that mints nothing one form, so that equal budgets
// are equal values.
func canonical(r lease.Rate) lease.Rate {
	if r.Tokens == 0 {
		return lease.Rate{}
	}
	return r
}
