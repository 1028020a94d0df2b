// Package redis keeps a region's wallets in Redis 6.2 or later: a single
// primary, one behind Sentinels, or a Cluster.
//
// Each step of the wallet is one Lua script (lua/*.lua behind lua/prelude.lua)
// over one string per row, whose numbers and names stand packed one behind the
// other. A script reads the server's clock and replication id itself, so
// that the deadline is checked where tokens are spent and a restart, a
// promotion or an old snapshot makes every row void. All writes come at a
// step's end: one that fails, also for lack of memory, has changed nothing.
//
// Nothing is ever sent twice by this package or by the client library below
// it: an error means that the outcome is unknown. Only what the server
// certainly did not run is sent again: an unknown script (NOSCRIPT), or a
// slot that lives elsewhere (MOVED, ASK).
//
// Steps that come while others are on the wire gather and share the next round
// trip; one that comes alone leaves at once, from its caller's goroutine. A
// caller never waits longer than its own deadline, a step whose caller has left
// is not sent, and only so many wait for one primary (lane.go). Those of one
// script and slot that travel together also share a run of it, as half of what
// a short one costs a server is its beginning (run.go): each has its own answer,
// and its own failure.
//
// Where INFO is forbidden in scripts, the replication id is read on every new
// connection instead, which needs a client made by Open and a single primary:
// a step that was built before a failover and sent after it over a connection
// made by another step is then not fenced.
package redis
