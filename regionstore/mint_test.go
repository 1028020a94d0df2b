package regionstore

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
)

// A bucket whose callers see its clock with different lags never holds more
// than its cap, the fractions of tokens included, counting what the caller
// with the least lag can mint of it. Seen to catch: room for others rounded
// down, and a fraction kept by a bucket that an install fills.
func TestMintKeepsNoFractionAboveTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limit := lease.Tokens(rapid.IntRange(1, 20).Draw(t, "limit"))
		rate := lease.Rate{
			Tokens: lease.Tokens(rapid.IntRange(0, 50).Draw(t, "rate")),
			Per:    time.Duration(rapid.IntRange(1, 300).Draw(t, "period")) * time.Microsecond,
		}
		balance, mark, carry, now := lease.Tokens(0), lease.Time(1000), int64(0), lease.Time(1000)
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			now += lease.Time(rapid.IntRange(0, 200).Draw(t, "passes"))
			seen := now - lease.Time(rapid.IntRange(0, 100).Draw(t, "lag"))
			balance, mark, carry = mint(rate, limit, seen, now, balance, mark, carry)
			if rapid.Bool().Draw(t, "installed") {
				balance, carry = fill(balance, limit, lease.Tokens(rapid.IntRange(0, 3).Draw(t, "given")), carry)
				balance, mark, carry = mint(rate, limit, seen, now, balance, mark, carry)
			}
			if held := heldAt(rate, limit, now, balance, mark, carry); held.Cmp(big.NewRat(int64(limit), 1)) > 0 {
				t.Fatalf("holds %s of %d", held.FloatString(3), limit)
			}
			taken := lease.Tokens(rapid.Int64Range(0, int64(balance)).Draw(t, "taken"))
			balance -= taken
			if held := heldAt(rate, limit, now, balance, mark, carry); held.Cmp(big.NewRat(int64(limit-taken), 1)) > 0 {
				t.Fatalf("holds %s of %d after %d were taken", held.FloatString(3), limit, taken)
			}
		}
	})
}

// heldAt is what a caller without lag finds, with the fraction, exact.
func heldAt(rate lease.Rate, limit lease.Tokens, now lease.Time, balance lease.Tokens, mark lease.Time, carry int64) *big.Rat {
	balance, _, carry = mint(rate, limit, now, now, balance, mark, carry)
	held := big.NewRat(carry, int64(rate.Per/time.Microsecond))
	return held.Add(held, new(big.Rat).SetInt64(int64(balance)))
}

// Raw-full buckets lose nothing: a tiny one stays full under a lagging caller.
func TestLagCostsAFullBucketNothing(t *testing.T) {
	rate := lease.Rate{Tokens: 5, Per: time.Minute}
	balance, mark, carry := mint(rate, 1, 900, 1000, 1, 500, 7)
	if balance != 1 || mark != 1000 || carry != 0 {
		t.Errorf("balance %d, mark %d, carry %d; want 1, 1000, 0", balance, mark, carry)
	}
}
