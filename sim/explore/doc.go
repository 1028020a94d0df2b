// Package explore runs every interleaving of a small deployment, by breadth
// first search, over the production steps themselves: regionstore.Step for the
// region's stores, allocation.Sync, Listen, Sweep and SetBudget for the ledger.
//
// # What is in a state
//
// One budget; one region with its store, and after a fail-over the isolated
// old primary beside it; the rest of the world, which spends from the pool at
// once; up to two processes of the region with tokens in their memory; all
// messages ever sent. Requests and replies can be delivered any number of
// times in any order, to any store, and need never be. Incarnations are
// numbered as they are drawn; there is no randomness and no jitter. What a
// process does with its prefetch is a small model of the agent's pocket (it is
// the agent's alone); all else is production code.
//
// # Time
//
// The unit is a tick of one second. True time passes with every tick; each
// clock (ledger, store, process) ticks along or stands, as long as none falls
// behind another by more than the drift, which is exactly what lease.Clocks
// declares here as the largest backward step. So a guard that is one tick
// shorter than it must be is found out, and what time mints is never more than
// true time allows. Steps of the store's clock, forward and back, are faults
// of their own.
//
// # Why a run ends
//
// The numbers of sequences per lease, of incarnations per kind, and of faults
// are bounded by the configuration; time is not, unless Ticks says so. Times
// are kept relative to the clock they were read from, cumulative sums that no
// step reads are left out, generations are renamed by order, and processes are
// interchangeable, so that states which cannot be told apart by anything that
// may still happen are one. States are told apart by 128 bits of hash.
//
// # What is checked
//
// After every step, allocation.CheckStep (invariants 1, 2, 3, 4 and 6 as far as
// the ledger shows them); no lease can spend more than the ledger counts for it
// (5, 10); a void or missing row holds nothing (7); local admissions stay
// within their allowance (9); and, by Lindley's recursion, in no window more is
// admitted than burst + float + rate·window, and over the lifetime no more than
// burst + rate·time (8 and all the rest).
package explore
