package app

import (
	"context"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Envoy's question on the agent's own port is decided by the same budgets.
func TestAnAgentServesEnvoy(t *testing.T) {
	b := bucket(t, "headline", 0, 4)
	b.Match = map[string]string{"domain": "edge", "path": "/"}
	d := newDev(t, []DevRegion{{"us", time.Millisecond}}, b)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Stop(context.Background()) }()
	conn, err := grpc.NewClient(d.Agents()[0].GRPCAddr(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	r, err := ratelimitv3.NewRateLimitServiceClient(conn).ShouldRateLimit(t.Context(), &ratelimitv3.RateLimitRequest{
		Domain: "edge", HitsAddend: 5,
		Descriptors: []*commonv3.RateLimitDescriptor{{Entries: []*commonv3.RateLimitDescriptor_Entry{{Key: "path", Value: "/"}}}},
	})
	if err != nil || r.GetOverallCode() != ratelimitv3.RateLimitResponse_OVER_LIMIT {
		t.Errorf("%v, %v: 5 were let pass of 4", r, err)
	}
}
