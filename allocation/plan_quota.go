package allocation

import (
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
)

// quotaTau is how long a lump of a dynamic quota is meant to last.
const quotaTau = 2 * time.Second

// planDynamicQuota sizes lumps by demand, in pieces of at most a hundredth of
// the quota or what a round trip needs: a lost store costs that, not the
// month. When the pool cannot fill all lumps, what is left of the window,
// wherever it lies, is divided by demand, and what lies idle is recalled; so it
// is after a cut or a debt, for what then lies in lumps above the limit.
func planDynamicQuota(regions []regionView, p *Pool) []Target {
	targets := make([]Target, len(regions))
	lack, left, demand := lease.Tokens(0), p.Available, 0.0
	for i, r := range regions {
		piece := quotaPiece(r, p.Burst)
		targets[i] = Target{Region: r.name, Lumps: true, Lump: piece, Piece: piece, Suffices: true, Keep: lease.MaxTokens}
		if r.active && !r.idle() {
			lack = min(lease.MaxTokens, lack+max(0, piece-r.lump))
			demand += r.demand
		}
		left = min(lease.MaxTokens, left+r.lump)
	}
	if p.room() >= 0 && lack <= p.Available {
		return targets
	}
	left = max(0, min(left, p.ceiling()))
	claims := make([]claim, len(regions))
	for i, r := range regions {
		claims[i] = claim{key: r.name, weight: demandWeight(r.demand, demand)}
		if r.active && !r.idle() {
			claims[i].demand = targets[i].Lump
		}
	}
	for i, n := range waterfill(claims, left) {
		t := &targets[i]
		t.Lump = max(n, min(regions[i].waiting, left, p.Burst))
		t.Keep, t.Suffices = t.Lump, false
	}
	return targets
}

// quotaPiece is the lump that a region should hold of a quota of n tokens.
func quotaPiece(r regionView, n lease.Tokens) lease.Tokens {
	f := r.demand * (r.rtt + 2*reportEvery + decideTime).Seconds()
	need := wholeTokens(f+2*math.Sqrt(f)+1, n)
	lasting := wholeTokens(r.demand*quotaTau.Seconds(), max(1, n/100))
	return min(max(need, lasting, r.waiting), n)
}
