package agent

import (
	"fmt"
	"slices"
	"strings"
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
	// keys has the keys of these pairs, sorted; byKey has them too where they
	// are many. What else a request carries is not looked up.
	keys  []*keyed
	byKey map[string]*keyed
}

// keyed has the budgets whose pair has one key, by its value.
type keyed struct {
	key     string
	byValue map[string][]indexed
}

// fewKeys is how many keys are compared one by one rather than hashed.
const fewKeys = 8

// indexed is a budget under one of its pairs; rest has the others, and may have
// that one too.
type indexed struct {
	entry *entry
	rest  []Descriptor
}

// without leaves p out where that takes no new list.
func without(pairs []Descriptor, p Descriptor) []Descriptor {
	switch last := len(pairs) - 1; p {
	case pairs[0]:
		return pairs[1:]
	case pairs[last]:
		return pairs[:last]
	}
	return pairs
}

// newIndex indexes the entries by these policies.
func newIndex(entries map[string]*entry, policies []*terms) *index {
	ix := &index{byName: entries, byKey: map[string]*keyed{}}
	shared := make(map[Descriptor]int, len(entries))
	for _, t := range policies {
		for _, p := range t.pairs {
			shared[p]++
		}
	}
	for _, t := range policies {
		ix.add(entries[t.Name], t, shared)
	}
	for _, k := range ix.byKey {
		ix.keys = append(ix.keys, k)
		for _, list := range k.byValue { // the same order on every run
			slices.SortFunc(list, func(a, b indexed) int { return strings.Compare(a.entry.name, b.entry.name) })
		}
	}
	slices.SortFunc(ix.keys, func(a, b *keyed) int { return strings.Compare(a.key, b.key) })
	return ix
}

// add leaves out deleted budgets: a limit that was taken away limits nobody,
// and what is still leased for it is not spent.
func (ix *index) add(e *entry, t *terms, shared map[Descriptor]int) {
	if t.Deleted || len(t.pairs) == 0 {
		return
	}
	p := slices.MinFunc(t.pairs, func(a, b Descriptor) int { return shared[a] - shared[b] })
	k := ix.byKey[p.Key]
	if k == nil {
		k = &keyed{key: p.Key, byValue: map[string][]indexed{}}
		ix.byKey[p.Key] = k
	}
	k.byValue[p.Value] = append(k.byValue[p.Value], indexed{entry: e, rest: without(t.pairs, p)})
}

// under returns the budgets that stand under a pair.
func (ix *index) under(d *Descriptor) []indexed {
	if len(ix.keys) > fewKeys {
		if k := ix.byKey[d.Key]; k != nil {
			return k.byValue[d.Value]
		}
		return nil
	}
	for _, k := range ix.keys {
		if k.key == d.Key {
			return k.byValue[d.Value]
		}
	}
	return nil
}

// match appends the entries that the descriptors satisfy, each once. It
// allocates only when to is too small.
func (ix *index) match(have []Descriptor, to []*entry) []*entry {
	for i := range have {
		candidates := ix.under(&have[i])
		if len(candidates) == 0 || slices.Contains(have[:i], have[i]) {
			continue
		}
		for j := range candidates {
			if carries(have, candidates[j].rest) {
				to = append(to, candidates[j].entry)
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
