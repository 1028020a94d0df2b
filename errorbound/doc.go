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
// Fractions: counted with the remainders of all mintings, V rises by exactly
// rate·W, so minting in several places rounds nothing up. No wallet keeps a
// remainder above its cap. The pool alone may: its remainder stays when a
// grant moves its last room into a region, so V may stand above the ceiling by
// less than a token, once. That is the cause Rounding.
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
