// Package policy holds what owners write about their limits: budgets, their
// contracts, and how a request finds the budgets it must satisfy. It reads no
// files and knows no ledger.
package policy

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Budget is one global limit. Values are immutable once validated: a change is
// a new value with a higher Version. The JSON form is what the ledger stores.
type Budget struct {
	// Name is tenant/route_class, 1 to 256 bytes of UTF-8. The tenant is what
	// stands before the first slash; a name without one is its own tenant.
	Name string `json:"name"`
	// Match holds the descriptors that a request must carry, all of them, for
	// the budget to apply. Empty matches nothing: such a budget is only asked
	// for by name.
	Match    map[string]string `json:"match,omitempty"`
	Contract Contract          `json:"contract"`
	Strategy Strategy          `json:"strategy"`
	// Float is the over-admission that the owner accepts, in tokens, after the
	// declared surcharges; see Contract. Zero for quotas.
	Float lease.Tokens `json:"float,omitempty"`
	// OverAdmission is what the owner wrote, from which Float was computed.
	OverAdmission OverAdmission `json:"over_admission"`
	// Regions is sorted by name. Empty means every region of the deployment,
	// equal among themselves; only dynamic budgets may leave it so.
	Regions []Region `json:"regions,omitempty"`
	// TTL is how long a lump or paced share lives without being extended; in
	// effect it is never 0 after validation. ShareTTL is the same for reserve
	// shares.
	TTL      time.Duration `json:"ttl"`
	ShareTTL time.Duration `json:"share_ttl"`

	OnFailure   Failure     `json:"on_failure"`
	OnStoreLoss OnStoreLoss `json:"on_store_loss"`
	// Wait is how long a decision may wait for a token from afar; 0 to 300 ms.
	Wait time.Duration `json:"wait,omitempty"`

	// Version rises with every change of any budget in the deployment; 0 until
	// the ledger has stored it.
	Version uint64 `json:"version"`
	// Deleted budgets admit nothing and stay listed until no lease of theirs
	// can be spent.
	Deleted bool `json:"deleted,omitempty"`
}

// Contract is what the limit promises: a bucket or a quota, told apart by
// Quota.N's period.
type Contract struct {
	// Rate and Burst describe a token bucket. A zero rate admits only the
	// burst, once; a zero burst admits nothing.
	Rate  lease.Rate   `json:"rate,omitzero"`
	Burst lease.Tokens `json:"burst,omitempty"`
	// Quota describes N tokens per calendar window, and makes Rate and Burst
	// meaningless, when Quota.Per is set.
	Quota Quota `json:"quota,omitzero"`
}

// IsQuota reports whether the contract is a quota.
func (c Contract) IsQuota() bool { return c.Quota.Per != "" }

// Limit returns what an answer reports as the limit: the burst or the quota.
// A cost above it is never admitted.
func (c Contract) Limit() lease.Tokens {
	if c.IsQuota() {
		return c.Quota.N
	}
	return c.Burst
}

// Quota is N tokens per calendar window in a time zone.
type Quota struct {
	N    lease.Tokens `json:"n"`
	Per  Period       `json:"per"`
	Zone string       `json:"zone"` // IANA name; "UTC" if the owner wrote none
}

// Period names a calendar window.
type Period string

// The calendar windows. Weeks start on Monday.
const (
	Hour  Period = "hour"
	Day   Period = "day"
	Week  Period = "week"
	Month Period = "month"
	Year  Period = "year"
)

// Strategy names a planner.
type Strategy string

// The strategies: three planners over one mechanism.
const (
	Static      Strategy = "static"
	Independent Strategy = "independent"
	Dynamic     Strategy = "dynamic"
)

// Region is one region's part of a budget.
type Region struct {
	Name string `json:"name"`
	// Weight is the region's part of the whole relative to the other regions'
	// weights; 0 only where no region has one, which means equal parts.
	Weight int64 `json:"weight,omitempty"`
	// Floor is what the region gets first if it asks (dynamic).
	Floor lease.Rate `json:"floor,omitzero"`
	// Reserve is carved out beforehand as a share (dynamic); zero for none.
	Reserve Reserve `json:"reserve,omitzero"`
}

// Reserve is a share guaranteed even to a region that is cut off.
type Reserve struct {
	Rate  lease.Rate   `json:"rate"`
	Burst lease.Tokens `json:"burst"`
}

// OverAdmission is the owner's statement: Tokens, or Percent within Within.
type OverAdmission struct {
	Tokens lease.Tokens `json:"tokens,omitempty"`
	// MilliPercent is the percentage times 1000, so that 2.5 % is exact.
	MilliPercent int64         `json:"milli_percent,omitempty"`
	Within       time.Duration `json:"within,omitempty"`
}

// FailureMode says what happens when shares and lumps have run out and the
// ledger has not refused.
type FailureMode string

// The failure modes.
const (
	Deny       FailureMode = "deny"
	AllowLocal FailureMode = "allow_local"
)

// Failure is a budget's failure mode and, for AllowLocal, the local allowance
// of one region.
type Failure struct {
	Mode  FailureMode  `json:"mode"`
	Rate  lease.Rate   `json:"rate,omitzero"`
	Burst lease.Tokens `json:"burst,omitempty"`
}

// OnStoreLoss says what happens to a share whose store was lost.
type OnStoreLoss string

// Regrant grants a new share at once, Wait when the old one has expired.
const (
	Regrant OnStoreLoss = "regrant"
	Wait    OnStoreLoss = "wait"
)

// Tenant returns the part of a budget's name before the first slash, or the
// whole name if it has none.
func Tenant(name string) string {
	for i := range len(name) {
		if name[i] == '/' {
			return name[:i]
		}
	}
	return name
}

// RouteClass returns the part of a budget's name after its tenant, or the
// whole name if it has no tenant of its own.
func RouteClass(name string) string {
	if tenant := Tenant(name); len(tenant)+1 < len(name) {
		return name[len(tenant)+1:]
	}
	return name
}

// List is the answer to "what changed since a version".
type List struct {
	// Version is to be given as since the next time.
	Version uint64
	// Budgets changed after since, deleted ones included. With Full, they are
	// all there are, and what is not among them is gone.
	Budgets []Budget
	Full    bool
}

// Source serves budgets to agents. An error means try again later.
type Source interface {
	ListBudgets(ctx context.Context, since uint64) (List, error)
}
