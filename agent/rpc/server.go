// Package rpc is an agent's decision face over gRPC: LimitService of
// ration.v1.
package rpc

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/ration-dev/ration/agent"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// MaxMessage bounds a request in bytes; the largest valid one takes about
// 35 KB. Callers have no token, so a request must not take up much memory.
const MaxMessage = 64 << 10

// Checker decides. An error is final and about the request, or says that no
// decision could be made; a denial is an Answer. Safe for concurrent use.
type Checker interface {
	Check(ctx context.Context, check agent.Check) (agent.Answer, error)
}

// Server serves LimitService. Safe for concurrent use.
type Server struct {
	rationv1.UnimplementedLimitServiceServer
	checker Checker
	invalid *atomic.Int64
}

// NewServer makes a server that counts in invalid what it refuses as malformed
// before the checker sees it.
func NewServer(checker Checker, invalid *atomic.Int64) *Server {
	return &Server{checker: checker, invalid: invalid}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { rationv1.RegisterLimitServiceServer(r, s) }

// CheckLimits implements the service.
//
// A denial is a normal reply: the question was answered, and the answer has
// fields (limit, remaining, reset) that a status has no room for. Here the
// limiter itself is called; RESOURCE_EXHAUSTED is for an interceptor, which
// stands before somebody else's method and has only a status to answer with.
// No decision is UNAVAILABLE with RetryInfo, so that a caller cannot take it
// for a decision either way. HTTP draws the same line: 429 carries the same
// fields as 200, 503 an error.
func (s *Server) CheckLimits(ctx context.Context, m *rationv1.CheckLimitsRequest) (*rationv1.CheckLimitsResponse, error) {
	check, err := checkFromProto(m)
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
		return answerToProto(&answer), nil
	case agent.Unavailable:
		e := lease.Errorf(lease.Unavailable, "", "no decision could be made: %s", answer.Reason)
		e.RetryAfter = answer.ComeBack()
		return nil, encode(e)
	}
	return nil, encode(lease.Errorf(lease.Internal, "", "internal error"))
}

// checkFromProto refuses what Go cannot hold and what agent.Check forbids.
func checkFromProto(m *rationv1.CheckLimitsRequest) (agent.Check, error) {
	check := agent.Check{Budgets: m.GetBudgets(), Cost: 1, RequestID: m.GetRequestId()}
	if m.Cost != nil {
		check.Cost = lease.Tokens(m.GetCost())
	}
	if n := len(m.GetDescriptors()); n > 0 {
		check.Descriptors = make([]agent.Descriptor, n)
	}
	for i, d := range m.GetDescriptors() {
		check.Descriptors[i] = agent.Descriptor{Key: d.GetKey(), Value: d.GetValue()}
	}
	const most = (1<<63 - 1) / int64(time.Microsecond)
	if us := m.GetDeadlineUs(); us > most || us < 0 {
		return agent.Check{}, lease.Errorf(lease.Invalid, "deadline", "must be from 0 to %d", most)
	}
	check.Deadline = time.Duration(m.GetDeadlineUs()) * time.Microsecond
	return check, check.Validate()
}

func answerToProto(a *agent.Answer) *rationv1.CheckLimitsResponse {
	return &rationv1.CheckLimitsResponse{
		Allowed:       a.Outcome == agent.Allowed,
		Mode:          rationv1.CheckLimitsResponse_Mode(a.Mode),
		Budget:        a.Budget,
		PolicyVersion: a.Version,
		Limit:         int64(a.Limit),
		Remaining:     int64(a.Remaining),
		RetryAfterUs:  int64(a.RetryAfter / time.Microsecond),
		ResetAfterUs:  int64(a.ResetAfter / time.Microsecond),
		Never:         a.Never,
		Reason:        a.Reason,
	}
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
