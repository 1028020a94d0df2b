package errorbound

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Target is a bound that is wanted: at most MilliPercent thousandths of a
// percent of the contract within Within or, if that is 0, at most Tokens.
type Target struct {
	Tokens       lease.Tokens  `json:"tokens,omitempty" yaml:"tokens,omitempty"`
	MilliPercent int64         `json:"milli_percent,omitempty" yaml:"milli_percent,omitempty"`
	Within       time.Duration `json:"within" yaml:"within"`
}

// Settings keep a Target.
type Settings struct {
	// Float is the largest that does: a larger one helps throughput and nothing
	// else. 0 for quotas and independent budgets, which take none.
	Float lease.Tokens `json:"float" yaml:"float"`
	// Bound is what holds with it, within the target's window.
	Bound Bound `json:"bound" yaml:"bound"`
	// TTL and ShareTTL are the lifetimes of leases, Guard what the ledger waits
	// beyond the longer one that the budget uses. They cost nothing in the bound
	// but in the causes that name them.
	TTL      time.Duration `json:"ttl" yaml:"ttl"`
	ShareTTL time.Duration `json:"share_ttl" yaml:"share_ttl"`
	Guard    time.Duration `json:"guard" yaml:"guard"`
	// Heartbeat is how often a region in use reports when nothing else makes it.
	Heartbeat time.Duration `json:"heartbeat" yaml:"heartbeat"`
	// Inventory is what the pool and all regions hold together; Prefetch the
	// most that one process takes of it.
	Inventory lease.Tokens `json:"inventory" yaml:"inventory"`
	Prefetch  lease.Tokens `json:"prefetch" yaml:"prefetch"`
	// Kind is what the dynamic plan uses for the whole rate in the farthest
	// region: lumps or paced shares; shares for static and independent budgets.
	Kind string `json:"kind" yaml:"kind"`
}

// Unfit says why no settings keep a target.
type Unfit struct {
	Allowed lease.Tokens
	// Bound is what holds with the smallest float.
	Bound Bound
	// Alone are the causes that exceed the target each by itself, largest
	// first; where there are none, all that are not 0 exceed it together.
	Alone []Cause
}

func (u *Unfit) Error() string {
	causes, how := u.Alone, "alone exceeds"
	if len(causes) == 0 {
		causes, how = largestFirst(u.Bound.Causes), "is part of what exceeds"
	}
	var b strings.Builder
	fmt.Fprintf(&b, "no settings keep the bound within %d tokens: with no float it is %d", u.Allowed, u.Bound.Total)
	for _, c := range causes {
		if c.Tokens > 0 {
			fmt.Fprintf(&b, "; %s (%d) %s it: %s", c.Name, c.Tokens, how, c.Zero)
		}
	}
	return b.String()
}

// Fit finds the settings with which the budget keeps the target: the inverse
// of Over. The budget's own float is ignored. The error is an *Unfit, or a
// *lease.Error that names what is out of bounds.
func Fit(b policy.Budget, d Deployment, t Target) (Settings, error) {
	m, err := check(b, d, t.Within)
	if err != nil {
		return Settings{}, err
	}
	allowed, err := t.allowed(m)
	if err != nil {
		return Settings{}, err
	}
	with := func(float lease.Tokens) *model {
		b.Float = float
		return newModel(b, m.deploy, m.window)
	}
	at := func(float lease.Tokens) Bound { f := with(float); return bound(f, f, f.noCut()) }
	if none := at(0); none.Total > allowed {
		return Settings{}, &Unfit{Allowed: allowed, Bound: none, Alone: alone(none, allowed)}
	}
	float := lease.Tokens(0)
	if !m.quota && b.Strategy != policy.Independent {
		float = largest(min(allowed, lease.MaxTokens-m.burst), func(f lease.Tokens) bool { return at(f).Total <= allowed })
	}
	return with(float).settings(at(float)), nil
}

func (t Target) allowed(m *model) (lease.Tokens, error) {
	switch {
	case t.Tokens < 0 || t.Tokens > lease.MaxTokens:
		return 0, lease.Errorf(lease.Invalid, "tokens", "is %d, must be 0 to %d", t.Tokens, lease.MaxTokens)
	case t.MilliPercent < 0 || t.MilliPercent > 100_000:
		return 0, lease.Errorf(lease.Invalid, "percent", "is %s, must be 0 to 100", policy.FormatPercent(t.MilliPercent))
	case t.Tokens > 0 && t.MilliPercent > 0:
		return 0, lease.Errorf(lease.Invalid, "percent", "is given beside tokens: one of the two is the target")
	case t.MilliPercent > 0:
		return floor(part(t.MilliPercent, m.burst, m.rate, m.window)), nil
	}
	return t.Tokens, nil
}

// largest is the largest n in [0, high] that keeps; 0 does, and what keeps is
// downward closed, since a bound rises with the float.
func largest(high lease.Tokens, keeps func(lease.Tokens) bool) lease.Tokens {
	low := lease.Tokens(0)
	for low < high {
		middle := low + (high-low+1)/2
		if keeps(middle) {
			low = middle
		} else {
			high = middle - 1
		}
	}
	return low
}

func alone(b Bound, allowed lease.Tokens) []Cause {
	var list []Cause
	for _, c := range b.Causes {
		if c.Tokens > allowed {
			list = append(list, c)
		}
	}
	return largestFirst(list)
}

func largestFirst(causes []Cause) []Cause {
	sorted := slices.Clone(causes)
	slices.SortStableFunc(sorted, func(a, b Cause) int {
		switch {
		case a.Tokens > b.Tokens:
			return -1
		case a.Tokens < b.Tokens:
			return 1
		}
		return 0
	})
	return sorted
}

func names(causes []Cause) []Name {
	list := make([]Name, len(causes))
	for i, c := range causes {
		list[i] = c.Name
	}
	return list
}

func (m *model) settings(b Bound) Settings {
	held, _ := m.prefetch()
	ttl := m.budget.TTL
	if m.hasStanding() {
		ttl = max(ttl, m.budget.ShareTTL)
	}
	return Settings{
		Float: m.budget.Float, Bound: b,
		TTL: m.budget.TTL, ShareTTL: m.budget.ShareTTL, Guard: m.deploy.Clocks.Guard(ttl),
		Heartbeat: m.heartbeat(), Inventory: ceil(m.ceiling), Prefetch: held, Kind: m.kind(),
	}
}
