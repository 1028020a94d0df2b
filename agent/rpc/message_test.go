package rpc

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	"github.com/ration-dev/ration/agent"
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
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
	// In several pieces, as it may come.
	half := len(b) / 2
	for _, data := range []mem.BufferSlice{{mem.SliceBuffer(b)}, {mem.SliceBuffer(b[:half]), mem.SliceBuffer(b[half:])}} {
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
	list, r, q := messages(t), rand.New(rand.NewPCG(1, 2)), new(request)
	for _, b := range list {
		agrees(t, q, b)
	}
	list = slices.DeleteFunc(list, func(b []byte) bool { return len(b) == 0 || len(b) > 400 })
	for range 20_000 {
		b := slices.Clone(list[r.IntN(len(list))])
		for range 1 + r.IntN(3) {
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		}
		agrees(t, q, b[:len(b)-r.IntN(2)])
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
			written, err := leaserpc.NewCodec().Marshal(reply(&a))
			if err != nil {
				t.Fatal(err)
			}
			var got rationv1.CheckLimitsResponse
			if err := proto.Unmarshal(written.Materialize(), &got); err != nil {
				t.Fatal(err)
			}
			if want := plainReply(&a); !proto.Equal(&got, want) {
				t.Errorf("%v is written, want %v", &got, want)
			}
			written.Free()
		}
	}
}

// registrar has a service's only method.
type registrar struct{ handle grpc.MethodHandler }

func (r *registrar) RegisterService(d *grpc.ServiceDesc, _ any) { r.handle = d.Methods[0].Handler }

// BenchmarkCheck is the face alone, between the bytes of a request and those of
// its reply; plainly is with the protobuf library's messages.
func BenchmarkCheck(b *testing.B) {
	checker := ready{Outcome: agent.Allowed, Mode: agent.FromPrefetch, Budget: "acme/route", Version: 3, Limit: 100_000, Remaining: 77_000, ResetAfter: 1_234_567_000}
	codec, data := leaserpc.NewCodec(), mem.BufferSlice{mem.SliceBuffer(messages(b)[0])}
	b.Run("ours", func(b *testing.B) {
		var service registrar
		NewServer(checker, new(atomic.Int64)).Register(&service)
		decode := func(v any) error { return codec.Unmarshal(data, v) }
		through := func(ctx context.Context, q any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			return handler(ctx, q)
		}
		b.ReportAllocs()
		for b.Loop() {
			r, err := service.handle(nil, b.Context(), decode, through)
			if err != nil {
				b.Fatal(err)
			}
			out, err := codec.Marshal(r)
			if err != nil {
				b.Fatal(err)
			}
			out.Free()
		}
	})
	b.Run("plainly", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			m := new(rationv1.CheckLimitsRequest)
			if err := codec.Unmarshal(data, m); err != nil {
				b.Fatal(err)
			}
			check, err := plainCheck(m)
			if err != nil {
				b.Fatal(err)
			}
			answer, _ := checker.Check(b.Context(), check)
			out, err := codec.Marshal(plainReply(&answer))
			if err != nil {
				b.Fatal(err)
			}
			out.Free()
		}
	})
}

// ready is a Checker with an answer.
type ready agent.Answer

func (r ready) Check(context.Context, agent.Check) (agent.Answer, error) { return agent.Answer(r), nil }
