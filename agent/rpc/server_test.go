package rpc

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/ration-dev/ration/agent"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// fakeChecker answers with its function and remembers the last check.
type fakeChecker struct {
	answer func(agent.Check) (agent.Answer, error)
	last   *agent.Check
}

func (f *fakeChecker) Check(_ context.Context, c agent.Check) (agent.Answer, error) {
	last := c // whose lists are used again
	last.Descriptors, last.Budgets = slices.Clone(c.Descriptors), slices.Clone(c.Budgets)
	f.last = &last
	return f.answer(c)
}

func always(a agent.Answer) *fakeChecker {
	return &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { return a, nil }}
}

// start serves checker and returns a client and the count of panics.
func start(t *testing.T, checker Checker) (rationv1.LimitServiceClient, *atomic.Int64) {
	t.Helper()
	panics := new(atomic.Int64)
	server := grpc.NewServer(leaserpc.ServerOptions(panics, slog.New(slog.NewTextHandler(io.Discard, nil)))...)
	NewServer(checker, new(atomic.Int64)).Register(server)
	listener := bufconn.Listen(1 << 20)
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	conn, err := grpc.NewClient("passthrough:///bufconn",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return rationv1.NewLimitServiceClient(conn), panics
}

func byName() *rationv1.CheckLimitsRequest {
	return &rationv1.CheckLimitsRequest{Budgets: []string{"b"}}
}

func TestACheckArrivesAsItWasSent(t *testing.T) {
	checker := always(agent.Answer{Outcome: agent.Allowed})
	client, _ := start(t, checker)
	_, err := client.CheckLimits(t.Context(), &rationv1.CheckLimitsRequest{
		Descriptors: []*rationv1.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "k", Value: "v"}},
		Cost:        proto.Int64(7), RequestId: "r1", DeadlineUs: 1500,
	})
	want := agent.Check{
		Descriptors: []agent.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "k", Value: "v"}},
		Cost:        7, RequestID: "r1", Deadline: 1500 * time.Microsecond,
	}
	if err != nil || !reflect.DeepEqual(*checker.last, want) {
		t.Errorf("asked %+v, %v", checker.last, err)
	}
}

// A cost left out is 1: a peek by accident would let everything pass.
// Caught: GetCost in place of the test for presence.
func TestAnUnsetCostIsOneAndZeroAPeek(t *testing.T) {
	checker := always(agent.Answer{Outcome: agent.Allowed})
	client, _ := start(t, checker)
	for cost, m := range map[lease.Tokens]*rationv1.CheckLimitsRequest{
		1: byName(), 0: {Budgets: []string{"b"}, Cost: proto.Int64(0)},
	} {
		if _, err := client.CheckLimits(t.Context(), m); err != nil || checker.last.Cost != cost {
			t.Errorf("want %d, got %+v, %v", cost, checker.last, err)
		}
	}
}

func TestADenialIsAnAnswer(t *testing.T) {
	client, _ := start(t, always(agent.Answer{
		Outcome: agent.Denied, Mode: agent.FromMemory, Budget: "acme/search", Version: 4, Limit: 100, Remaining: 3,
		RetryAfter: 12 * time.Millisecond, ResetAfter: time.Second, Never: true, Reason: "never",
	}))
	got, err := client.CheckLimits(t.Context(), byName())
	want := &rationv1.CheckLimitsResponse{
		Mode: rationv1.CheckLimitsResponse_MODE_MEMORY, Budget: "acme/search", PolicyVersion: 4, Limit: 100, Remaining: 3,
		RetryAfterUs: 12_000, ResetAfterUs: 1_000_000, Never: true, Reason: "never",
	}
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	client, _ = start(t, always(agent.Answer{Outcome: agent.Allowed, Mode: agent.FromPrefetch}))
	got, err = client.CheckLimits(t.Context(), byName())
	if err != nil || !got.GetAllowed() || got.GetMode() != rationv1.CheckLimitsResponse_MODE_PREFETCH {
		t.Errorf("got %v, %v", got, err)
	}
}

