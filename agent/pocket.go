package agent

import (
	"time"

	"github.com/ration-dev/ration/internal/mutant"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// pocket is the tokens of one budget that this process holds in its memory:
// the prefetch. Its entry's mutex guards it. The zero value is empty.
type pocket struct {
	parts []part
	// touched is when a token was last taken; taken sums the cost since then
	// for the estimate of this process's own demand.
	touched time.Duration
}

// part is what one take brought from one lease.
type part struct {
	kind        lease.Kind
	incarnation lease.Incarnation
	generation  uint64
	// free can be taken; held belongs to a decision under way; used was spent
	// and is not yet settled.
	free, held, used lease.Tokens
	// deadline is on this process's clock, counted from before the take that
	// brought the tokens was sent. A token is never spent at or after it.
	deadline time.Duration
	// ending is set when the part is to be settled whole: nothing is taken from
	// it any more.
	ending bool
}

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
		q := part{
			kind: t.Kind, incarnation: t.Incarnation, generation: t.Generation,
			free: t.Tokens, deadline: from + min(t.Remains, lease.ProcessDeadline),
		}
		if held {
			q.free, q.held, q.ending = 0, t.Tokens, true
		}
		p.parts = append(p.parts, q)
	}
}

// live sums what could be taken at now.
func (p *pocket) live(now time.Duration) lease.Tokens {
	var n lease.Tokens
	for i := range p.parts {
		if q := &p.parts[i]; !q.ending && now < q.deadline {
			n += q.free
		}
	}
	return n
}

// spend takes cost out of one part and returns that part's deadline. The
// caller reads its clock afterwards, and has not spent the tokens if that is
// late: they are lost, which is safe, and are settled as used. What is late
// already at now is not looked at.
func (p *pocket) spend(cost lease.Tokens, now time.Duration) (deadline time.Duration, ok bool) {
	q := p.find(cost, now)
	if q == nil {
		return 0, false
	}
	q.free -= cost
	q.used += cost
	return q.deadline, true
}

func (p *pocket) find(cost lease.Tokens, now time.Duration) *part {
	for i := range p.parts {
		if q := &p.parts[i]; !q.ending && q.free >= cost && now < q.deadline {
			return q
		}
	}
	return nil
}

// held names tokens that a decision under way has put aside.
type held struct {
	entry       *entry
	kind        lease.Kind
	incarnation lease.Incarnation
	generation  uint64
	tokens      lease.Tokens
	deadline    time.Duration
}

// hold puts cost aside, for a decision that needs other budgets too.
func (p *pocket) hold(cost lease.Tokens, now time.Duration) (held, bool) {
	q := p.find(cost, now)
	if q == nil {
		return held{}, false
	}
	q.free -= cost
	q.held += cost
	return held{
		kind: q.kind, incarnation: q.incarnation, generation: q.generation,
		tokens: cost, deadline: q.deadline,
	}, true
}

// release ends a hold: as used, or free again. Parts with held tokens are
// never dropped, so the part is there.
func (p *pocket) release(h *held, used bool) {
	for i := range p.parts {
		q := &p.parts[i]
		if q.held < h.tokens || q.generation != h.generation || q.kind != h.kind ||
			q.incarnation != h.incarnation || q.deadline != h.deadline {
			continue
		}
		q.held -= h.tokens
		if used {
			q.used += h.tokens
		} else {
			q.free += h.tokens
		}
		return
	}
}

// idleAfter is how long tokens lie unused in a process before they are given
// back, and endBefore how long before its deadline a part is.
const (
	idleAfter = 100 * time.Millisecond
	endBefore = 100 * time.Millisecond
)

// settle appends what is to be told to the store: the used tokens of every
// part, and the free ones of parts that end. Each is counted out of the
// pocket here, before anything is sent, and never again: a settlement whose
// outcome is unknown is not repeated, its tokens age out.
func (p *pocket) settle(budget string, now time.Duration, all bool, to []regionstore.Settle) []regionstore.Settle {
	kept := p.parts[:0]
	idle := now-p.touched >= idleAfter
	for _, q := range p.parts {
		if now >= q.deadline {
			q.free = 0 // too late to give back: the store ages it out
		}
		if all || idle || now+endBefore >= q.deadline {
			q.ending = true
		}
		s := regionstore.Settle{
			Budget: budget, Kind: q.kind, Incarnation: q.incarnation, Generation: q.generation, Used: q.used,
		}
		q.used = 0
		if q.ending {
			s.Back, q.free = q.free, 0
		}
		if s.Used > 0 || s.Back > 0 {
			to = append(to, s)
		}
		if q.free > 0 || q.held > 0 {
			kept = append(kept, q)
		}
	}
	clear(p.parts[len(kept):])
	p.parts = kept
	return to
}
