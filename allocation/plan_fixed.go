package allocation

import (
	"math/bits"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// planFixed gives each region of a static bucket its weight's part of rate and
// burst, rounded down, and each of an independent one the whole of both.
func planFixed(b policy.Budget, regions []regionView, p *Pool) []Target {
	targets := make([]Target, len(regions))
	total := totalWeight(regions)
	for i, r := range regions {
		share := Share{X: part(p.Rate.Tokens, r.weight, total), Beta: part(p.Burst, r.weight, total)}
		if b.Strategy == policy.Independent {
			n := int64(len(regions))
			share = Share{X: part(p.Rate.Tokens, 1, n), Beta: part(p.Burst, 1, n)}
		}
		targets[i] = Target{Region: r.name, Reserve: share}
	}
	return targets
}

// planFixedQuota grants each region pieces until its grants in the window
// reach its part of a static quota, or the whole of an independent one. What
// came back has been taken off the grants.
func planFixedQuota(b policy.Budget, regions []regionView, p *Pool) []Target {
	targets := make([]Target, len(regions))
	total := totalWeight(regions)
	for i, r := range regions {
		limit := part(p.Burst, r.weight, total)
		if b.Strategy == policy.Independent {
			limit = part(p.Burst, 1, int64(len(regions)))
		}
		piece := max(1, limit/100, r.waiting)
		left := limit - r.granted
		targets[i] = Target{
			Region: r.name,
			Lumps:  true,
			Lump:   max(0, min(max(piece, r.lump), r.lump+left)),
			Piece:  piece,
			Keep:   lease.MaxTokens,
		}
		if left < 0 {
			targets[i].Keep = targets[i].Lump
		}
	}
	return targets
}

func totalWeight(regions []regionView) int64 {
	total := int64(0)
	for _, r := range regions {
		total += r.weight
	}
	return total
}

// part returns n·weight/total, rounded down, exactly.
func part(n lease.Tokens, weight, total int64) lease.Tokens {
	hi, lo := bits.Mul64(uint64(max(0, n)), uint64(weight))
	if total <= 0 || hi >= uint64(total) {
		return 0
	}
	q, _ := bits.Div64(hi, lo, uint64(total))
	return lease.Tokens(q)
}
