package rpc

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/ration-dev/ration/agent"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/internal/wire/wiretest"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// plainCheck is what a request asks, read with the protobuf library's messages.
func plainCheck(m *rationv1.CheckLimitsRequest) (agent.Check, error) {
	check := agent.Check{Budgets: m.GetBudgets(), Cost: 1, RequestID: m.GetRequestId()}
	if m.Cost != nil {
		check.Cost = lease.Tokens(m.GetCost())
	}
	for _, d := range m.GetDescriptors() {
		check.Descriptors = append(check.Descriptors, agent.Descriptor{Key: d.GetKey(), Value: d.GetValue()})
	}
	const most = (1<<63 - 1) / int64(time.Microsecond)
	if us := m.GetDeadlineUs(); us > most || us < 0 {
		return agent.Check{}, lease.Errorf(lease.Invalid, "deadline", "must be from 0 to %d", most)
	}
	check.Deadline = time.Duration(m.GetDeadlineUs()) * time.Microsecond
	return check, check.Validate()
}

func plainReply(a *agent.Answer) *rationv1.CheckLimitsResponse {
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

func outcome(c agent.Check, err error) string {
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%q %q %d %q %v", c.Descriptors, c.Budgets, c.Cost, c.RequestID, c.Deadline)
}

// agrees reads b into q, which has read others before, and plainly.
func agrees(t *testing.T, q *request, b []byte) {
	t.Helper()
	want := "malformed"
	if m := new(rationv1.CheckLimitsRequest); proto.Unmarshal(b, m) == nil {
		want = outcome(plainCheck(m))
	}
	for _, data := range wiretest.InPieces(b) {
		got := "malformed"
		if leaserpc.NewCodec().Unmarshal(data, q) == nil {
			got = outcome(q.check())
		}
		q.Reset()
		if got != want {
			t.Fatalf("%x is read as\n%s, want\n%s", b, got, want)
		}
	}
}

func messages(t testing.TB) [][]byte {
	pair := &rationv1.Descriptor{Key: "tenant", Value: "acme"}
	var list [][]byte
	for _, m := range []*rationv1.CheckLimitsRequest{
		{Descriptors: []*rationv1.Descriptor{pair, {Key: "route", Value: "/v1"}}},
		{Descriptors: []*rationv1.Descriptor{pair, pair, {Value: "é"}}, Cost: proto.Int64(0), RequestId: "r"},
		{Budgets: []string{"a/b", "", "c"}, Cost: proto.Int64(-300), DeadlineUs: 1500, RequestId: strings.Repeat("r", 257)},
		{Budgets: []string{"a/b"}, Cost: proto.Int64(1 << 53), DeadlineUs: math.MaxInt64},
		{Budgets: []string{"a/b", "c"}, Cost: proto.Int64(77), DeadlineUs: 300, RequestId: "id"},
		{Descriptors: slices.Repeat([]*rationv1.Descriptor{pair}, agent.MaxDescriptors+1)},
		{},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b)
	}
	for _, b := range list[1:] { // given twice: merged
		list = append(list, append(slices.Clone(list[0]), b...), append(slices.Clone(b), b...))
	}
	return list
}

// Every message is read, refused or taken for malformed as it is by the protobuf
// library. Seen to catch: strings not looked at for UTF-8, a cost of 0 taken for
// none, one request's budgets left to the next.
func FuzzReading(f *testing.F) {
	for _, b := range messages(f) {
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) { agrees(t, new(request), b) })
}

// The same for messages that are nearly right, one after another.
func TestReadingIsTheProtobufLibrarys(t *testing.T) {
	list, q := messages(t), new(request)
	for _, b := range list {
		agrees(t, q, b)
	}
	for b := range wiretest.Mangled(list) {
		agrees(t, q, b)
	}
}

// Whatever the answer, the reply that is written is that which the protobuf
// library would be given. Seen to catch: nanoseconds for microseconds, a field
// left out.
func TestRepliesAreWrittenAsTheProtobufLibraryReadsThem(t *testing.T) {
	for _, n := range []int64{0, 1, 127, 128, 123_456_789, int64(lease.MaxTokens), math.MaxInt64} {
		for _, a := range []agent.Answer{
			{Outcome: agent.Allowed, Mode: agent.FromPrefetch, Budget: "a/b", Version: uint64(n), Limit: lease.Tokens(n), Remaining: lease.Tokens(n / 2)},
			{Outcome: agent.Denied, Mode: agent.FromMemory, RetryAfter: time.Duration(n), ResetAfter: time.Duration(n / 3), Never: n > 1, Reason: "never"},
		} {
			wiretest.Written(t, reply(&a), plainReply(&a))
		}
	}
}

// BenchmarkCheck is the face alone, between the bytes of a request and those of
// its reply; plainly is with the protobuf library's messages.
func BenchmarkCheck(b *testing.B) {
	checker := ready{Outcome: agent.Allowed, Mode: agent.FromPrefetch, Budget: "acme/route", Version: 3, Limit: 100_000, Remaining: 77_000, ResetAfter: 1_234_567_000}
	method := wiretest.Method(NewServer(checker, new(atomic.Int64)).Register)
	wiretest.Benchmark(b, messages(b)[0], method, func(ctx context.Context, codec encoding.CodecV2, data mem.BufferSlice) (proto.Message, error) {
		m := new(rationv1.CheckLimitsRequest)
		if err := codec.Unmarshal(data, m); err != nil {
			return nil, err
		}
		check, err := plainCheck(m)
		if err != nil {
			return nil, err
		}
		answer, err := checker.Check(ctx, check)
		return plainReply(&answer), err
	})
}

// ready is a Checker with an answer.
type ready agent.Answer

func (r ready) Check(context.Context, agent.Check) (agent.Answer, error) { return agent.Answer(r), nil }
