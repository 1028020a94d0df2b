package agent

import (
	"slices"
	"strings"
	"time"
	"unique"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// terms is a listed budget's policy as an agent keeps it, of very many: its own
// part, and what it shares with all budgets that are limited alike. It is
// replaced, never changed.
type terms struct {
	Name    string
	Version uint64
	// pairs, sorted by key, is what a request must carry.
	pairs []Descriptor
	*limits
}

// limits is what an agent needs of a policy.Budget beside its name; the fields of
// the same name are that one's.
type limits struct {
	Contract policy.Contract
	// most is the largest cost that this region could ever admit: its part of a
	// static limit, or the whole one.
	most lease.Tokens
	*rules
}

// rules are the part of limits that budgets have in common even where each has
// a contract of its own.
type rules struct {
	TTL, ShareTTL time.Duration
	OnFailure     policy.Failure
	OnStoreLoss   policy.OnStoreLoss
	Wait          time.Duration
	Deleted       bool
	// planned is set where this region holds a share whether or not anybody asks,
	// fixed where what it holds does not follow demand.
	planned, fixed bool
	// regions is how many the budget names, 0 for all there are.
	regions int
}

// termsMaker makes terms for one region. The zero value works.
type termsMaker struct {
	region string
	// limits and rules are to be shared, most of those lately made.
	limits map[limits]*limits
	rules  map[rules]*rules
}

// maxKnown bounds what is kept to be shared.
const maxKnown = 1024

func (m *termsMaker) terms(b *policy.Budget) *terms {
	t := &terms{Name: b.Name, Version: b.Version, limits: share(&m.limits, limits{
		Contract: b.Contract, most: most(b, m.region),
		rules: share(&m.rules, rules{
			TTL: b.TTL, ShareTTL: b.ShareTTL,
			OnFailure: b.OnFailure, OnStoreLoss: b.OnStoreLoss, Wait: b.Wait, Deleted: b.Deleted,
			planned: planned(b, m.region), fixed: b.Strategy != policy.Dynamic, regions: len(b.Regions),
		}),
	})}
	if len(b.Match) > 0 {
		t.pairs = make([]Descriptor, 0, len(b.Match))
	}
	for k, v := range b.Match {
		t.pairs = append(t.pairs, Descriptor{Key: unique.Make(k).Value(), Value: v})
	}
	slices.SortFunc(t.pairs, func(a, b Descriptor) int { return strings.Compare(a.Key, b.Key) })
	return t
}

// share returns what equals v, v itself if nothing known does.
func share[T comparable](known *map[T]*T, v T) *T {
	if same := (*known)[v]; same != nil {
		return same
	}
	if *known == nil || len(*known) >= maxKnown {
		*known = map[T]*T{} // forgetting only means to share less
	}
	(*known)[v] = &v
	return &v
}

func byName(a, b *terms) int { return strings.Compare(a.Name, b.Name) }

// place is where a name stands, or would stand, in a list sorted by name.
func place(list []*terms, name string) (i int, found bool) {
	return slices.BinarySearchFunc(list, name, func(t *terms, name string) int { return strings.Compare(t.Name, name) })
}

// find returns nil for a name that is not in the sorted list.
func find(list []*terms, name string) *terms {
	if i, found := place(list, name); found {
		return list[i]
	}
	return nil
}

// merged has both sorted lists, with what is new in place of what has its name.
func merged(old, renewed []*terms) []*terms {
	all := make([]*terms, 0, len(old)+len(renewed))
	for _, t := range renewed {
		i, found := place(old, t.Name)
		all = append(append(all, old[:i]...), t)
		if old = old[i:]; found {
			old = old[1:]
		}
	}
	return append(all, old...)
}

// most is the largest cost that a region could ever admit at once.
func most(b *policy.Budget, region string) lease.Tokens {
	limit := b.Contract.Limit()
	if b.Strategy != policy.Static {
		return limit
	}
	for i := range b.Regions {
		if b.Regions[i].Name == region {
			return b.Part(i, limit)
		}
	}
	return limit
}

// planned reports whether a region holds a share of the budget whether or not
// anybody asks.
func planned(b *policy.Budget, region string) bool {
	if b.Deleted || b.Contract.IsQuota() {
		return false
	}
	for i := range b.Regions {
		if r := &b.Regions[i]; r.Name == region {
			return b.Strategy != policy.Dynamic || !r.Reserve.Rate.Zero() || r.Reserve.Burst > 0
		}
	}
	return false
}
