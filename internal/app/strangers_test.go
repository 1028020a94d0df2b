package app

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	agentrpc "github.com/ration-dev/ration/agent/rpc"
	ledger "github.com/ration-dev/ration/allocation/memory"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease/rpc"
)

// noTokens knows no token.
type noTokens struct{}

func (noTokens) Region(string) (string, bool) { return "", false }

func dial(t *testing.T, addr string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(2*rpc.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// Who is not known takes up no memory: an allocator reads nothing of a call
// without a token, an agent nothing longer than a check. Caught: either server
// made without its own option.
func TestStrangersTakeUpNoMemory(t *testing.T) {
	a := NewAllocator(AllocatorOptions{
		Store: ledger.New(wallClock), Credentials: noTokens{},
		Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0", Log: quiet,
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer a.Stop(t.Context())
	long := strings.Repeat("x", rpc.MaxMessage+1)
	_, err := rationv1.NewLeaseServiceClient(dial(t, a.GRPCAddr())).SyncLeases(t.Context(), &rationv1.SyncLeasesRequest{Region: long})
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("the allocator says %v", err)
	}

	d := newDev(t, []DevRegion{{"us", time.Millisecond}}, bucket(t, "b", 1, 1))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer d.Stop(t.Context())
	client := rationv1.NewLimitServiceClient(dial(t, d.Agents()[0].GRPCAddr()))
	for n, want := range map[int]codes.Code{
		agentrpc.MaxMessage - 4: codes.InvalidArgument, // as long as a message may be; it says which field
		agentrpc.MaxMessage - 3: codes.ResourceExhausted,
	} {
		_, err := client.CheckLimits(t.Context(), &rationv1.CheckLimitsRequest{Budgets: []string{long[:n]}})
		if status.Code(err) != want {
			t.Errorf("the agent says to %d bytes: %v", n, err)
		}
	}
}
