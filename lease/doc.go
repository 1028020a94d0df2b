// Package lease holds the words that the global and the regional side share:
// tokens, rates, times, the Sync messages, and the errors. It uses nothing
// but the standard library. This comment is the protocol's reasoning.
//
// # Who decides what
//
// The ledger decides how many tokens exist and which region may spend them.
// It keeps a pool per budget: available tokens A, and for every unended lease
// its hold, which is what the lease may still spend without the ledger
// knowing; their sum is outstanding, O. A + O never exceeds the ceiling
// burst + float, so whatever regions do, they can spend no more in a window
// than that plus what time mints. Leased tokens are tokens of the bucket that
// happen to live in a region.
//
// The region's store decides whether a token is spent. It keeps a wallet per
// budget and changes it in single atomic steps. An agent decides nothing that
// matters for safety: it may crash, pause, or be one of many, at any point.
//
// # A lease's life
//
//	open      the store draws a nonce: the incarnation
//	begin     the store writes sequence, totals and anchor; only then is
//	          anything sent
//	sync      the ledger books, plans, grants, moves its reclaim, commits,
//	          and then replies with the lease's absolute state
//	install   the store applies the reply if it is to the pending sequence of
//	          this incarnation; deadline = anchor + ttl
//	take, use, give back, return
//	close     the store fences the lease; the next sync says so
//	end       closed with nothing held, expired, or regranted; for good
//
// # Why nothing is granted twice
//
// All numbers are cumulative or absolute. The last sequence and its outcome
// live on the lease's own row: a newer sequence is processed, the same one is
// answered again, an older one changes nothing. A crash between begin and
// install leaves a pending sequence in the wallet, which any agent of the
// region sends again as it stands. Two agents that race send the same thing.
//
// # The trust window
//
// The anchor is read on the store's clock before the first attempt is sent,
// and retries keep it; the ledger counts ttl and guard from after it
// received. So however long a message took, the region stops first, if clocks
// are no worse than [Clocks] declares. The guard has no term for the network.
// A reply that arrives late sets a deadline that has passed.
//
// # Failures
//
// The agent dies: its prefetch ages out, at most twice
// [LongestProcessDeadline] and its guard later, and the rest is in the wallet.
// The store restarts, or a replica is promoted: its replication id changes,
// rows that carry another are void, and a void wallet is an empty one; the
// ledger counts the lost lease until it expires, or, for a share that its
// region names as lost, until processes have stopped. The allocator dies:
// nothing was in it. The database dies: what was replied was durable, and an
// unknown commit is answered as unknown. The network is cut: the region spends
// what it holds until the deadline and then follows the budget's failure mode.
// Tokens can be lost in each of these, and are booked as written off; none can
// appear.
package lease
