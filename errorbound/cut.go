package errorbound

import (
	"fmt"
	"math/big"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// OverCut bounds the over-admission above the contract of after, in any window
// of length w that begins once it is in force in the ledger in place of
// before, while regions still hold what before gave them. A raise adds
// nothing. Both budgets are normalized, and both buckets or both quotas.
//
// Tokens that are out stay out until they are spent, returned or written off,
// and shares go on minting at their old rate until they are told or die. A
// region that cannot reach the allocator goes by the old policy, so for the
// surcharges the worse of the two counts.
func OverCut(before, after policy.Budget, d Deployment, w time.Duration) (Bound, error) {
	m, err := check(after, d, w)
	if err != nil {
		return Bound{}, err
	}
	if before.Contract.IsQuota() != m.quota {
		return Bound{}, lease.Errorf(lease.Invalid, "limit", "changes between a bucket and a quota, which is not a cut")
	}
	old := newModel(before, m.deploy, m.window)
	risk := newModel(worse(before, after), m.deploy, m.window)
	risk.pools = max(old.pools, m.pools)
	risk.ceiling = most(old.ceiling, m.ceiling)
	risk.regions = max(old.regions, m.regions)
	risk.life = max(old.life, m.life)
	return bound(m, risk, m.cut(old)), nil
}

// cut is what the pool and the regions hold above the new ceiling, and the
// rate that shares hold above the new one.
func (m *model) cut(old *model) Cause {
	life := min(m.window, old.life)
	held := most(new(big.Rat), new(big.Rat).Sub(old.ceiling, m.ceiling))
	rate := new(big.Rat).Sub(scale(minted(old.rate, life), int64(old.pools)), scale(minted(m.rate, life), int64(m.pools)))
	rate = most(new(big.Rat), rate)
	return Cause{
		Name: LimitCut, Tokens: ceil(sum(held, rate)),
		Formula: fmt.Sprintf("ceil(max(0, %d - %d) + max(0, %s - %s)·%s)", ceil(old.ceiling), ceil(m.ceiling),
			each(old.pools, "%s", old.rateText()), each(m.pools, "%s", m.rateText()), policy.FormatDuration(life)),
		Inputs: []Input{
			tokens("ceiling before", ceil(old.ceiling)), tokens("ceiling after", ceil(m.ceiling)),
			ratio("rate before", old.rate), ratio("rate after", m.rate), lasting("longest life", old.life),
		},
		Zero:       "cut in steps no larger than what is idle, or wait until the old leases have ended",
		Assumption: "before, the budget was not being cut already",
	}
}

// worse takes of each field what admits more.
func worse(a, b policy.Budget) policy.Budget {
	w := b
	w.Contract.Rate = faster(a.Contract.Rate, b.Contract.Rate)
	w.Contract.Burst = max(a.Contract.Burst, b.Contract.Burst)
	w.Contract.Quota.N = max(a.Contract.Quota.N, b.Contract.Quota.N)
	w.Float = max(a.Float, b.Float)
	w.TTL, w.ShareTTL = max(a.TTL, b.TTL), max(a.ShareTTL, b.ShareTTL)
	if a.Strategy != b.Strategy {
		w.Strategy = policy.Dynamic
	}
	if a.OnStoreLoss == policy.Regrant {
		w.OnStoreLoss = policy.Regrant
	}
	if a.OnFailure.Mode == policy.AllowLocal {
		w.OnFailure = policy.Failure{
			Mode: policy.AllowLocal, Rate: faster(a.OnFailure.Rate, b.OnFailure.Rate),
			Burst: max(a.OnFailure.Burst, b.OnFailure.Burst),
		}
	}
	return w
}

func faster(a, b lease.Rate) lease.Rate {
	if minted(a, lease.MaxPeriod).Cmp(minted(b, lease.MaxPeriod)) > 0 {
		return a
	}
	return b
}
