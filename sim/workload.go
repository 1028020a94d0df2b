package sim

import (
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Workload is a stream of requests in one region.
type Workload struct {
	// Name seeds the stream, together with Options.Seed, and nothing else does:
	// every strategy sees the same requests. "" takes the position in the list.
	Name   string
	Region string
	// Budgets are asked by name. With several, each request asks for one of
	// them, by Zipf; with All it asks for all of them at once.
	Budgets []string
	All     bool
	// Zipf is the skew of popularity: the k-th budget has a weight of 1/k^Zipf,
	// 0 (equal) to 5.
	Zipf    float64
	Pattern Pattern
	// Even spaces requests evenly; else they are a Poisson stream.
	Even bool
	// Cost is each request's.
	Cost Cost
	// Deadline is how long callers wait for an answer; 0 takes the agent's
	// default.
	Deadline time.Duration
}

// Pattern says how many requests are offered over time. Start makes one run
// of it, a pure function of the generator and of t, which is asked with times
// that never fall.
type Pattern interface {
	Start(r *rand.Rand) func(t time.Duration) Segment
}

// Segment is a span of time with a constant rate.
type Segment struct {
	// PerSecond is the rate from t to Until, >= 0 and finite.
	PerSecond float64
	// Until is when to ask again, after t; negative for never.
	Until time.Duration
	// AtOnce requests come at t itself, or Everything.
	AtOnce int64
}

// Everything as Segment.AtOnce means as many requests as the region can admit
// at that instant, and one more.
const Everything int64 = -1

// Watcher is a Pattern that looks at the deployment: Watch is called every
// Segment's end and adds requests at that instant, as AtOnce does. held is
// what each region could spend of the stream's first budget, in the order of
// the topology.
type Watcher interface {
	Pattern
	Watch(t time.Duration, held []lease.Tokens, limit lease.Tokens) (atOnce int64)
}

// Mover is a Pattern that knows when demand moves to its region, for the time
// that it takes to rebalance.
type Mover interface {
	Moves(length time.Duration) []time.Duration
}

// Cost is a distribution of costs in tokens. The zero value is always 1.
type Cost struct {
	// Fixed is the cost of every request, if not 0.
	Fixed lease.Tokens
	// Choices are drawn by their weights.
	Choices []CostChoice
	// Median and Sigma describe a lognormal cost, between 1 and Most.
	Median, Most lease.Tokens
	Sigma        float64
}

// CostChoice is one cost and how often it occurs beside the others.
type CostChoice struct {
	Cost   lease.Tokens
	Weight int64
}
