package allocation

import (
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// PoolContract returns the contract that a budget's pool carries: the rate in
// the fine unit in which shares are counted (zero for a quota), the burst (a
// quota's N), and the float. A pool of an independent budget carries the
// contract of all its regions together. A deleted budget is a limit of 0; its
// rate keeps its unit, so that what is still leased stays counted.
func PoolContract(b policy.Budget) (rate lease.Rate, burst, float lease.Tokens) {
	times := lease.Tokens(1)
	if b.Strategy == policy.Independent {
		times = lease.Tokens(max(1, len(b.Regions)))
	}
	if b.Contract.IsQuota() {
		if b.Deleted {
			return lease.Rate{}, 0, 0
		}
		return lease.Rate{}, saturatingMul(b.Contract.Quota.N, times), 0
	}
	rate = b.Contract.Rate
	rate.Tokens = saturatingMul(rate.Tokens, times)
	rate = rate.Fine()
	if b.Deleted {
		return lease.Rate{Per: rate.Per}, 0, 0
	}
	return rate, saturatingMul(b.Contract.Burst, times), b.Float
}

// saturatingMul returns a·b, at most lease.MaxTokens. Both are >= 0.
func saturatingMul(a, b lease.Tokens) lease.Tokens {
	if a > 0 && b > lease.MaxTokens/a {
		return lease.MaxTokens
	}
	return a * b
}
