package policy

import (
	"math/big"

	"github.com/ration-dev/ration/lease"
)

// Part returns region i's part of total by weight, rounded down, so that the
// parts of all regions never exceed the whole. Without weights the parts are
// equal.
func (b Budget) Part(i int, total lease.Tokens) lease.Tokens {
	weight, sum := b.weight(i), b.weights()
	part := new(big.Int).Mul(big.NewInt(int64(total)), big.NewInt(weight))
	return lease.Tokens(part.Div(part, big.NewInt(sum)).Int64())
}

// weight returns the weight of region i, 1 where no region has one.
func (b Budget) weight(i int) int64 {
	if b.equalParts() {
		return 1
	}
	return b.Regions[i].Weight
}

// weights returns the sum of all weights; at least 1.
func (b Budget) weights() int64 {
	var sum int64
	for i := range b.Regions {
		sum += b.weight(i)
	}
	return max(sum, 1)
}

func (b Budget) equalParts() bool {
	for _, r := range b.Regions {
		if r.Weight != 0 {
			return false
		}
	}
	return true
}
