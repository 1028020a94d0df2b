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
	// standing has the budgets, those under one pair side by side.
	standing []indexed
}

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

// keyed says, by value, where the budgets stand whose pair has one key.
type keyed struct {
	key     string
	byValue map[string]span
}

// span is a part of index.standing. While that is filled at is 0 for a part that
// has no place yet.
type span struct{ at, n uint32 }

// fewKeys is how many keys are compared one by one rather than hashed.
const fewKeys = 8

// newIndex indexes the entries by these policies, in their order. Deleted budgets
// are left out: a limit that was taken away limits nobody, and what is still
// leased for it is not spent.
func newIndex(entries map[string]*entry, policies []*terms) *index {
	ix := &index{byName: entries, byKey: map[string]*keyed{}}
	rarest := rarestPairs(policies)
	for i, t := range policies {
		if len(t.pairs) > 0 && !t.Deleted {
			ix.count(rarest[i])
		}
	}
	ix.standing = make([]indexed, 1, len(policies)+1)
	for i, t := range policies {
		if len(t.pairs) > 0 && !t.Deleted {
			ix.add(indexed{entries[t.Name], without(t.pairs, rarest[i])}, rarest[i])
		}
	}
	for _, k := range ix.byKey {
		ix.keys = append(ix.keys, k)
	}
	slices.SortFunc(ix.keys, func(a, b *keyed) int { return strings.Compare(a.key, b.key) })
	return ix
}

// rarestPairs says of each policy that has pairs which of them fewest share.
func rarestPairs(policies []*terms) []Descriptor {
	shared := make(map[Descriptor]int, len(policies))
	for _, t := range policies {
		for _, p := range t.pairs {
			shared[p]++
		}
	}
	rarest := make([]Descriptor, len(policies))
	for i, t := range policies {
		if len(t.pairs) > 0 {
			rarest[i] = slices.MinFunc(t.pairs, func(a, b Descriptor) int { return shared[a] - shared[b] })
		}
	}
	return rarest
}

func (ix *index) count(p Descriptor) {
	k := ix.byKey[p.Key]
	if k == nil {
		k = &keyed{key: p.Key, byValue: map[string]span{}}
		ix.byKey[p.Key] = k
	}
	s := k.byValue[p.Value]
	s.n++
	k.byValue[p.Value] = s
}

func (ix *index) add(e indexed, p Descriptor) {
	byValue := ix.byKey[p.Key].byValue
	s := byValue[p.Value]
	if s.at == 0 {
		s.at = uint32(len(ix.standing))
		ix.standing = ix.standing[:len(ix.standing)+int(s.n)]
		s.n = 0
	}
	ix.standing[s.at+s.n] = e
	s.n++
	byValue[p.Value] = s
}

// under returns the budgets that stand under a pair.
func (ix *index) under(d *Descriptor) []indexed {
	if len(ix.keys) > fewKeys {
		if k := ix.byKey[d.Key]; k != nil {
			return ix.at(k.byValue[d.Value])
		}
		return nil
	}
	for _, k := range ix.keys {
		if k.key == d.Key {
			return ix.at(k.byValue[d.Value])
		}
	}
	return nil
}

func (ix *index) at(s span) []indexed { return ix.standing[s.at : s.at+s.n] }

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
