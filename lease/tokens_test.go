package lease_test

import (
	"math/big"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
)

func anyRate(t *rapid.T) lease.Rate {
	return lease.Rate{
		Tokens: lease.Tokens(rapid.Int64Range(1, int64(lease.MaxTokens)).Draw(t, "tokens")),
		Per:    time.Duration(rapid.Int64Range(1, int64(lease.MaxPeriod/time.Microsecond)).Draw(t, "per")) * time.Microsecond,
	}
}

func micros(d time.Duration) *big.Int { return big.NewInt(int64(d / time.Microsecond)) }

// Mint against arbitrary precision. Seen to catch: the carry left out of the
// 128-bit sum.
func TestMintIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		elapsed := time.Duration(rapid.Int64Range(0, 1<<62).Draw(t, "elapsed"))
		carry := rapid.Int64Range(0, int64(r.Per/time.Microsecond)-1).Draw(t, "carry")

		work := new(big.Int).Mul(micros(elapsed), big.NewInt(int64(r.Tokens)))
		work.Add(work, big.NewInt(carry))
		want, rest := new(big.Int).QuoRem(work, micros(r.Per), new(big.Int))

		got, left := r.Mint(elapsed, carry)
		if want.Cmp(big.NewInt(int64(lease.MaxTokens))) > 0 {
			if got != lease.MaxTokens || left != 0 {
				t.Fatalf("Mint = %d, %d; want saturation", got, left)
			}
			return
		}
		if want.Cmp(big.NewInt(int64(got))) != 0 || rest.Cmp(big.NewInt(left)) != 0 {
			t.Fatalf("Mint = %d, %d; want %v, %v", got, left, want, rest)
		}
	})
}

// However an interval is cut into steps, the same tokens are minted: polling
// often neither loses fractions nor gains them.
func TestMintDoesNotDependOnTheSteps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := lease.Rate{
			Tokens: lease.Tokens(rapid.Int64Range(1, 1_000_000).Draw(t, "tokens")),
			Per:    time.Duration(rapid.Int64Range(1, 100_000_000).Draw(t, "per")) * time.Microsecond,
		}
		steps := rapid.SliceOfN(rapid.Int64Range(-5, 1_000_000), 1, 50).Draw(t, "steps")
		var total time.Duration
		var sum lease.Tokens
		var carry int64
		for _, us := range steps {
			var n lease.Tokens
			d := time.Duration(us) * time.Microsecond
			n, carry = r.Mint(d, carry)
			sum += n
			total += max(d, 0)
		}
		if once, _ := r.Mint(total, 0); once != sum {
			t.Fatalf("in steps %d, at once %d", sum, once)
		}
	})
}

// TimeFor is the first instant at which Mint has made the tokens: "retry
// after" rounds up, and at the stated instant the request passes.
func TestTimeForIsTheFirstInstant(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := lease.Rate{
			Tokens: lease.Tokens(rapid.Int64Range(1, 1_000_000_000).Draw(t, "tokens")),
			Per:    time.Duration(rapid.Int64Range(1, 1_000_000_000).Draw(t, "per")) * time.Microsecond,
		}
		n := lease.Tokens(rapid.Int64Range(1, 1_000_000).Draw(t, "n"))
		carry := rapid.Int64Range(0, int64(r.Per/time.Microsecond)-1).Draw(t, "carry")
		d, ok := r.TimeFor(n, carry)
		if !ok {
			t.Fatal("never")
		}
		if got, _ := r.Mint(d, carry); got < n {
			t.Fatalf("after %v only %d of %d", d, got, n)
		}
		if d > 0 {
			if got, _ := r.Mint(d-time.Microsecond, carry); got >= n {
				t.Fatalf("already %d of %d a microsecond before %v", got, n, d)
			}
		}
	})
}

func TestZeroAndNegativeMintNothing(t *testing.T) {
	r := lease.Rate{Tokens: 5, Per: time.Second}
	for name, got := range map[string]lease.Tokens{
		"zero rate":    first(lease.Rate{}.Mint(time.Hour, 7)),
		"time back":    first(r.Mint(-time.Hour, 7)),
		"no time":      first(r.Mint(0, 7)),
		"foreign unit": first(r.Mint(time.Microsecond, 1<<60)),
	} {
		if got != 0 {
			t.Errorf("%s minted %d", name, got)
		}
	}
	if _, ok := (lease.Rate{}).TimeFor(1, 0); ok {
		t.Error("a zero rate makes a token some day")
	}
}

func first(n lease.Tokens, _ int64) lease.Tokens { return n }

// A change of unit never makes room: what is held rounds up, what is granted
// rounds down, and Fine is exact.
func TestChangeOfUnit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRate(t)
		per := time.Duration(rapid.Int64Range(1, int64(lease.MaxPeriod/time.Microsecond)).Draw(t, "other")) * time.Microsecond
		up, down := r.In(per, true), r.In(per, false)
		if up.Tokens < lease.MaxTokens && cross(up, r) < 0 {
			t.Fatalf("%v rounded up to %v is less", r, up)
		}
		if cross(down, r) > 0 {
			t.Fatalf("%v rounded down to %v is more", r, down)
		}
		if fine := r.Fine(); cross(fine, r) != 0 || fine.Per > lease.MaxPeriod {
			t.Fatalf("%v is not %v", fine, r)
		}
	})
	if got := (lease.Rate{Tokens: 5, Per: time.Minute}).Fine(); got.Tokens < 1000 {
		t.Errorf("5/min is counted in %v", got)
	}
}

// cross compares a with b exactly.
func cross(a, b lease.Rate) int {
	l := new(big.Int).Mul(big.NewInt(int64(a.Tokens)), micros(b.Per))
	return l.Cmp(new(big.Int).Mul(big.NewInt(int64(b.Tokens)), micros(a.Per)))
}

func TestTimeSaturates(t *testing.T) {
	const last = lease.Time(1<<63 - 1)
	if got := last.Add(time.Hour); got != last {
		t.Errorf("Add wrapped to %d", got)
	}
	if got := (-last).Add(-time.Hour); got > 0 {
		t.Errorf("Add wrapped to %d", got)
	}
	if got := last.Sub(0); got <= 0 {
		t.Errorf("Sub wrapped to %v", got)
	}
}
