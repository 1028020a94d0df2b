package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// blame gives every token that a policer of the contract would have refused
// one cause: its own, if it was not legitimate; else that of the
// oldest illegitimate token of the busy period, which took its place; else
// what clocks and faults made; else the float. What is left is unexplained.
type blame struct {
	causes map[CauseName]lease.Tokens
	total  lease.Tokens
	// displaced are illegitimate tokens that were within the contract when they
	// were spent, in this busy period.
	displaced []Cause
	// since is when the busy period began; drifted, raced, rounded and floated
	// what of these allowances was used in it.
	since                            time.Duration
	drifted, raced, rounded, floated lease.Tokens
	failover, cut, stepped           lease.Tokens
	excess                           lease.Rate
	excessCarry                      int64
	excessAt                         time.Duration
}

// forget begins a new busy period: the bucket is full.
func (b *blame) forget(now time.Duration) {
	b.displaced = b.displaced[:0]
	b.since, b.drifted, b.raced, b.rounded, b.floated = now, 0, 0, 0, 0
}

// spend books tokens within the contract and tokens beyond it.
func (b *blame) spend(m *budget, within, beyond lease.Tokens, class CauseName) {
	if class != "" && within > 0 {
		b.displaced = append(b.displaced, Cause{class, within})
	}
	if beyond == 0 {
		return
	}
	b.total += beyond
	if class != "" {
		b.charge(class, beyond)
		return
	}
	for beyond > 0 && len(b.displaced) > 0 {
		oldest := &b.displaced[0]
		n := min(beyond, oldest.Tokens)
		b.charge(oldest.Name, n)
		beyond -= n
		if oldest.Tokens -= n; oldest.Tokens == 0 {
			b.displaced = b.displaced[1:]
		}
	}
	if beyond > 0 {
		b.allowances(m, beyond)
	}
}

// allowances charges what no token of its own class explains.
func (b *blame) allowances(m *budget, n lease.Tokens) {
	switch {
	case m.w.o.Strategy == CountLocally:
		b.charge(CauseWriteBack, n)
		return
	case m.policy.Strategy == policy.Independent && len(m.policy.Regions) > 1 && m.w.o.Strategy != Central:
		b.charge(CauseIndependent, n)
		return
	}
	b.accrue(m.w.now)
	use := func(cause CauseName, used *lease.Tokens, allowed lease.Tokens) {
		k := max(0, min(n, allowed-*used))
		if k > 0 {
			*used += k
			n -= k
			b.charge(cause, k)
		}
	}
	take := func(cause CauseName, pool *lease.Tokens) {
		k := max(0, min(n, *pool))
		if k > 0 {
			*pool -= k
			n -= k
			b.charge(cause, k)
		}
	}
	declared := min(m.w.fastest, m.w.allowed)
	use(CauseDrift, &b.drifted, m.driftSince(b.since, declared))
	use(CauseClock, &b.raced, m.driftSince(b.since, m.w.fastest)-m.driftSince(b.since, declared))
	if !m.policy.Contract.IsQuota() {
		use(CauseRounding, &b.rounded, m.policy.RoundingSurcharge(1))
	}
	take(CauseStep, &b.stepped)
	take(CauseFailover, &b.failover)
	take(CauseCut, &b.cut)
	use(CauseFloat, &b.floated, m.policy.Float)
	if n > 0 {
		b.charge(Unexplained, n)
		m.w.violate("attribution", m.name, "%d tokens beyond the contract have no cause", n)
	}
}

// accrue counts what shares mint whose rates a cut has not yet reached.
func (b *blame) accrue(now time.Duration) {
	if b.excess.Zero() {
		b.excessAt = now
		return
	}
	var n lease.Tokens
	n, b.excessCarry = b.excess.Mint(now-b.excessAt, b.excessCarry)
	b.cut += n
	b.excessAt = now
}

func (b *blame) charge(cause CauseName, n lease.Tokens) {
	if b.causes == nil {
		b.causes = map[CauseName]lease.Tokens{}
	}
	b.causes[cause] += n
}

// list names the causes in a fixed order.
func (b *blame) list() []Cause {
	var all []Cause
	for _, name := range [...]CauseName{
		CauseFloat, CauseDrift, CauseRounding, CauseLocal, CauseRegrant, CauseSuspended,
		CauseIndependent, CauseCut, CauseFailover, CauseWriteBack, CauseStep, CauseClock, Unexplained,
	} {
		if n := b.causes[name]; n > 0 {
			all = append(all, Cause{name, n})
		}
	}
	return all
}

// driftSince is what clocks that are so fast may have minted too much since a
// time.
func (m *budget) driftSince(since time.Duration, ppm int64) lease.Tokens {
	if ppm <= 0 || m.policy.Contract.IsQuota() {
		return 0
	}
	rate := m.policy.Contract.Rate
	n, rest := rate.Mint(drifted(m.w.now-since, ppm)-(m.w.now-since), 0)
	if rest > 0 {
		n++
	}
	return n
}
