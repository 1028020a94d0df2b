package rpc

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Credentials tells whose a bearer token is. It is safe for concurrent use.
type Credentials interface {
	// Region returns the region that the token belongs to, and false if it
	// belongs to none.
	Region(token string) (string, bool)
}

// Insecure is for development: there are no credentials, and the message
// names the region.
type Insecure struct{}

// Region knows no token.
func (Insecure) Region(string) (string, bool) { return "", false }

// Server serves LeaseService. Safe for concurrent use if its sources are.
type Server struct {
	rationv1.UnimplementedLeaseServiceServer
	source      lease.Source
	budgets     policy.Source
	credentials Credentials
	stats       *Stats
}

// NewServer makes a server. credentials is Insecure{}, explicitly, where none
// are wanted.
func NewServer(source lease.Source, budgets policy.Source, credentials Credentials, stats *Stats) *Server {
	return &Server{source: source, budgets: budgets, credentials: credentials, stats: stats}
}

// Register adds the service to a gRPC server.
func (s *Server) Register(r grpc.ServiceRegistrar) { rationv1.RegisterLeaseServiceServer(r, s) }

// SyncLeases implements the service: who calls, what was said, what the
// source answers.
func (s *Server) SyncLeases(ctx context.Context, m *rationv1.SyncLeasesRequest) (*rationv1.SyncLeasesResponse, error) {
	s.stats.Syncs.Add(1)
	region, err := s.region(ctx, m.GetRegion())
	if err != nil {
		return nil, EncodeError(err)
	}
	var d decoder
	if d.atMost(lease.MaxItems, len(m.GetItems()), "items"); d.err != nil {
		return nil, EncodeError(d.err)
	}
	req, replies := readable(m, region)
	if len(req.Items) == 0 && len(replies) > 0 {
		return s.merge(lease.SyncReply{}, replies), nil
	}
	answer, err := s.ask(ctx, req)
	if err != nil {
		return nil, EncodeError(err)
	}
	return s.merge(answer, replies), nil
}

// ListBudgets implements the service.
func (s *Server) ListBudgets(ctx context.Context, m *rationv1.ListBudgetsRequest) (*rationv1.ListBudgetsResponse, error) {
	s.stats.Lists.Add(1)
	if _, err := s.region(ctx, m.GetRegion()); err != nil {
		return nil, EncodeError(err)
	}
	list, err := s.budgets.ListBudgets(ctx, m.GetSinceVersion())
	if err != nil {
		return nil, EncodeError(err)
	}
	reply, err := listToProto(list)
	return reply, EncodeError(err)
}

// readable converts the items that have a counterpart, in order, and returns
// one reply per item of the message: filled in for the others, nil where the
// source's answer goes.
func readable(m *rationv1.SyncLeasesRequest, region string) (lease.SyncRequest, []*rationv1.SyncItemReply) {
	req := lease.SyncRequest{Region: region, Items: make([]lease.Item, 0, len(m.GetItems()))}
	replies := make([]*rationv1.SyncItemReply, len(m.GetItems()))
	for i, item := range m.GetItems() {
		converted, err := itemFromProto(item, i)
		if err != nil {
			replies[i] = itemReplyToProto(&lease.ItemReply{Budget: item.GetBudget(), Err: err})
			continue
		}
		req.Items = append(req.Items, converted)
	}
	return req, replies
}

// ask requires of the source one answer per item, so that merge can rely on
// it.
func (s *Server) ask(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	reply, err := s.source.SyncLeases(ctx, req)
	if err == nil && len(reply.Items) != len(req.Items) {
		err = lease.Errorf(lease.Internal, "items", "%d answers for %d items", len(reply.Items), len(req.Items))
	}
	return reply, err
}

func (s *Server) merge(answer lease.SyncReply, replies []*rationv1.SyncItemReply) *rationv1.SyncLeasesResponse {
	next := 0
	for i := range replies {
		if replies[i] != nil {
			s.stats.item(errorFromProto(replies[i].GetError()))
			continue
		}
		reply := answer.Items[next]
		reply.Err = placed(reply.Err, next, i)
		replies[i] = itemReplyToProto(&reply)
		s.stats.item(reply.Err)
		next++
	}
	return &rationv1.SyncLeasesResponse{Items: replies}
}

// placed names in an item's error the item's place in the message, which the
// source, that got the readable items alone, counts otherwise.
func placed(err *lease.Error, from, to int) *lease.Error {
	if err == nil || from == to {
		return err
	}
	field, found := strings.CutPrefix(err.Field, fmt.Sprintf("items[%d]", from))
	if !found {
		return err
	}
	moved := *err
	moved.Field = fmt.Sprintf("items[%d]%s", to, field)
	return &moved
}

// region returns whose the caller's credential is. named, what the message
// says, decides only in insecure mode. A caller that takes itself for another
// region is refused: its agents would spend one region's leases from the
// other's store.
func (s *Server) region(ctx context.Context, named string) (string, error) {
	if _, insecure := s.credentials.(Insecure); insecure {
		return named, nil
	}
	md, _ := metadata.FromIncomingContext(ctx)
	region, err := identify(s.credentials, md)
	if err == nil && named != "" && named != region {
		err = lease.Errorf(lease.Unauthenticated, "region", "the token is that of region %q, and the caller says that it is %q", region, named)
	}
	if err != nil {
		s.stats.Unauthenticated.Add(1)
		return "", err
	}
	return region, nil
}

// Admit refuses LeaseService's calls without a good credential by their
// headers, before anything of their messages is read: who has no token takes
// up no memory. The handlers ask again, since they need the region.
func Admit(credentials Credentials, stats *Stats) grpc.ServerOption {
	return grpc.InTapHandle(func(ctx context.Context, info *tap.Info) (context.Context, error) {
		_, insecure := credentials.(Insecure)
		if insecure || !strings.HasPrefix(info.FullMethodName, "/"+rationv1.LeaseService_ServiceDesc.ServiceName+"/") {
			return ctx, nil
		}
		_, err := identify(credentials, info.Header)
		if err != nil {
			stats.Unauthenticated.Add(1)
		}
		return ctx, EncodeError(err)
	})
}

// identify returns whose the token in a call's headers is.
func identify(credentials Credentials, md metadata.MD) (string, error) {
	token, err := bearer(md)
	if err != nil {
		return "", err
	}
	if region, ok := credentials.Region(token); ok {
		return region, nil
	}
	return "", lease.Errorf(lease.Unauthenticated, "authorization", "the token belongs to no region")
}

// bearer returns the call's one bearer token. What it says never quotes it.
func bearer(md metadata.MD) (string, error) {
	values := md.Get("authorization")
	if len(values) != 1 {
		return "", lease.Errorf(lease.Unauthenticated, "authorization",
			"one authorization: Bearer TOKEN is needed, not %d", len(values))
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if token = strings.TrimSpace(token); !strings.EqualFold(scheme, "bearer") || token == "" {
		return "", lease.Errorf(lease.Unauthenticated, "authorization", "the scheme has to be Bearer TOKEN")
	}
	return token, nil
}
