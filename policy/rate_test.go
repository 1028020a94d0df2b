package policy_test

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]lease.Rate{
		"1000/s":      {Tokens: 1000, Per: time.Second},
		"5/min":       {Tokens: 5, Per: time.Minute},
		"20/h":        {Tokens: 20, Per: time.Hour},
		"100/500ms":   {Tokens: 100, Per: 500 * time.Millisecond},
		"1 / day":     {Tokens: 1, Per: 24 * time.Hour},
		"7/31d":       {Tokens: 7, Per: lease.MaxPeriod},
		"1_000_000/s": {Tokens: 1000000, Per: time.Second},
		"0/s":         {},
		"1/us":        {Tokens: 1, Per: time.Microsecond},
		// Above one token per nanosecond, and below one per minute.
		"9007199254740991/us": {Tokens: lease.MaxTokens, Per: time.Microsecond},
		"1/30d":               {Tokens: 1, Per: 30 * 24 * time.Hour},
	} {
		got, err := policy.ParseRate(text)
		if err != nil || got != want {
			t.Errorf("ParseRate(%q) = %+v, %v; want %+v", text, got, err, want)
		}
	}
}

func TestParseRateRefuses(t *testing.T) {
	for _, text := range []string{
		"", "/", "10", "/s", "-1/s", "1.5/s", "1e3/s", "1/", "1/0s", "1/-1s", "1/32d", "1/1ns", "1/1500ns",
		"9007199254740992/s", "99999999999999999999/s", "_1/s", "1_/s", "1/fortnight", "1/s/s", "NaN/s", "1/9999999h",
	} {
		if r, err := policy.ParseRate(text); err == nil {
			t.Errorf("ParseRate(%q) = %+v, want an error", text, r)
		}
	}
}

// Seen to catch: FormatDuration cutting the "0s" of "10s".
func TestFormatRateReadsBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := lease.Rate{
			Tokens: lease.Tokens(rapid.Int64Range(1, int64(lease.MaxTokens)).Draw(t, "tokens")),
			Per:    drawPeriod(t),
		}
		got, err := policy.ParseRate(policy.FormatRate(want))
		if err != nil || got != want {
			t.Fatalf("%+v was written as %q and read as %+v, %v", want, policy.FormatRate(want), got, err)
		}
	})
}

func drawPeriod(t *rapid.T) time.Duration {
	unit := rapid.SampledFrom([]time.Duration{time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "unit")
	most := int64(lease.MaxPeriod / unit)
	return unit * time.Duration(rapid.Int64Range(1, most).Draw(t, "count"))
}

func TestPercentReadsBack(t *testing.T) {
	for text, want := range map[string]int64{"5": 5000, "2.5": 2500, "0.001": 1, "100": 100000, "12.34": 12340} {
		got, err := policy.ParsePercent(text)
		if err != nil || got != want || policy.FormatPercent(got) != text {
			t.Errorf("ParsePercent(%q) = %d, %v, written %q; want %d", text, got, err, policy.FormatPercent(got), want)
		}
	}
	for _, text := range []string{"", ".", "5.", ".5", "-1", "1.2345", "5%", "NaN", "1e2", "1.-2"} {
		if got, err := policy.ParsePercent(text); err == nil {
			t.Errorf("ParsePercent(%q) = %d, want an error", text, got)
		}
	}
}
