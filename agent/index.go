package agent

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ration-dev/ration/policy"
)

func field(list string, i int, name string) string {
	if name == "" {
		return fmt.Sprintf("%s[%d]", list, i)
	}
	return fmt.Sprintf("%s[%d].%s", list, i, name)
}

// index finds the budgets whose descriptors a request carries. It is built
// once per policy change and never changed. Every budget stands under one of
// its own pairs, the one that fewest budgets share, so that a request looks
// only at budgets that are likely to be its own, however many there are.
type index struct {
	byName map[string]*entry
	byPair map[Descriptor][]indexed
}

// indexed is a budget under one of its pairs; rest has the others.
type indexed struct {
	entry *entry
	rest  []Descriptor
}

// newIndex indexes the entries by their present policies.
func newIndex(entries map[string]*entry) *index {
	ix := &index{byName: entries, byPair: make(map[Descriptor][]indexed, len(entries))}
	shared := make(map[Descriptor]int, len(entries))
	for _, e := range entries {
		for k, v := range e.policy.Load().Match {
			shared[Descriptor{k, v}]++
		}
	}
	for _, e := range entries {
		ix.add(e, e.policy.Load(), shared)
	}
	for _, list := range ix.byPair { // the same order on every run
		slices.SortFunc(list, func(a, b indexed) int { return strings.Compare(a.entry.name, b.entry.name) })
	}
	return ix
}

// add leaves out deleted budgets: a limit that was taken away limits nobody,
// and what is still leased for it is not spent.
func (ix *index) add(e *entry, b *policy.Budget, shared map[Descriptor]int) {
	if b.Deleted || len(b.Match) == 0 {
		return
	}
	pairs := make([]Descriptor, 0, len(b.Match))
	for k, v := range b.Match {
		pairs = append(pairs, Descriptor{k, v})
	}
	slices.SortFunc(pairs, func(a, b Descriptor) int {
		if shared[a] != shared[b] {
			return shared[a] - shared[b]
		}
		if a.Key < b.Key {
			return -1
		}
		return 1
	})
	ix.byPair[pairs[0]] = append(ix.byPair[pairs[0]], indexed{entry: e, rest: pairs[1:]})
}

// match appends the entries that the descriptors satisfy, each once. It
// allocates only when to is too small.
func (ix *index) match(have []Descriptor, to []*entry) []*entry {
	for i, d := range have {
		if slices.Contains(have[:i], d) {
			continue
		}
		for _, candidate := range ix.byPair[d] {
			if carries(have, candidate.rest) {
				to = append(to, candidate.entry)
			}
		}
	}
	return to
}

func carries(have, want []Descriptor) bool {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return false
		}
	}
	return true
}
