package envoy

import (
	"context"
	"sync/atomic"
	"time"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// Agent decides; *agent.Runner is one. It keeps no list that it was given once a
// call has returned, because the lists are used again. Safe for concurrent use.
type Agent interface {
	Check(ctx context.Context, check agent.Check) (agent.Answer, error)
	Match(have []agent.Descriptor, to []agent.Matched) []agent.Matched
	State(budget string) (agent.Answer, bool)
}

// Server serves RateLimitService. Safe for concurrent use.
type Server struct {
	agent   Agent
	invalid *atomic.Int64
}

// NewServer makes a server that counts in invalid what it refuses as malformed
// before the agent sees it.
func NewServer(a Agent, invalid *atomic.Int64) *Server { return &Server{agent: a, invalid: invalid} }

// Register adds the service to a gRPC server that has leaserpc.ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	service := ratelimitv3.File_envoy_service_ratelimit_v3_rls_proto.Services().ByName("RateLimitService")
	wire.Register(r, service, s.shouldRateLimit)
}

// tries bounds how often a request is matched again because a budget was
// deleted between its match and its charge.
const tries = 3

func (s *Server) shouldRateLimit(ctx context.Context, q *request) (*wire.Reply, error) {
	err := q.check()
	if err != nil {
		s.invalid.Add(1)
		return nil, leaserpc.EncodeError(err)
	}
	var answer agent.Answer
	for range tries {
		q.match(s.agent)
		if answer, err = s.decide(ctx, q); lease.CodeOf(err) != lease.UnknownBudget {
			break
		}
	}
	switch {
	case err != nil:
		return nil, leaserpc.EncodeError(err)
	case answer.Outcome == agent.Unavailable:
		e := lease.Errorf(lease.Unavailable, "", "no decision could be made: %s", answer.Reason)
		e.RetryAfter = answer.ComeBack()
		return nil, leaserpc.EncodeError(e)
	}
	return s.reply(q, &answer), nil
}

// decide looks at what is only looked at, and then charges the rest.
func (s *Server) decide(ctx context.Context, q *request) (agent.Answer, error) {
	if len(q.peeks) == 0 && len(q.charges) == 0 {
		return s.agent.Check(ctx, agent.Check{Descriptors: q.domain[:], Cost: 1, Deadline: patience(ctx)})
	}
	if len(q.peeks) > 0 {
		answer, err := s.agent.Check(ctx, agent.Check{Budgets: q.peeks, Deadline: patience(ctx)})
		if err != nil || answer.Outcome != agent.Allowed || len(q.charges) == 0 {
			return answer, err
		}
	}
	check := agent.Check{Budgets: q.charges, Cost: q.cost, Deadline: patience(ctx)}
	if q.differ {
		check.Costs = q.costs
	}
	return s.agent.Check(ctx, check)
}

// patience is how long the agent may wait for tokens: the caller's own
// deadline less a part for what comes after the wait, a budget's failure mode
// and the way back. 0, for the agent's default, where the caller gave none.
func patience(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, time.Until(deadline)*3/4)
}
