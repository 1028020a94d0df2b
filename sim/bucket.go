package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// bucket is a token bucket in whole tokens on true time, whose level may fall
// below 0 where it is made to.
type bucket struct {
	rate  lease.Rate
	burst lease.Tokens
	level lease.Tokens
	carry int64
	at    time.Duration
	// uncapped buckets keep what is above the burst.
	uncapped bool
}

// advance mints up to now and reports whether the bucket is full.
func (b *bucket) advance(now time.Duration) bool {
	if now > b.at {
		var n lease.Tokens
		n, b.carry = b.rate.Mint(now-b.at, b.carry)
		b.level += n
		b.at = now
	}
	if b.level < b.burst || b.uncapped {
		return false
	}
	b.level, b.carry = b.burst, 0
	return true
}

// fit is how many of n requests of a cost the bucket has now.
func (b *bucket) fit(n int64, cost lease.Tokens) int64 {
	if b.level < cost {
		return 0
	}
	return min(n, int64(b.level/cost))
}

// change puts another contract in force: it mints nothing.
func (b *bucket) change(now time.Duration, rate lease.Rate, burst lease.Tokens) {
	b.advance(now)
	if b.rate.Per != rate.Per {
		b.carry = 0
	}
	if b.uncapped {
		b.level += burst - b.burst
	}
	b.rate, b.burst = rate, burst
	if !b.uncapped {
		b.level = min(b.level, burst)
	}
}

// windowMeter finds the largest sum of admitted tokens over windows of length
// w that begin at a multiple of w/1024.
type windowMeter struct {
	w, cell time.Duration
	// cells are those of the last window that are not empty, from first on.
	cells   []cellSum
	first   int
	sum     lease.Tokens
	over    lease.Tokens
	at      time.Duration
	allowed lease.Tokens
}

type cellSum struct {
	index int64
	sum   lease.Tokens
}

const cellsPerWindow = 1024

func newWindowMeter(w time.Duration) *windowMeter {
	return &windowMeter{w: w, cell: max(w/cellsPerWindow, time.Microsecond).Truncate(time.Microsecond)}
}

// allow sets what the contract allows in a window, burst and minting, and
// begins anew.
func (m *windowMeter) allow(rate lease.Rate, burst lease.Tokens) {
	minted, _ := rate.Mint(m.span(), 0)
	m.allowed = burst + minted
	m.cells, m.first, m.sum = m.cells[:0], 0, 0
}

// span is the window's length in whole cells; no longer than w.
func (m *windowMeter) span() time.Duration { return m.w / m.cell * m.cell }

func (m *windowMeter) admit(now time.Duration, n lease.Tokens) {
	index := int64(now / m.cell)
	oldest := index - int64(m.w/m.cell)
	for m.first < len(m.cells) && m.cells[m.first].index <= oldest {
		m.sum -= m.cells[m.first].sum
		m.first++
	}
	if m.first > cellsPerWindow {
		m.cells = append(m.cells[:0], m.cells[m.first:]...)
		m.first = 0
	}
	if last := len(m.cells) - 1; last >= m.first && m.cells[last].index == index {
		m.cells[last].sum += n
	} else {
		m.cells = append(m.cells, cellSum{index, n})
	}
	m.sum += n
	if m.sum-m.allowed > m.over {
		m.over, m.at = m.sum-m.allowed, now
	}
}
