// Package errorbound computes what a budget guarantees before it is applied:
// the most that may be admitted above its contract in any window, as a sum of
// named causes; what is lost for that guarantee; and, the other way about, the
// settings that keep a wanted bound.
//
// # What is counted
//
// A token is admitted at its decision instant: when the store's script takes
// it or, of prefetched ones, when the process reads its clock after it took
// the token. Let V be what can be spent anywhere without asking the ledger
// again: the pool's available tokens and every unspent token in a region. The
// ledger keeps available + outstanding within its ceiling, burst + float, and
// a wallet never holds more than is outstanding for it, so V stands within the
// ceiling too. V rises by minting and by nothing else, at most rate·W within
// any W. So a window admits at most V at its beginning and what is minted in
// it: burst + float + rate·W on the ledger's clock. Everything else is a
// surcharge, and each is one Cause.
//
// Fractions: count with V the remainders of all mintings, tokens that are not
// yet whole. The sum rises by exactly rate·W, so minting in several places rounds
// nothing up, and it stands within the ceiling too: no wallet keeps a remainder
// above its cap, and a pool that is full keeps none. A grant may move a pool's
// last room into a share while the pool has a remainder, but the share is then
// emptier by at least a token, and at the next later instant the pool is full.
//
// A change of a rate's unit rounds too: what the ledger counts of shares rounds
// up, and may stand above the rate until regions have heard of it, while what they
// are told, and so what is minted, rounds down. It adds nothing.
//
// Clocks are read in whole ticks of a microsecond. A window may begin just before
// the next tick and end with one, so that a tick more is minted for than has
// passed. That is the cause Rounding: a token, where the rate is not above one
// per tick, for what is admitted is whole.
//
// # Three that are easily overlooked
//
// The simulator found each of them where the bound had been 0.
//
// A share that is installed while its store's clock is behind mints from then.
// Once the clock is set right, the agent that was there meanwhile sees a step;
// another one, who saw the clock only before and after, sees time that passed.
// That is StoreStep: as much as the clock had been stepped back.
//
// A quota's windows follow the database's clock as it stands, and a lease's
// deadline lies before its window's end by that clock. When it is stepped over
// the end, what is out of the old window is spent in the new one: WindowEdge.
//
// After a fail-over with an isolated old primary, each of the two stores finds
// that the ledger counts a share that its own row does not have, and asks that
// it be regranted. So it may be the new primary's share that the ledger has
// taken back, which outlives the isolation: RegrantedShare.
//
// # How causes add
//
// Float, drift, clock steps and the excess of a cut limit are state and count
// once; faults count once per event in the window or, where what they made can
// still be spent, before it. The excess of a cut replaces the float where it
// is larger, so the two are listed as the float and what the cut adds to it.
// Every cause is in tokens, rounded up, and they are summed.
//
// All arithmetic is exact, in rational numbers. A bound that does not fit its
// type saturates upwards.
package errorbound
