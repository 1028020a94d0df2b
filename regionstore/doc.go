// Package regionstore is the region's side of every lease: the wallet, its
// pure step, and the interface of the stores that keep wallets.
//
// A wallet is one Row per budget. Each method of Store is one atomic step on
// it; the memory store runs the pure step under a mutex, the Redis store runs
// the same step as a script. Every step compares the row's replication id
// with the store's own: a store that restarted, was promoted, or came back
// from a snapshot makes the row void, and a missing or void row is an empty
// wallet, never a full one.
//
// # Who decides what
//
// The ledger decides what a lease holds, the store how long: its own clock,
// read inside the step, is compared with a deadline that counts from the clock
// as it stood before the ledger was asked. The callers' clocks only make the
// store more careful: they bound the time that mints and that ages what
// processes hold (Now).
//
// # A lease in the wallet
//
//	open ------> empty: it has a name, and nothing to spend
//	install ---> live, until its deadline; each install moves that
//	deadline --> dead: what was unspent is lost to the region
//	close -----> fenced: its balance is in Returned; only what processes hold
//	             of it can still be spent, used, given back, or aged out
//	ended -----> the ledger has no more to say; open begins another
//
// Begin on a dead lease fences it, so that its last totals can be told once;
// nobody has to, and a dead lease gives way after the guard of a process.
//
// # What is never more than the ledger counts
//
// For a lump Granted - Used - Returned, of which what processes hold is a
// part. For a share Beta: its balance and what processes hold stay at or below
// it together, and what processes hold at or below lease.PrefetchLimit of it,
// save that a closed share's whole Beta is in their memory. A share reports as
// Beta what it really keeps, which a cut below the prefetch limit's need does
// not reach at once.
//
// # What can go wrong outside
//
// A step of the store's clock forward ends leases early and mints nothing. One
// back, within the declared bound, is covered by the guards. An error of a
// Store means that the step may or may not have happened: every step but
// Take, Refill, TakeLocal and Settle may be repeated; a Take takes again unless it has a
// request id, and a Settle, or a Take with some, is never repeated, because by
// then its generation may count somebody else's tokens: what is lost in between
// ages out.
package regionstore
