package regionstore

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Minting without 128-bit products, for an implementation in doubles.
// lease.Rate.Mint is
// floor((elapsed·tokens + carry) / period), where elapsed and tokens are below
// 2^53 and period is below 2^42 (lease.MaxPeriod). In doubles, exactly:
//
//	tdiv, tmod = tokens div period, tokens mod period
//	q, rem = 0, 0
//	for each digit d of elapsed in base 1024, from the highest:
//	    rem = rem·1024 + d·tmod              -- two terms below 2^52
//	    q   = q·1024 + d·tdiv + rem div period   -- (rem - rem % period) / period
//	    rem = rem mod period
//	    if q > 2^53 - 1: return 2^53 - 1, 0  -- it can only grow
//	rem = rem + carry; if rem >= period: q = q + 1, rem = rem - period
//	if q > 2^53 - 1: return 2^53 - 1, 0
//
// A q that is not exact is already above the bound. lease.Rate.In rounded down
// is the same with elapsed = the new period and carry = 0.
//
// Waits need ceil((n·period - carry) / tokens) with a divisor of up to 2^53:
// the same in base 2, with the carry subtracted at the end, and doubling and
// adding done modulo tokens as "if a >= tokens - b then a - (tokens - b), carry
// one, else a + b". They saturate at 2^52 (maxWait).

// mint brings a share's balance up to what a caller has seen, its deadline at
// the latest.
func (l *Lease) mint(seen, now lease.Time) {
	l.Balance, l.Mark, l.Carry = mint(l.X, l.Beta-l.counted(),
		min(seen, l.Deadline), min(now, l.Deadline), l.Balance, l.Mark, l.Carry)
}

// mint advances a bucket from its mark to seen; an earlier seen mints nothing.
// Another caller may mint the time from the mark to now, the raw clock, in its
// next step; so room for that is kept free, or a bucket that was full all the
// time could be spent from and filled again in one instant. The room is rounded
// up, and a bucket that was full up to now keeps no fraction of a token: with
// what it may still mint it never holds more than its cap, not even in parts.
func mint(rate lease.Rate, limit lease.Tokens, seen, now lease.Time,
	balance lease.Tokens, mark lease.Time, carry int64,
) (lease.Tokens, lease.Time, int64) {
	if seen > mark {
		var n lease.Tokens
		n, carry = rate.Mint(seen.Sub(mark), carry)
		balance, carry = fill(balance, limit, n, carry)
		mark = seen
	}
	if now > mark {
		n, rest := rate.Mint(now.Sub(mark), carry)
		switch {
		case n == 0 && balance >= limit:
			return max(0, limit), now, 0
		case n > 0 && rest > 0:
			n++
		}
		balance = max(0, min(balance, limit-n))
	}
	return balance, mark, carry
}

// fill adds n tokens to a bucket and drops what is above its cap. A full
// bucket keeps no fraction, so that balance plus fraction never exceed the cap.
func fill(balance, limit, n lease.Tokens, carry int64) (lease.Tokens, int64) {
	if n >= limit-balance {
		return max(limit, 0), 0
	}
	return balance + n, carry
}

// wait is the time in which rate makes n tokens, or never.
func wait(rate lease.Rate, n lease.Tokens, carry int64) time.Duration {
	d, ok := rate.TimeFor(n, carry)
	if !ok {
		return never
	}
	return min(d, maxWait)
}

// mintIn is how long the live shares need, from seen, to mint n more tokens
// together: alone where one has the room, else one filled up and the rest from
// the other; the shorter of the ways, or never.
func (s Step) mintIn(row *Row, n lease.Tokens, seen lease.Time) time.Duration {
	if n <= 0 {
		return 0
	}
	var room [2]lease.Tokens
	for i := range room {
		if l := &row.Leases[i]; s.alive(l) && !l.X.Zero() {
			room[i] = l.Beta - l.counted() - l.Balance
		}
	}
	best := never
	for i := range room {
		mine := min(n, room[i])
		rest := n - mine
		if mine <= 0 || rest > room[1-i] {
			continue
		}
		d := row.Leases[i].waitFor(mine, seen)
		if rest > 0 {
			d = max(d, row.Leases[1-i].waitFor(rest, seen))
		}
		if best == never || d < best {
			best = d
		}
	}
	return best
}

// waitFor is the time from seen until the share has minted n more tokens; its
// mark may lie ahead of what this caller has seen.
func (l *Lease) waitFor(n lease.Tokens, seen lease.Time) time.Duration {
	return min(wait(l.X, n, l.Carry)+behind(l.Mark, seen), maxWait)
}

// behind is how far a caller has yet to come to reach the mark.
func behind(mark, seen lease.Time) time.Duration {
	return max(0, min(mark.Sub(seen), maxWait))
}
