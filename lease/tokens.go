package lease

import (
	"fmt"
	"math/bits"
	"time"
)

// Tokens counts permissions for one unit of cost. Negative only for a pool in
// debt. At most MaxTokens, because the region's store counts in doubles.
type Tokens int64

// MaxTokens is the largest amount any part of the system handles: 2^53 - 1.
const MaxTokens Tokens = 1<<53 - 1

// Time is an instant on one clock, in microseconds since the Unix epoch. The
// ledger's and each store's times are never compared with one another, and
// never travel: messages carry durations. The zero value means "never".
type Time int64

// Add returns t moved by d, d truncated to whole microseconds. It saturates
// instead of wrapping.
func (t Time) Add(d time.Duration) Time {
	sum := t + Time(d/time.Microsecond)
	if d > 0 && sum < t {
		return 1<<63 - 1
	}
	if d < 0 && sum > t {
		return -1 << 63
	}
	return sum
}

// Sub returns the time from u to t, saturated at the range of time.Duration.
func (t Time) Sub(u Time) time.Duration {
	us := int64(t - u)
	const limit = int64(1<<63-1) / int64(time.Microsecond)
	return time.Duration(max(-limit, min(limit, us))) * time.Microsecond
}

// MaxPeriod bounds Rate.Per, so that the region's store can mint in doubles
// without rounding (31 days is below 2^42 microseconds).
const MaxPeriod = 31 * 24 * time.Hour

// Rate is a whole number of tokens per period. The zero value mints nothing.
// Per is a whole number of microseconds, at most MaxPeriod.
type Rate struct {
	Tokens Tokens        `json:"tokens"`
	Per    time.Duration `json:"per"`
}

// Zero reports whether the rate mints nothing.
func (r Rate) Zero() bool { return r.Tokens <= 0 || r.Per <= 0 }

// PerSecond returns the rate in tokens per second, for estimates only: it
// rounds. Ledger arithmetic never uses it.
func (r Rate) PerSecond() float64 {
	if r.Zero() {
		return 0
	}
	return float64(r.Tokens) / r.Per.Seconds()
}

func (r Rate) String() string { return fmt.Sprintf("%d/%v", r.Tokens, r.Per) }

// period returns Per in microseconds.
func (r Rate) period() uint64 { return uint64(r.Per / time.Microsecond) }

// Mint returns the whole tokens that r makes in elapsed, and the remainder to
// carry into the next call: tokens·microseconds not yet worth a token, in
// [0, Per in microseconds). A carry outside that range is taken as 0, so a
// changed period loses less than one token and gains none. elapsed <= 0 mints
// nothing. The result saturates at MaxTokens, with the carry dropped.
func (r Rate) Mint(elapsed time.Duration, carry int64) (Tokens, int64) {
	if r.Zero() {
		return 0, 0
	}
	period := r.period()
	if carry < 0 || uint64(carry) >= period {
		carry = 0
	}
	if elapsed <= 0 {
		return 0, carry
	}
	hi, lo := bits.Mul64(uint64(elapsed/time.Microsecond), uint64(r.Tokens))
	lo, c := bits.Add64(lo, uint64(carry), 0)
	hi += c
	if hi >= period {
		return MaxTokens, 0
	}
	n, rest := bits.Div64(hi, lo, period)
	if n > uint64(MaxTokens) {
		return MaxTokens, 0
	}
	return Tokens(n), int64(rest)
}

// TimeFor returns the shortest time in which r, with carry left from before,
// makes n tokens, rounded up to a microsecond, and false when it never does.
func (r Rate) TimeFor(n Tokens, carry int64) (time.Duration, bool) {
	if n <= 0 {
		return 0, true
	}
	if r.Zero() {
		return 0, false
	}
	period := r.period()
	if carry < 0 || uint64(carry) >= period {
		carry = 0
	}
	hi, lo := bits.Mul64(uint64(n), period)
	lo, borrow := bits.Sub64(lo, uint64(carry), 0)
	hi -= borrow
	lo, c := bits.Add64(lo, uint64(r.Tokens)-1, 0)
	hi += c
	const longest = 1<<63 - 1
	if hi >= uint64(r.Tokens) {
		return longest, true
	}
	us, _ := bits.Div64(hi, lo, uint64(r.Tokens))
	if us > longest/uint64(time.Microsecond) {
		return longest, true
	}
	return time.Duration(us) * time.Microsecond, true
}

// In returns r in tokens per the given period: rounded down, or up when up is
// set. Counting what others hold rounds up, granting rounds down, so that a
// change of unit never makes room. Saturates at MaxTokens.
func (r Rate) In(per time.Duration, up bool) Rate {
	if r.Zero() || per <= 0 {
		return Rate{Per: per}
	}
	if r.Per == per {
		return r
	}
	period := r.period()
	hi, lo := bits.Mul64(uint64(r.Tokens), uint64(per/time.Microsecond))
	if hi >= period {
		return Rate{Tokens: MaxTokens, Per: per}
	}
	n, rest := bits.Div64(hi, lo, period)
	if up && rest > 0 {
		n++
	}
	return Rate{Tokens: Tokens(min(n, uint64(MaxTokens))), Per: per}
}

// Fine returns the same rate over a longer period, with at least 1000 tokens
// in it where MaxPeriod allows, so that a part of a small rate (a third of 5
// per minute) is still a whole number of tokens per period.
func (r Rate) Fine() Rate {
	if r.Zero() || r.Tokens >= 1000 {
		return r
	}
	k := (1000 + r.Tokens - 1) / r.Tokens
	k = min(k, Tokens(MaxPeriod/r.Per))
	if k <= 1 {
		return r
	}
	return Rate{Tokens: r.Tokens * k, Per: r.Per * time.Duration(k)}
}
