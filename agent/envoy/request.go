package envoy

import (
	"fmt"
	"slices"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// Bounds of a request: its descriptors, and each one's entries.
const maxEntries = agent.MaxDescriptors

// domainKey is the key under which the domain is one of a descriptor's pairs.
const domainKey = "domain"

// request is what a RateLimitRequest asks.
type request struct {
	domain [1]agent.Descriptor
	parts  []part

	// peeks and charges name the matched budgets, each once; costs has what each
	// of charges is charged, cost the largest of them.
	peeks, charges []string
	costs          []lease.Tokens
	cost           lease.Tokens
	differ         bool
}

// part is one descriptor of a request.
type part struct {
	pairs   []agent.Descriptor
	hits    lease.Tokens
	budgets []agent.Matched
}

// read refuses what the protocol or the product has no meaning for.
func read(m *ratelimitv3.RateLimitRequest) (*request, error) {
	domain, descriptors := m.GetDomain(), m.GetDescriptors()
	switch {
	case domain == "" || len(domain) > agent.MaxWord:
		return nil, lease.Errorf(lease.Invalid, "domain", "must be 1 to %d bytes", agent.MaxWord)
	case len(descriptors) == 0:
		return nil, lease.Errorf(lease.Invalid, "descriptors", "none given")
	case len(descriptors) > agent.MaxDescriptors:
		return nil, lease.Errorf(lease.Invalid, "descriptors", "%d are more than %d", len(descriptors), agent.MaxDescriptors)
	}
	q := &request{parts: make([]part, len(descriptors))}
	q.domain[0] = agent.Descriptor{Key: domainKey, Value: domain}
	for i, d := range descriptors {
		n, refused := hits(d, m.GetHitsAddend())
		if refused != nil {
			return nil, within(i, refused)
		}
		q.parts[i].hits = n
		if n := len(d.GetEntries()); n == 0 || n > maxEntries {
			return nil, within(i, lease.Errorf(lease.Invalid, "entries", "must be 1 to %d, not %d", maxEntries, n))
		}
		q.parts[i].pairs = pairs(d, q.domain[0])
	}
	return q, nil
}

// within names the descriptor that an error is about.
func within(i int, e *lease.Error) *lease.Error {
	e.Field = fmt.Sprintf("descriptors[%d].%s", i, e.Field)
	return e
}

func hits(d *commonv3.RateLimitDescriptor, all uint32) (lease.Tokens, *lease.Error) {
	if d.GetIsNegativeHits() {
		return 0, lease.Errorf(lease.Invalid, "is_negative_hits", "tokens that were spent never come back")
	}
	if d.GetHitsAddend() == nil {
		return max(1, lease.Tokens(all)), nil
	}
	own := d.GetHitsAddend().GetValue()
	if own > uint64(lease.MaxTokens) {
		return 0, lease.Errorf(lease.Invalid, "hits_addend", "above %d", lease.MaxTokens)
	}
	return lease.Tokens(own), nil
}

func pairs(d *commonv3.RateLimitDescriptor, domain agent.Descriptor) []agent.Descriptor {
	out := make([]agent.Descriptor, 0, len(d.GetEntries())+1)
	for _, e := range d.GetEntries() {
		if e.GetKey() != domainKey {
			out = append(out, agent.Descriptor{Key: e.GetKey(), Value: e.GetValue()})
		}
	}
	return append(out, domain)
}

// match finds the budgets of every descriptor, and what each is charged.
func (q *request) match(a Agent) {
	q.peeks, q.charges, q.costs, q.cost = q.peeks[:0], q.charges[:0], q.costs[:0], 0
	for i := range q.parts {
		p := &q.parts[i]
		p.budgets = a.Match(p.pairs, p.budgets[:0])
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
