package allocation

import "github.com/ration-dev/ration/lease"

// Target is what a planner wants one region to hold. The ledger grants of it
// what fits, recalls what stands above it, and never less safely for it.
type Target struct {
	Region string
	// Reserve and Paced are shares; a zero Beta plans none.
	Reserve, Paced Share
	// Lump is the hold of one lump up to which the region's wants are granted;
	// an earlier incarnation's, which its store has lost, stands beside it until
	// it expires. Lumps is false where the plan holds none here at all.
	Lump  lease.Tokens
	Lumps bool
	// Piece bounds one grant of lump tokens; 0 for no bound.
	Piece lease.Tokens
	// Suffices says that a quota's lump below what is wanted is no shortage:
	// there is more, which comes as the lump is used.
	Suffices bool
	// Push is the hold to which tokens are granted even if fewer are wanted, so
	// that they lie where they will be needed.
	Push lease.Tokens
	// Keep is the hold of lump tokens above which the region is asked to return
	// the rest; lease.MaxTokens asks for nothing.
	Keep lease.Tokens
	// OnDemand grants lump tokens to callers that wait and to nobody else, and
	// asks for all the others back.
	OnDemand bool
}

// Share is the planned size of a share: X in tokens per the pool's period.
type Share struct {
	X, Beta lease.Tokens
	// Keep is the balance down to which the region is asked to spend, by asking
	// for less of the rate than it spends; 0 asks for nothing.
	Keep lease.Tokens
}
