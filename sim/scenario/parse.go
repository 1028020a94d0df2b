package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/ration-dev/ration/internal/yamlfile"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/sim"
)

// span parses a duration within bounds.
func span(least, most time.Duration) func(string) (time.Duration, error) {
	return func(text string) (time.Duration, error) {
		sign := time.Duration(1)
		if rest, ok := strings.CutPrefix(text, "-"); ok && least < 0 {
			text, sign = rest, -1
		}
		d, err := policy.ParseDuration(text)
		if err != nil {
			return 0, err
		}
		if d *= sign; d < least || d > most {
			return 0, fmt.Errorf("is %s, must be %s to %s", policy.FormatDuration(d), policy.FormatDuration(least), policy.FormatDuration(most))
		}
		return d, nil
	}
}

// count parses a whole number within bounds.
func count(least, most int64) func(string) (int, error) {
	return func(text string) (int, error) {
		n, err := strconv.ParseInt(strings.ReplaceAll(text, "_", ""), 10, 64)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("is %q, must be a whole number from %d to %d", yamlfile.Clip(text), least, most)
		}
		return int(n), nil
	}
}

// number parses a decimal within bounds.
func number(least, most float64) func(string) (float64, error) {
	return func(text string) (float64, error) {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || x < least || x > most {
			return 0, fmt.Errorf("is %q, must be a number from %v to %v", yamlfile.Clip(text), least, most)
		}
		return x, nil
	}
}

// portion parses a part of the whole: "5%" or "0.05".
func portion(text string) (float64, error) {
	scale, digits := 1.0, text
	if rest, ok := strings.CutSuffix(text, "%"); ok {
		scale, digits = 100, strings.TrimSpace(rest)
	}
	x, err := strconv.ParseFloat(digits, 64)
	if x /= scale; err != nil || math.IsNaN(x) || x < 0 || x > 1 {
		return 0, fmt.Errorf("is %q, must be a part from 0%% to 100%%", yamlfile.Clip(text))
	}
	return x, nil
}

// perSecond parses a rate of requests, which must not be absurd.
func perSecond(text string) (float64, error) {
	r, err := policy.ParseRate(text)
	if err != nil {
		return 0, err
	}
	x := float64(r.Tokens) / r.Per.Seconds()
	if r.Tokens == 0 {
		x = 0
	}
	if x > maxRate {
		return 0, fmt.Errorf("is %q, more than %.0f requests a second", text, float64(maxRate))
	}
	return x, nil
}

// someRate is perSecond for where no requests at all would mean nothing.
func someRate(text string) (float64, error) {
	x, err := perSecond(text)
	if err == nil && x == 0 {
		err = fmt.Errorf("must be above 0")
	}
	return x, err
}

// maxRate is the most requests a second of one workload.
const maxRate = 1e8

func truth(text string) (bool, error) {
	switch text {
	case "true", "yes":
		return true, nil
	case "false", "no":
		return false, nil
	}
	return false, fmt.Errorf("is %q, must be true or false", yamlfile.Clip(text))
}

func checks(text string) (sim.Checks, error) {
	switch text {
	case "all":
		return sim.CheckAll, nil
	case "some":
		return sim.CheckSome, nil
	case "none":
		return sim.CheckNone, nil
	}
	return 0, fmt.Errorf("is %q, must be all, some or none", yamlfile.Clip(text))
}

// strategyNames are the words for strategies, in their order side by side.
var strategyNames = []struct {
	name     string
	strategy sim.Strategy
}{
	{"as_written", sim.AsWritten},
	{"static", sim.Static},
	{"independent", sim.Independent},
	{"dynamic", sim.Dynamic},
	{"ideal", sim.Central},
	{"writeback", sim.CountLocally},
}

// StrategyName is the word for a strategy in files and on the command line.
func StrategyName(s sim.Strategy) string {
	for _, n := range strategyNames {
		if n.strategy == s {
			return n.name
		}
	}
	return string(s)
}

// StrategyWords lists the words.
func StrategyWords() []string {
	words := make([]string, len(strategyNames))
	for i, n := range strategyNames {
		words[i] = n.name
	}
	return words
}

// ParseStrategy reads a strategy's word.
func ParseStrategy(word string) (sim.Strategy, error) {
	for _, n := range strategyNames {
		if n.name == word {
			return n.strategy, nil
		}
	}
	return "", fmt.Errorf("there is no strategy %q%s", yamlfile.Clip(word), yamlfile.Suggestion(word, StrategyWords()))
}
