// Package rpc is an agent's decision face over gRPC: LimitService of
// ration.v1.
package rpc

import (
	"context"
	"errors"
	"sync/atomic"

	"google.golang.org/grpc"

	"github.com/ration-dev/ration/agent"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// MaxMessage bounds a request in bytes; the largest valid one takes about
// 35 KB. Callers have no token, so a request must not take up much memory.
const MaxMessage = 64 << 10

// Checker decides. An error is final and about the request, or says that no
// decision could be made; a denial is an Answer. It keeps none of a check's lists
// once it has returned, because they are used again. Safe for concurrent use.
type Checker interface {
	Check(ctx context.Context, check agent.Check) (agent.Answer, error)
}

// Server serves LimitService. Safe for concurrent use.
type Server struct {
	checker Checker
	invalid *atomic.Int64
}

// NewServer makes a server that counts in invalid what it refuses as malformed
// before the checker sees it.
func NewServer(checker Checker, invalid *atomic.Int64) *Server {
	return &Server{checker: checker, invalid: invalid}
}

// Register adds the service to a gRPC server that has leaserpc.ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	wire.Register(r, rationv1.File_ration_v1_limit_proto.Services().ByName("LimitService"), s.checkLimits)
}

// checkLimits implements the service's method.
//
// A denial is a normal reply: the question was answered, and the answer has
// fields (limit, remaining, reset) that a status has no room for. Here the
// limiter itself is called; RESOURCE_EXHAUSTED is for an interceptor, which
// stands before somebody else's method and has only a status to answer with.
// No decision is UNAVAILABLE with RetryInfo, so that a caller cannot take it
// for a decision either way. HTTP draws the same line: 429 carries the same
// fields as 200, 503 an error.
func (s *Server) checkLimits(ctx context.Context, q *request) (*wire.Reply, error) {
	check, err := q.check()
	if err != nil {
		s.invalid.Add(1)
		return nil, encode(err)
	}
	answer, err := s.checker.Check(ctx, check)
	if err != nil {
		return nil, encode(err)
	}
	switch answer.Outcome {
	case agent.Allowed, agent.Denied:
		return reply(&answer), nil
	case agent.Unavailable:
		e := lease.Errorf(lease.Unavailable, "", "no decision could be made: %s", answer.Reason)
		e.RetryAfter = answer.ComeBack()
		return nil, encode(e)
	}
	return nil, encode(lease.Errorf(lease.Internal, "", "internal error"))
}

// encode writes an error with the message's name of the field at fault.
func encode(err error) error {
	var e *lease.Error
	if errors.As(err, &e) && e.Field == "deadline" {
		named := *e
		named.Field = "deadline_us"
		err = &named
	}
	return leaserpc.EncodeError(err)
}
