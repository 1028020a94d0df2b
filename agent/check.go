package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Check asks whether a request may pass.
type Check struct {
	// Descriptors are matched to budgets; every budget that matches must have
	// the cost. 1 to 64 pairs, keys and values of 1 to 256 bytes; a
	// key with two values is refused.
	Descriptors []Descriptor
	// Budgets asks by name instead; exactly one of the two is set.
	Budgets []string
	// Cost in tokens; 0 is a peek, which charges nothing. At most
	// lease.MaxTokens.
	Cost lease.Tokens
	// Costs gives each of Budgets, which are then distinct and have no RequestID,
	// a cost of its own, above 0; Cost is the largest of them. Empty means Cost
	// for every budget.
	Costs []lease.Tokens
	// RequestID makes a repetition of a check that was allowed return that answer
	// and charge nothing, for Options.KeepAnswers. One that was not allowed was not
	// charged, and a repetition is decided anew; a peek always is. "" for none, at
	// most 256 bytes.
	RequestID string
	// Deadline is how long the caller waits for an answer; 0 takes the agent's
	// default.
	Deadline time.Duration
}

// cost is what the i-th matched budget is to have: with Costs, matching keeps
// the order of Budgets.
func (c *Check) cost(i int) lease.Tokens {
	if len(c.Costs) > 0 {
		return c.Costs[i]
	}
	return c.Cost
}

// Descriptor is one property of a request.
type Descriptor struct{ Key, Value string }

// Outcome is what an Answer says.
type Outcome uint8

const (
	// Allowed means that the cost was charged in all matched budgets.
	Allowed Outcome = iota + 1
	// Denied means a quota denial on evidence: 429.
	Denied
	// Unavailable means that no decision could be made: 503.
	Unavailable
)

func (o Outcome) String() string {
	switch o {
	case Allowed:
		return "allowed"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	}
	return "invalid"
}

// Mode says on what an Answer rests; a metric label.
type Mode uint8

const (
	// FromPrefetch means tokens in this process's memory.
	FromPrefetch Mode = iota + 1
	// FromStore means the region's wallet.
	FromStore
	// FromLocal means the local allowance of allow_local.
	FromLocal
	// FromMemory means a denial remembered from a moment ago, or an answer that
	// needs no tokens (never, nothing matched).
	FromMemory
)

func (m Mode) String() string {
	switch m {
	case FromPrefetch:
		return "prefetch"
	case FromStore:
		return "store"
	case FromLocal:
		return "local"
	case FromMemory:
		return "memory"
	}
	return "invalid"
}

// Answer is the decision. With several budgets the numbers describe the one
// that denied, or of those that allowed the one with the least remaining.
type Answer struct {
	Outcome Outcome
	Mode    Mode
	// Budget is the decisive budget's name; "" when nothing matched.
	Budget string
	// Version is its policy version.
	Version uint64
	// Limit is the contract: burst, or quota.
	Limit lease.Tokens
	// Remaining is what this region could admit now.
	Remaining lease.Tokens
	// RetryAfter is the time until this cost could pass, rounded up to a
	// millisecond; 0 when allowed or unknown.
	RetryAfter time.Duration
	// ResetAfter is the time to a full share, or to the window's end.
	ResetAfter time.Duration
	// Window is the contract's: the time in which a bucket fills, or the length
	// of the quota's current window; 0 if there is none, as with a rate of 0.
	Window time.Duration
	// Never means that the cost is above what the contract could ever grant.
	Never bool
	// Reason is one word of a fixed set, each of which the README explains: a
	// lease.Shortage's or one of this package's.
	Reason string
}

// leastRetry is said where the agent does not know when the cost could pass,
// so that nobody comes back at once.
const leastRetry = 100 * time.Millisecond

// ComeBack is when a caller may ask again: RetryAfter, or 100 ms where that is
// unknown; 0 for what passed, and for what never will.
func (a *Answer) ComeBack() time.Duration {
	if a.Outcome == Allowed || a.Never || a.RetryAfter > 0 {
		return a.RetryAfter
	}
	return leastRetry
}
