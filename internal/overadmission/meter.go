// Package overadmission measures, while decisions are made, by how much they
// exceed a contract, and says how much a budget promises at most.
package overadmission

import (
	"sync"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Excess is what was admitted above burst + rate·W at worst, rounded up;
// negative is headroom.
type Excess struct {
	// Window is W; 0 means the worst of all windows of any length.
	Window time.Duration
	// Tokens is the excess.
	Tokens lease.Tokens
}

// Meter measures one budget's admissions. Safe for concurrent use.
type Meter struct {
	mu       sync.Mutex
	contract policy.Contract
	last     lease.Time
	admitted lease.Tokens
	any      lindley
	windows  []sliding
	calendar calendar
}

// New returns a meter of a contract. Windows are the lengths to measure beside
// windows of any length; a quota has only its calendar windows.
func New(c policy.Contract, windows ...time.Duration) *Meter {
	m := &Meter{contract: c}
	if c.IsQuota() {
		return m
	}
	for _, w := range windows {
		m.windows = append(m.windows, sliding{length: w})
	}
	return m
}

// Add counts n tokens that were admitted at an instant. Earlier instants than
// the last one count as the last one.
func (m *Meter) Add(at lease.Time, n lease.Tokens) {
	m.mu.Lock()
	defer m.mu.Unlock()
	at = max(at, m.last)
	m.admitted += n
	if m.contract.IsQuota() {
		m.calendar.add(m.contract.Quota, at, n)
	} else {
		m.any.add(m.contract.Rate, at.Sub(m.last), n)
		for i := range m.windows {
			m.windows[i].add(at, n)
		}
	}
	m.last = at
}

// Admitted returns the sum of all tokens added.
func (m *Meter) Admitted() lease.Tokens {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.admitted
}

// Worst returns the excess over each window length, and first over any.
func (m *Meter) Worst() []Excess {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.contract.IsQuota() {
		return []Excess{{Tokens: m.calendar.most - m.contract.Quota.N}}
	}
	out := []Excess{{Tokens: m.any.most - m.contract.Burst}}
	for _, w := range m.windows {
		minted, _ := m.contract.Rate.Mint(w.length, 0)
		out = append(out, Excess{Window: w.length, Tokens: w.most - m.contract.Burst - minted})
	}
	return out
}

// lindley is the level of a queue that admissions fill and the rate drains:
// its peak is the worst of burst + excess over windows of any length.
type lindley struct {
	level, most lease.Tokens
	carry       int64
}

func (q *lindley) add(r lease.Rate, elapsed time.Duration, n lease.Tokens) {
	drained, carry := r.Mint(elapsed, q.carry)
	q.level, q.carry = q.level-drained, carry
	if q.level <= 0 {
		q.level, q.carry = 0, 0
	}
	q.level += n
	q.most = max(q.most, q.level)
}

// sliding sums the admissions of the half-open window (t - length, t].
type sliding struct {
	length    time.Duration
	events    []event
	sum, most lease.Tokens
}

type event struct {
	at lease.Time
	n  lease.Tokens
}

func (s *sliding) add(at lease.Time, n lease.Tokens) {
	gone := 0
	for gone < len(s.events) && at.Sub(s.events[gone].at) >= s.length {
		s.sum -= s.events[gone].n
		gone++
	}
	s.events = s.events[gone:]
	if k := len(s.events); k > 0 && s.events[k-1].at == at {
		s.events[k-1].n += n
	} else {
		s.events = append(s.events, event{at, n})
	}
	s.sum += n
	s.most = max(s.most, s.sum)
}

// calendar sums the admissions of each calendar window.
type calendar struct {
	end       lease.Time
	sum, most lease.Tokens
}

func (c *calendar) add(q policy.Quota, at lease.Time, n lease.Tokens) {
	if at >= c.end {
		_, end, err := policy.Window(q.Zone, q.Per, at)
		if err != nil {
			end = 1<<63 - 1 // a validated quota has a zone
		}
		c.end, c.sum = end, 0
	}
	c.sum += n
	c.most = max(c.most, c.sum)
}
