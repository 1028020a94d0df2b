package agent

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// localBucket is one process's part of a budget's local allowance, for when
// the store is down too: a bucket of 1/agents of it that starts empty at each
// outage and that no reconnection refills. So all the processes of a region
// together never have more than one such bucket mints in an outage. Its
// entry's mutex guards it.
type localBucket struct {
	// primary is the store whose outage it lives through.
	primary string
	balance lease.Tokens
	carry   int64
	mark    time.Duration
	started bool
	// total is cumulative: what is reported to the ledger as debt.
	total lease.Tokens
	// credit was counted in total, in this process or in the store, for
	// decisions that another budget then refused: it is spent first, so that a
	// denial costs nothing and no total ever decreases.
	credit lease.Tokens
}

// takeCredit spends credit, all of the cost or nothing.
func (l *localBucket) takeCredit(cost lease.Tokens) bool {
	if l.credit < cost {
		return false
	}
	l.credit -= cost
	return true
}

// outage empties the bucket unless it has lived through this outage of the
// store: the same primary, which last answered at the given time, before the
// bucket was used.
func (l *localBucket) outage(primary string, answered time.Duration) {
	if l.started && (primary != l.primary || answered > l.mark) {
		l.started, l.balance, l.carry = false, 0, 0
	}
	l.primary = primary
}

// take takes cost, whole or not at all, and otherwise says when it could
// pass; negative for never.
func (l *localBucket) take(f policy.Failure, agents int64, cost lease.Tokens, now time.Duration) (ok bool, retry time.Duration) {
	rate := lease.Rate{Tokens: f.Rate.Tokens, Per: f.Rate.Per * time.Duration(agents)}
	burst := f.Burst / lease.Tokens(agents)
	l.advance(rate, burst, now)
	if l.balance >= cost {
		l.balance -= cost
		l.total += cost
		return true, 0
	}
	wait, ever := rate.TimeFor(cost-l.balance, l.carry)
	if !ever || cost > burst {
		return false, -1
	}
	return false, wait
}

func (l *localBucket) advance(rate lease.Rate, burst lease.Tokens, now time.Duration) {
	if !l.started {
		l.started, l.mark = true, now
	}
	if now < l.mark {
		return
	}
	minted, carry := rate.Mint(now-l.mark, l.carry)
	l.mark, l.carry = now, carry
	if l.balance+minted >= burst {
		l.balance, l.carry = burst, 0
		return
	}
	l.balance += minted
}
