package rpc

import (
	"context"
	"net"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/resolver"
	"google.golang.org/grpc/resolver/manual"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// DefaultTimeout bounds a call whose context has no deadline. It leaves the
// allocator room to hold an item until tokens come.
const DefaultTimeout = 5 * time.Second

// Dialing says how to reach an allocator.
type Dialing struct {
	// Target is a gRPC target; "dns:///host:port" spreads calls over all
	// replicas behind the name, "host:port,host:port" over those listed.
	Target string
	// Token is called for each call and returns the bearer token, so that a
	// token can be replaced while the agent runs. nil sends none.
	Token func() string
	// TLS secures the connection; nil leaves it in the clear, token included.
	TLS credentials.TransportCredentials
	// Options come last, for tests and tracing.
	Options []grpc.DialOption
}

// Dial makes a connection that connects when it is first used and reconnects
// by itself. The caller closes it.
func Dial(d Dialing) (*grpc.ClientConn, error) {
	transport := d.TLS
	if transport == nil {
		transport = insecure.NewCredentials()
	}
	options := append(clientOptions(), grpc.WithTransportCredentials(transport))
	if d.Token != nil {
		options = append(options, grpc.WithPerRPCCredentials(bearerToken{token: d.Token, secure: d.TLS != nil}))
	}
	target := d.Target
	if addresses := strings.Split(target, ","); len(addresses) > 1 {
		several := manual.NewBuilderWithScheme("several")
		state := resolver.State{}
		for _, a := range addresses {
			state.Addresses = append(state.Addresses, resolver.Address{Addr: a, ServerName: hostOf(a)})
		}
		several.InitialState(state)
		options = append(options, grpc.WithResolvers(several))
		target = "several:///allocators"
	}
	return grpc.NewClient(target, append(options, d.Options...)...)
}

// hostOf is the name that an address's certificate must carry.
func hostOf(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// bearerToken sends a region's token with each call.
type bearerToken struct {
	token  func() string
	secure bool
}

func (b bearerToken) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + b.token()}, nil
}

func (b bearerToken) RequireTransportSecurity() bool { return b.secure }

// Client is the allocator as an agent sees it: a lease.Source and a
// policy.Source. Every error is a *lease.Error. Safe for concurrent use.
type Client struct {
	service rationv1.LeaseServiceClient
	region  string
}

var (
	_ lease.Source  = (*Client)(nil)
	_ policy.Source = (*Client)(nil)
)

// NewClient makes a client over a connection, which stays the caller's. region
// is the one that the caller takes itself for: with another's token it is not
// even told the budgets. "" is not compared with the token's.
func NewClient(conn grpc.ClientConnInterface, region string) *Client {
	return &Client{service: rationv1.NewLeaseServiceClient(conn), region: region}
}

// SyncLeases implements lease.Source.
func (c *Client) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	m, err := c.service.SyncLeases(ctx, requestToProto(req))
	if err != nil {
		return lease.SyncReply{}, DecodeError(err)
	}
	return replyFromProto(m, req)
}

// ListBudgets implements policy.Source.
func (c *Client) ListBudgets(ctx context.Context, since uint64) (policy.List, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	m, err := c.service.ListBudgets(ctx, &rationv1.ListBudgetsRequest{SinceVersion: since, Region: c.region})
	if err != nil {
		return policy.List{}, DecodeError(err)
	}
	return listFromProto(m)
}

// bounded gives ctx a deadline if it has none.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, DefaultTimeout)
}
