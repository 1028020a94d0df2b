package agent

import (
	"slices"
	"strings"
	"unique"

	"github.com/ration-dev/ration/policy"
)

// terms is a listed budget's policy as an agent keeps it, of very many: its Match
// is nil, because pairs, sorted by key, take a fourth of the memory.
type terms struct {
	policy.Budget
	pairs []Descriptor
}

// newTerms shares with like, which may be nil, what both have in common, as
// neighbours in a list often do.
func newTerms(b policy.Budget, like *terms) *terms {
	t := &terms{Budget: b}
	if len(b.Match) > 0 {
		t.pairs = make([]Descriptor, 0, len(b.Match))
	}
	for k, v := range b.Match {
		t.pairs = append(t.pairs, Descriptor{Key: unique.Make(k).Value(), Value: v})
	}
	slices.SortFunc(t.pairs, func(a, b Descriptor) int { return strings.Compare(a.Key, b.Key) })
	t.Match = nil
	if like != nil && slices.Equal(b.Regions, like.Regions) {
		t.Regions = like.Regions
	}
	return t
}
