// Package sim runs whole deployments of Ration in simulated time: a ledger
// with its allocators, regions with their stores and agents, the networks
// between them, and what goes wrong with each. It drives the production code
// of allocation, agent and regionstore unchanged, over their memory stores.
//
// # How it works
//
// One heap of events orders everything by true time, in microseconds. Each
// host has a clock of its own that drifts and may be stepped; nobody reads the
// true time except the measures. Messages between hosts cross a directed link
// that delays, loses, repeats and reorders them, as deep copies, so that no
// pointer hides a fault. A run is one goroutine.
//
// The same Options give the same Result, byte for byte: every random choice
// comes from a generator seeded by Options.Seed and the name of who chooses,
// nothing iterates over a map, and the package's own floating point is rounded
// after every operation. (The demand estimator and the planner use float64;
// on a machine that fuses multiply and add their last bit may differ.)
//
// # Two ways of arriving
//
// Request by request, each request is one production decision. In bulk, one
// step decides the count of requests that arrive in a span of time, as if all
// came at its end: Decider.Many takes what they need of the wallet in one store
// step. Bulk is for days and months; what it blurs is everything faster than
// its step: a wallet must hold a whole step's cost at once, nobody is refused
// and admitted within one step in turn, and prefetch hardly matters.
//
// # What is measured
//
// Everything streams: memory depends on budgets, regions, windows and the
// points of the series, not on how long the run is. Over-admission is measured
// on true time against the budget's contract, exactly in any window (Lindley's
// recursion in whole tokens), and for each asked W as the largest sum over
// windows of that length that begin at a multiple of W/1024, which never says
// too much.
package sim
