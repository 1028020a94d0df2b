package envoy

import (
	"math"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/policy"
)

// reply answers a request that was allowed or denied.
func (s *Server) reply(q *request, a *agent.Answer) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
		Statuses:    make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(q.parts)),
	}
	if a.Outcome != agent.Allowed {
		out.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
		out.ResponseHeadersToAdd = retryAfter(a)
	}
	for i := range q.parts {
		out.Statuses[i] = s.status(&q.parts[i], a)
	}
	return out
}

// retryAfter is the header of a denial, unless there is no time at which the
// request would pass.
func retryAfter(a *agent.Answer) []*corev3.HeaderValue {
	if a.Never {
		return nil
	}
	seconds := int64((max(a.RetryAfter, 1)-1)/time.Second) + 1
	return []*corev3.HeaderValue{{Key: "retry-after", Value: strconv.FormatInt(seconds, 10)}}
}

// status answers for one descriptor: for the budget that denied if it is one
// of its own, or for that of its own with the least left.
func (s *Server) status(p *part, a *agent.Answer) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	out := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	if len(p.budgets) == 0 {
		return out
	}
	var decisive agent.Matched
	state := *a
	at := slices.IndexFunc(p.budgets, func(b agent.Matched) bool { return b.Budget == a.Budget })
	switch {
	case at >= 0 && a.Outcome != agent.Allowed:
		out.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
		decisive = p.budgets[at]
	case at >= 0 && p.hits > 0: // of all budgets charged it has the least left
		decisive = p.budgets[at]
	default:
		decisive, state = s.least(p.budgets)
	}
	out.CurrentLimit = limitOf(decisive)
	out.LimitRemaining = uint32(min(int64(state.Remaining), math.MaxUint32))
	out.DurationUntilReset = durationpb.New(state.ResetAfter)
	return out
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

type limit = ratelimitv3.RateLimitResponse_RateLimit

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

// limitOf says a contract as requests per unit, or returns nil where that
// cannot be said exactly.
func limitOf(b agent.Matched) *limit {
	c := b.Contract
	if c.IsQuota() {
		for _, u := range units {
			if u.period == c.Quota.Per {
				return newLimit(b.Budget, int64(c.Quota.N), u.unit, 1)
			}
		}
		return nil
	}
	tokens, per := int64(c.Rate.Tokens), c.Rate.Per
	if per <= 0 {
		return nil
	}
	if per < time.Second && time.Second%per == 0 && tokens <= math.MaxUint32 {
		tokens, per = tokens*int64(time.Second/per), time.Second
	}
	for _, u := range units {
		if u.length > 0 && per%u.length == 0 {
			return newLimit(b.Budget, tokens, u.unit, int64(per/u.length))
		}
	}
	return nil
}

func newLimit(name string, tokens int64, unit ratelimitv3.RateLimitResponse_RateLimit_Unit, multiple int64) *limit {
	if tokens > math.MaxUint32 || multiple > math.MaxUint32 {
		return nil
	}
	l := &limit{Name: name, RequestsPerUnit: uint32(tokens), Unit: unit}
	if multiple > 1 {
		l.UnitMultiplier = wrapperspb.UInt32(uint32(multiple))
	}
	return l
}
