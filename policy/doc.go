package policy

// Bounds of what an owner may write. They keep every product of the ledger's
// arithmetic inside 128 bits and every count inside lease.MaxTokens.
const (
	// MaxName is the longest name of a budget, region, descriptor key or value,
	// in bytes.
	MaxName = 256
	// MaxMatch is the most descriptors a budget matches on.
	MaxMatch = 64
	// MaxRegions is the most regions of one budget.
	MaxRegions = 64
	// MaxWeight is the largest weight of a region.
	MaxWeight = 1_000_000
)
