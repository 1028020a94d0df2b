package rpc

import (
	"time"
	"unicode/utf8"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease"
)

// request is a CheckLimitsRequest.
type request struct {
	text        wire.Text
	descriptors []agent.Descriptor
	budgets     []string
	priced      bool // a cost was given
	cost        lease.Tokens
	id          string
	deadline    int64 // microseconds
}

// Tags of a request's fields.
const (
	tagDescriptor = 1<<3 | wire.Bytes
	tagBudget     = 2<<3 | wire.Bytes
	tagCost       = 3<<3 | wire.Varint
	tagRequestID  = 4<<3 | wire.Bytes
	tagDeadline   = 5<<3 | wire.Varint
	tagKey        = 1<<3 | wire.Bytes // in a descriptor
	tagValue      = 2<<3 | wire.Bytes
)

// Read implements wire.Request.
func (q *request) Read(b []byte, text wire.Text) bool {
	q.text = text
	f := wire.Read(b)
	for f.Next() {
		switch f.Tag {
		case tagDescriptor:
			q.readDescriptor(&f)
		case tagBudget:
			if name := q.word(&f); len(q.budgets) <= agent.MaxDescriptors { // one too many is refused
				q.budgets = append(q.budgets, name)
			}
		case tagCost:
			q.priced, q.cost = true, lease.Tokens(f.Number)
		case tagRequestID:
			q.id = q.word(&f)
		case tagDeadline:
			q.deadline = int64(f.Number)
		}
	}
	return !f.Bad
}

func (q *request) readDescriptor(outer *wire.Fields) {
	f, d := wire.Read(outer.Bytes), agent.Descriptor{}
	for f.Next() {
		switch f.Tag {
		case tagKey:
			d.Key = q.word(&f)
		case tagValue:
			d.Value = q.word(&f)
		}
	}
	if outer.Bad = f.Bad; len(q.descriptors) <= agent.MaxDescriptors {
		q.descriptors = append(q.descriptors, d)
	}
}

// word is the field's string, which must be UTF-8.
func (q *request) word(f *wire.Fields) string {
	s := q.text.Of(f.Bytes)
	f.Bad = !utf8.ValidString(s)
	return s
}

// Reset implements wire.Request.
func (q *request) Reset() bool {
	clear(q.descriptors)
	clear(q.budgets)
	*q = request{descriptors: q.descriptors[:0], budgets: q.budgets[:0]}
	return cap(q.descriptors)+cap(q.budgets) <= 2*agent.MaxDescriptors
}

// check refuses what Go cannot hold and what agent.Check forbids.
func (q *request) check() (agent.Check, error) {
	check := agent.Check{Descriptors: q.descriptors, Budgets: q.budgets, Cost: 1, RequestID: q.id}
	if q.priced {
		check.Cost = q.cost
	}
	const most = (1<<63 - 1) / int64(time.Microsecond)
	if q.deadline > most || q.deadline < 0 {
		return agent.Check{}, lease.Errorf(lease.Invalid, "deadline", "must be from 0 to %d", most)
	}
	check.Deadline = time.Duration(q.deadline) * time.Microsecond
	return check, check.Validate()
}

// Fields of a reply by their numbers.
const (
	allowed, mode, budget, policyVersion, limit          = 1, 2, 3, 4, 5
	remaining, retryAfterUs, resetAfterUs, never, reason = 6, 7, 8, 9, 10
)

// reply is a CheckLimitsResponse.
func reply(a *agent.Answer) *wire.Reply {
	out := wire.NewReply()
	b := wire.Bool(*out, allowed, a.Outcome == agent.Allowed)
	b = wire.Number(b, mode, uint64(a.Mode))
	b = wire.String(b, budget, a.Budget)
	b = wire.Number(b, policyVersion, a.Version)
	b = wire.Number(b, limit, uint64(a.Limit))
	b = wire.Number(b, remaining, uint64(a.Remaining))
	b = wire.Number(b, retryAfterUs, uint64(a.RetryAfter/time.Microsecond))
	b = wire.Number(b, resetAfterUs, uint64(a.ResetAfter/time.Microsecond))
	b = wire.Bool(b, never, a.Never)
	*out = wire.String(b, reason, a.Reason)
	return out
}
