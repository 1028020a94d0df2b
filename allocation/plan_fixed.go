package allocation

import (
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// planFixed gives each region of a static bucket its weight's part of rate and
// burst, rounded down, and each of an independent one the whole of both.
func planFixed(b policy.Budget, regions []regionView, p *Pool) []Target {
	targets := make([]Target, len(regions))
	for i, r := range regions {
		share := Share{X: regionPart(b, i, p.Rate.Tokens), Beta: regionPart(b, i, p.Burst)}
		targets[i] = Target{Region: r.name, Reserve: share}
	}
	return targets
}

// planFixedQuota grants each region pieces until its grants in the window
// reach its part of a static quota, or the whole of an independent one. What
// came back has been taken off the grants.
func planFixedQuota(b policy.Budget, regions []regionView, p *Pool) []Target {
	targets := make([]Target, len(regions))
	for i, r := range regions {
		limit := regionPart(b, i, p.Burst)
		piece := max(1, limit/100, r.waiting)
		left := limit - r.granted
		targets[i] = Target{
			Region:   r.name,
			Lumps:    true,
			Lump:     piece,
			Piece:    min(piece, left),
			Suffices: left > 0,
			Keep:     lease.MaxTokens,
		}
		if left <= 0 {
			targets[i].Lump, targets[i].Piece = 0, 0
		}
		if left < 0 {
			targets[i].Keep = max(0, r.lump+left)
		}
	}
	return targets
}

// regionPart is what region i of b gets of a pool's total: its weight's part,
// or the whole contract, of which an independent pool has one per region.
func regionPart(b policy.Budget, i int, total lease.Tokens) lease.Tokens {
	if b.Strategy == policy.Independent {
		return total / lease.Tokens(max(1, len(b.Regions)))
	}
	return b.Part(i, total)
}
