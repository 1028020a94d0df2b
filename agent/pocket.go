package agent

import (
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// pocket is the tokens of one budget that this process holds in its memory:
// the prefetch. Its entry's mutex guards it, save for the parts' free tokens.
// The zero value is empty.
type pocket struct {
	parts []*part
	// touched is when a token was last taken, hot decisions' demand as it was
	// last asked for included.
	touched time.Duration
	// gone is what hot decisions used of parts that are settled whole, and
	// demand did not tell yet.
	gone lease.Tokens
}

// part is what one take brought from one lease.
type part struct {
	// free can be taken. Whoever takes does so by compare-and-swap, because hot
	// decisions take without the mutex; nothing but a hold that is released adds
	// to it. So what is neither free nor held was used, and none is used twice.
	free atomic.Int64
	// deadline is on this process's clock, counted from before the take that
	// brought the tokens was sent. A token is never spent at or after it.
	deadline time.Duration

	kind        lease.Kind
	incarnation lease.Incarnation
	generation  uint64
	// brought came with the take, less what was given back; held belongs to
	// decisions under way; told was reported to the store as used.
	brought, held, told lease.Tokens
	// known is what was used with the mutex held, or is counted as demand
	// already: the rest of what was used is the demand of hot decisions.
	known lease.Tokens
	// ending is set when the part is to be settled whole: nothing is taken from
	// it any more.
	ending bool
}

func newPart(n lease.Tokens, deadline time.Duration) *part {
	q := &part{brought: n, deadline: deadline}
	q.free.Store(int64(n))
	return q
}

// take takes cost out of the free tokens. It needs no mutex.
func (q *part) take(cost lease.Tokens) (left lease.Tokens, ok bool) {
	for {
		free := q.free.Load()
		if free < int64(cost) {
			return 0, false
		}
		if q.free.CompareAndSwap(free, free-int64(cost)) {
			return lease.Tokens(free) - cost, true
		}
	}
}

func (q *part) used(free lease.Tokens) lease.Tokens { return q.brought - free - q.held }

// add puts tokens into the pocket that a take brought, held ones apart. sent
// is this process's clock before the take was sent, got after its reply.
func (p *pocket) add(parts []regionstore.Part, sent, got time.Duration, held bool) {
	from := sent
	if mutant.On(mutant.ProcessDeadlineAtReply) {
		from = got
	}
	for _, t := range parts {
		if t.Tokens <= 0 {
			continue
		}
		q := newPart(t.Tokens, from+min(t.Remains, lease.LongestProcessDeadline))
		q.kind, q.incarnation, q.generation = t.Kind, t.Incarnation, t.Generation
		if held {
			q.free.Store(0)
			q.held, q.ending = t.Tokens, true
		}
		p.parts = append(p.parts, q)
	}
}

// live sums what could be taken at now.
func (p *pocket) live(now time.Duration) lease.Tokens {
	var n lease.Tokens
	for _, q := range p.parts {
		if !q.ending && now < q.deadline {
			n += lease.Tokens(q.free.Load())
		}
	}
	return n
}

// demand returns what hot decisions have used since it was last asked.
func (p *pocket) demand() lease.Tokens {
	n := p.gone
	p.gone = 0
	for _, q := range p.parts {
		n += q.demand(lease.Tokens(q.free.Load()))
	}
	return n
}

func (q *part) demand(free lease.Tokens) lease.Tokens {
	n := q.used(free) - q.known
	q.known += n
	return n
}

// spend takes cost out of one part and returns that part's deadline. The
// caller reads its clock afterwards, and has not spent the tokens if that is
// late: they are lost, which is safe, and are settled as used. What is late
// already at now is not looked at.
func (p *pocket) spend(cost lease.Tokens, now time.Duration) (deadline time.Duration, ok bool) {
	q := p.draw(cost, now)
	if q == nil {
		return 0, false
	}
	q.known += cost
	return q.deadline, true
}

// draw takes cost from the first part that has it.
func (p *pocket) draw(cost lease.Tokens, now time.Duration) *part {
	for _, q := range p.parts {
		if q.ending || now >= q.deadline {
			continue
		}
		if _, ok := q.take(cost); ok {
			return q
		}
	}
	return nil
}

func (p *pocket) find(cost lease.Tokens, now time.Duration) *part {
	for _, q := range p.parts {
		if !q.ending && now < q.deadline && q.free.Load() >= int64(cost) {
			return q
		}
	}
	return nil
}

// held names tokens that a decision under way has put aside.
type held struct {
	entry  *entry
	part   *part
	tokens lease.Tokens
}

// hold puts cost aside, for a decision that needs other budgets too.
func (p *pocket) hold(cost lease.Tokens, now time.Duration) (held, bool) {
	q := p.draw(cost, now)
	if q == nil {
		return held{}, false
	}
	q.held += cost
	return held{part: q, tokens: cost}, true
}

// release ends a hold: as used, or free again. Parts with held tokens are
// never dropped. The entry's mutex is held.
func (h *held) release(used bool) {
	h.part.held -= h.tokens
	if used {
		h.part.known += h.tokens
	} else {
		h.part.free.Add(int64(h.tokens))
	}
}

// idleAfter is how long tokens lie unused in a process before they are given
// back, if they are more than a small change, and endBefore how long before its
// deadline a part is.
const (
	idleAfter = 100 * time.Millisecond
	endBefore = 100 * time.Millisecond
)

// settle appends what is to be told to the store: the used tokens of every
// part, once they are no small change any more, and the free ones of parts that
// end. What is used up and a small change waits for the next take.
func (p *pocket) settle(b *terms, now time.Duration, all bool, to []regionstore.Settle) []regionstore.Settle {
	idle := now-p.touched >= idleAfter && now-p.touched >= patience(b, p.live(now), idleAfter)
	return p.tell(b.Name, now, to, func(q *part) bool {
		if all || idle || now+endBefore >= q.deadline {
			q.ending = true
		}
		return q.ending || q.used(lease.Tokens(q.free.Load()))-q.told > small(b)
	})
}

// settleAlong is settle for the parts that are used up or end, which cost no step of
// their own where the next take brings them along.
func (p *pocket) settleAlong(now time.Duration) []regionstore.Settle {
	return p.tell("", now, nil, func(q *part) bool { return q.ending || lease.Tokens(q.free.Load())+q.held == 0 })
}

// tell appends what there is to be told of parts that are due. Each is counted
// out of the pocket here, before anything is sent, and never again: a settlement
// whose outcome is unknown is not repeated, its tokens age out.
func (p *pocket) tell(budget string, now time.Duration, to []regionstore.Settle, due func(*part) bool) []regionstore.Settle {
	kept := p.parts[:0]
	for _, q := range p.parts {
		if !due(q) {
			kept = append(kept, q)
			continue
		}
		s, free := q.settle(now)
		if s.Budget = budget; s.Used > 0 || s.Back > 0 {
			to = append(to, s)
		}
		if free > 0 || q.held > 0 {
			kept = append(kept, q)
		} else {
			p.gone += q.demand(free)
		}
	}
	clear(p.parts[len(kept):])
	p.parts = kept
	return to
}

// settle says what is to be told of one part, and how much stays free in it.
func (q *part) settle(now time.Duration) (s regionstore.Settle, free lease.Tokens) {
	s = regionstore.Settle{Kind: q.kind, Incarnation: q.incarnation, Generation: q.generation}
	if q.ending {
		s.Back = lease.Tokens(q.free.Swap(0))
		q.brought -= s.Back
	} else {
		free = lease.Tokens(q.free.Load())
	}
	if now >= q.deadline {
		s.Back = 0 // too late to give back: the store ages it out
	}
	s.Used = q.used(free) - q.told
	q.told += s.Used
	return s, free
}
