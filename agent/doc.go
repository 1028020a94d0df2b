// Package agent is the regional side: it decides checks from leased tokens
// and keeps the region's wallets filled.
//
// # Parts
//
// A Decider decides. It is called concurrently and has no goroutine and no
// timer of its own: tokens that this process prefetched first (the hot path,
// which allocates nothing), then one step on the region's store. Where a
// decision must wait for tokens from afar it hands back a Pending. Flushes, by
// the clock, tell what was used, give back what lies idle, and refill what is held
// of slow budgets before it runs out (refill.go).
//
// A Keeper keeps wallets filled. It is a step machine: time and event in,
// effects and wake time out. An Executor does the effects.
//
// A Runner is the shell of goroutines and timers around the two; a simulator
// drives them from its own loop instead.
//
// # Authority
//
// Nothing in this package is trusted. What may be spent stands in the store's
// row, checked by the step that spends it, and in the ledger. The Keeper may
// be wrong, late, or doubled: several agents of a region race, begin makes
// them say the same thing, and the ledger grants it once. The lock that
// chooses a leader saves messages and carries no safety.
//
// Safety does rest on three things done here. A process counts the deadline
// of tokens it prefetched from before it sent the take (pocket.go), takes a
// token before it reads its clock, and drops it if late (hot.go, decide.go). A
// settlement is never said again when its outcome is unknown (take.go). The
// store's clock is bounded by this process's monotonic one, so that a step of
// it mints nothing (primaries.go).
//
// # A decision
//
// Costs above the contract are never possible. A denial of a moment ago
// answers its cost and larger ones. Tokens are taken from all of the
// request's budgets or from none. A shortage is a quota denial only on
// evidence: the region's own share is empty and will mint the cost, or the
// ledger refused lately. Without evidence the Keeper is asked for an urgent
// Sync and the decision waits, at most 50 ms or as long as the budget says;
// then the budget's failure mode holds.
//
// A cost of 0 is a peek: it charges nothing, and is allowed if a cost of 1
// could pass. A deleted budget limits nobody; what is still leased for it is
// not spent.
//
// # A round of the Keeper
//
// Read the row; open it, return or close what is not needed; begin, which
// writes what will be said into the row before it is said; send, with other
// budgets' items; install the answer. A crash between any two leaves nothing
// that another agent, or time, does not mend: what was begun is sent again
// exactly as it was, and after two round trips is superseded by a newer
// sequence with newer totals.
package agent
