package envoy

import (
	"math"
	"slices"
	"strconv"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/policy"
)

// Fields of a reply and of the messages in it, by their numbers.
const (
	overallCode, statuses, headersToAdd                          = 1, 2, 3
	statusCode, currentLimit, limitRemaining, durationUntilReset = 1, 2, 3, 4
	requestsPerUnit, limitUnit, limitName, unitMultiplier        = 1, 2, 3, 4
	headerKey, headerValue                                       = 1, 2
	seconds, nanos                                               = 1, 2
	wrapped                                                      = 1
)

// reply answers a request that was allowed or denied.
func (s *Server) reply(q *request, a *agent.Answer) *wire.Reply {
	out := wire.NewReply()
	b := wire.Number(*out, overallCode, uint64(code(a.Outcome == agent.Allowed)))
	for i := range q.parts {
		b = wire.Enclose(len(b), statuses, s.status(b, &q.parts[i], a))
	}
	if a.Outcome != agent.Allowed && !a.Never {
		b = wire.Enclose(len(b), headersToAdd, retryAfter(b, a))
	}
	*out = b
	return out
}

func code(allowed bool) ratelimitv3.RateLimitResponse_Code {
	if allowed {
		return ratelimitv3.RateLimitResponse_OK
	}
	return ratelimitv3.RateLimitResponse_OVER_LIMIT
}

// retryAfter is the header of a denial, unless there is no time at which the
// request would pass.
func retryAfter(b []byte, a *agent.Answer) []byte {
	after := int64((max(a.RetryAfter, 1)-1)/time.Second) + 1
	return wire.String(wire.String(b, headerKey, "retry-after"), headerValue, strconv.FormatInt(after, 10))
}

// status answers for one descriptor: for the budget that denied if it is one
// of its own, or for that of its own with the least left.
func (s *Server) status(b []byte, p *part, a *agent.Answer) []byte {
	at := slices.IndexFunc(p.budgets, func(m agent.Matched) bool { return m.Budget == a.Budget })
	denied := at >= 0 && a.Outcome != agent.Allowed
	b = wire.Number(b, statusCode, uint64(code(!denied)))
	if len(p.budgets) == 0 {
		return b
	}
	var decisive agent.Matched
	state := *a
	switch {
	case denied, at >= 0 && p.hits > 0: // of all budgets charged it has the least left
		decisive = p.budgets[at]
	default:
		decisive, state = s.least(p.budgets)
	}
	if l, said := limitOf(decisive); said {
		b = wire.Enclose(len(b), currentLimit, l.write(b))
	}
	b = wire.Number(b, limitRemaining, uint64(min(int64(state.Remaining), math.MaxUint32)))
	return wire.Enclose(len(b), durationUntilReset, duration(b, state.ResetAfter))
}

// least is the budget with the least left, and its state.
func (s *Server) least(budgets []agent.Matched) (agent.Matched, agent.Answer) {
	decisive, least := budgets[0], agent.Answer{}
	for i, b := range budgets {
		state, _ := s.agent.State(b.Budget)
		if i == 0 || state.Remaining < least.Remaining {
			decisive, least = b, state
		}
	}
	return decisive, least
}

// limit is a current_limit.
type limit struct {
	name     string
	requests uint32
	unit     ratelimitv3.RateLimitResponse_RateLimit_Unit
	multiple uint32 // of the unit; 0 for 1
}

func (l *limit) write(b []byte) []byte {
	b = wire.Number(b, requestsPerUnit, uint64(l.requests))
	b = wire.Number(b, limitUnit, uint64(l.unit))
	b = wire.String(b, limitName, l.name)
	if l.multiple == 0 {
		return b
	}
	return wire.Enclose(len(b), unitMultiplier, wire.Number(b, wrapped, uint64(l.multiple)))
}

// Units of time, the longest first. A quota's are the calendar's.
var units = []struct {
	length time.Duration
	unit   ratelimitv3.RateLimitResponse_RateLimit_Unit
	period policy.Period
}{
	{0, ratelimitv3.RateLimitResponse_RateLimit_YEAR, policy.Year},
	{0, ratelimitv3.RateLimitResponse_RateLimit_MONTH, policy.Month},
	{7 * 24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_WEEK, policy.Week},
	{24 * time.Hour, ratelimitv3.RateLimitResponse_RateLimit_DAY, policy.Day},
	{time.Hour, ratelimitv3.RateLimitResponse_RateLimit_HOUR, policy.Hour},
	{time.Minute, ratelimitv3.RateLimitResponse_RateLimit_MINUTE, ""},
	{time.Second, ratelimitv3.RateLimitResponse_RateLimit_SECOND, ""},
}

// limitOf says a contract as requests per unit; said is false where that cannot
// be done exactly.
func limitOf(b agent.Matched) (l limit, said bool) {
	c := b.Contract
	if c.IsQuota() {
		for _, u := range units {
			if u.period == c.Quota.Per {
				return newLimit(b.Budget, int64(c.Quota.N), u.unit, 1)
			}
		}
		return limit{}, false
	}
	tokens, per := int64(c.Rate.Tokens), c.Rate.Per
	if per <= 0 {
		return limit{}, false
	}
	if per < time.Second && time.Second%per == 0 && tokens <= math.MaxUint32 {
		tokens, per = tokens*int64(time.Second/per), time.Second
	}
	for _, u := range units {
		if u.length > 0 && per%u.length == 0 {
			return newLimit(b.Budget, tokens, u.unit, int64(per/u.length))
		}
	}
	return limit{}, false
}

func newLimit(name string, tokens int64, unit ratelimitv3.RateLimitResponse_RateLimit_Unit, multiple int64) (limit, bool) {
	l := limit{name: name, requests: uint32(tokens), unit: unit}
	if multiple > 1 {
		l.multiple = uint32(multiple)
	}
	return l, tokens <= math.MaxUint32 && multiple <= math.MaxUint32
}

func duration(b []byte, d time.Duration) []byte {
	return wire.Number(wire.Number(b, seconds, uint64(d/time.Second)), nanos, uint64(d%time.Second))
}