func TestModesHaveTheirWords(t *testing.T) {
	for m := agent.FromPrefetch; m <= agent.FromMemory; m++ {
		if got := rationv1.CheckLimitsResponse_Mode(m).String(); got != "MODE_"+strings.ToUpper(m.String()) {
			t.Errorf("%v is %s", m, got)
		}
	}
}

// Caught: allowed = false for no decision, which a caller takes for a denial.
func TestNoDecisionIsUnavailable(t *testing.T) {
	for want, answer := range map[time.Duration]agent.Answer{
		3 * time.Second:        {Outcome: agent.Unavailable, Reason: "no_lease", RetryAfter: 3 * time.Second},
		100 * time.Millisecond: {Outcome: agent.Unavailable, Reason: "no_lease"},
	} {
		client, _ := start(t, always(answer))
		_, err := client.CheckLimits(t.Context(), byName())
		var e *lease.Error
		if status.Code(err) != codes.Unavailable || !errors.As(leaserpc.DecodeError(err), &e) ||
			e.Code != lease.Unavailable || e.RetryAfter != want || !strings.Contains(e.Reason, "no_lease") {
			t.Errorf("got %v", err)
		}
	}
}

func TestBadInputIsRefusedByName(t *testing.T) {
	checker := &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { panic("decided") }}
	client, panics := start(t, checker)
	pair := &rationv1.Descriptor{Key: "k", Value: "v"}
	for field, m := range map[string]*rationv1.CheckLimitsRequest{
		"descriptors":          {},
		"budgets":              {Budgets: []string{"b"}, Descriptors: []*rationv1.Descriptor{pair}},
		"budgets[0]":           {Budgets: []string{""}},
		"descriptors[1].value": {Descriptors: []*rationv1.Descriptor{pair, {Key: "l"}}},
		"cost":                 {Budgets: []string{"b"}, Cost: proto.Int64(-1)},
		"request_id":           {Budgets: []string{"b"}, RequestId: strings.Repeat("r", 257)},
		"deadline_us":          {Budgets: []string{"b"}, DeadlineUs: -1},
	} {
		_, err := client.CheckLimits(t.Context(), m)
		var e *lease.Error
		if status.Code(err) != codes.InvalidArgument || !errors.As(leaserpc.DecodeError(err), &e) || e.Field != field {
			t.Errorf("%s: %v, %+v", field, err, e)
		}
	}
	for _, m := range []*rationv1.CheckLimitsRequest{
		{Budgets: []string{"b"}, Cost: proto.Int64(1 << 53)},
		{Budgets: []string{"b"}, DeadlineUs: 1<<63 - 1},
	} {
		if _, err := client.CheckLimits(t.Context(), m); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%v: %v", m, err)
		}
	}
	if panics.Load() != 0 {
		t.Error("bad input was decided")
	}
	var invalid atomic.Int64
	if _, err := NewServer(checker, &invalid).checkLimits(t.Context(), new(request)); err == nil || invalid.Load() != 1 {
		t.Errorf("%v, and %d counted as malformed", err, invalid.Load())
	}
}

func TestErrorsOfTheAgentKeepTheirCode(t *testing.T) {
	for err, want := range map[error]codes.Code{
		lease.Errorf(lease.Conflict, "request_id", "other content"): codes.AlreadyExists,
		lease.Errorf(lease.UnknownBudget, "budgets[0]", "none"):     codes.NotFound,
		errors.New("redis://:secret@host"):                          codes.Internal,
	} {
		client, _ := start(t, &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { return agent.Answer{}, err }})
		_, got := client.CheckLimits(t.Context(), byName())
		if status.Code(got) != want || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v became %v", err, got)
		}
	}
	client, panics := start(t, &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { panic("secret") }})
	if _, err := client.CheckLimits(t.Context(), byName()); status.Code(err) != codes.Internal || panics.Load() != 1 {
		t.Errorf("a panic: %v", err)
	}
	client, _ = start(t, always(agent.Answer{}))
	if _, err := client.CheckLimits(t.Context(), byName()); status.Code(err) != codes.Internal {
		t.Errorf("an answer without an outcome: %v", err)
	}
}
