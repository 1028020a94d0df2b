package envoy

import (
	"fmt"
	"slices"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease"
)

// Bounds of a request: its descriptors, and each one's entries.
const maxEntries = agent.MaxDescriptors

// domainKey is the key under which the domain is one of a descriptor's pairs.
const domainKey = "domain"

// request is what a RateLimitRequest asks. It is used again once it was answered:
// nobody keeps its slices, only its strings.
type request struct {
	text wire.Text

	domain      [1]agent.Descriptor
	hitsAddend  uint32
	descriptors int // all that were given; parts has no more than are allowed
	parts       []part
	pairs       []agent.Descriptor // of all parts
	matched     []agent.Matched    // by all parts

	// peeks and charges name the matched budgets, each once; costs has what each
	// of charges is charged, cost the largest of them.
	peeks, charges []string
	costs          []lease.Tokens
	cost           lease.Tokens
	differ         bool
}

// part is one descriptor of a request.
type part struct {
	pairs      []agent.Descriptor // the domain is the last
	entries    int
	adds       bool // a hits_addend of its own
	hitsAddend uint64
	negative   bool

	hits    lease.Tokens
	budgets []agent.Matched
}

// keptPairs bounds what a request that is used again may have room for.
const keptPairs = 256

// Reset implements wire.Request.
func (q *request) Reset() bool {
	clear(q.parts)
	clear(q.pairs)
	clear(q.matched)
	clear(q.peeks)
	clear(q.charges)
	*q = request{
		parts: q.parts[:0], pairs: q.pairs[:0], matched: q.matched[:0],
		peeks: q.peeks[:0], charges: q.charges[:0], costs: q.costs[:0],
	}
	return cap(q.pairs)+cap(q.matched) <= keptPairs
}

// check refuses what the protocol or the product has no meaning for.
func (q *request) check() error {
	switch domain := q.domain[0].Value; {
	case domain == "" || len(domain) > agent.MaxWord:
		return lease.Errorf(lease.Invalid, "domain", "must be 1 to %d bytes", agent.MaxWord)
	case q.descriptors == 0:
		return lease.Errorf(lease.Invalid, "descriptors", "none given")
	case q.descriptors > agent.MaxDescriptors:
		return lease.Errorf(lease.Invalid, "descriptors", "%d are more than %d", q.descriptors, agent.MaxDescriptors)
	}
	q.domain[0].Key = domainKey
	for i := range q.parts {
		p := &q.parts[i]
		if refused := p.check(q.hitsAddend); refused != nil {
			return within(i, refused)
		}
		p.pairs[len(p.pairs)-1] = q.domain[0]
	}
	return nil
}

// within names the descriptor that an error is about.
func within(i int, e *lease.Error) *lease.Error {
	e.Field = fmt.Sprintf("descriptors[%d].%s", i, e.Field)
	return e
}

// check says how many hits the descriptor adds, all being the request's.
func (p *part) check(all uint32) *lease.Error {
	switch {
	case p.negative:
		return lease.Errorf(lease.Invalid, "is_negative_hits", "tokens that were spent never come back")
	case !p.adds:
		p.hits = max(1, lease.Tokens(all))
	case p.hitsAddend > uint64(lease.MaxTokens):
		return lease.Errorf(lease.Invalid, "hits_addend", "above %d", lease.MaxTokens)
	default:
		p.hits = lease.Tokens(p.hitsAddend)
	}
	if p.entries == 0 || p.entries > maxEntries {
		return lease.Errorf(lease.Invalid, "entries", "must be 1 to %d, not %d", maxEntries, p.entries)
	}
	return nil
}

// match finds the budgets of every descriptor, and what each is charged.
func (q *request) match(a Agent) {
	q.matched, q.peeks, q.charges, q.costs, q.cost = q.matched[:0], q.peeks[:0], q.charges[:0], q.costs[:0], 0
	for i := range q.parts {
		p, first := &q.parts[i], len(q.matched)
		q.matched = a.Match(p.pairs, q.matched)
		p.budgets = q.matched[first:]
		if p.hits > 0 {
			for _, b := range p.budgets {
				q.charge(b.Budget, p.hits)
			}
		}
	}
	for i := range q.parts {
		if p := &q.parts[i]; p.hits == 0 {
			for _, b := range p.budgets {
				if !slices.Contains(q.charges, b.Budget) && !slices.Contains(q.peeks, b.Budget) {
					q.peeks = append(q.peeks, b.Budget)
				}
			}
		}
	}
	q.differ = len(q.costs) > 0 && slices.Min(q.costs) != q.cost
}

func (q *request) charge(name string, hits lease.Tokens) {
	q.cost = max(q.cost, hits)
	if i := slices.Index(q.charges, name); i >= 0 {
		q.costs[i] = max(q.costs[i], hits)
		return
	}
	q.charges, q.costs = append(q.charges, name), append(q.costs, hits)
}
