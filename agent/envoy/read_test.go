package envoy

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

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/internal/wire/wiretest"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

// outcome is all that comes of reading b.
func outcome(q *request, err error) string {
	if err != nil {
		return err.Error()
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%q", q.domain)
	for _, p := range q.parts {
		fmt.Fprintf(&out, " %d%q", p.hits, p.pairs)
	}
	return out.String()
}

// agrees reads b into q, which has read others before, and plainly.
func agrees(t *testing.T, q *request, b []byte) {
	t.Helper()
	want := "malformed"
	if m := plainUnmarshal(b); m != nil {
		want = outcome(plainRead(m))
	}
	for _, data := range wiretest.InPieces(b) {
		err := leaserpc.NewCodec().Unmarshal(data, q)
		if err == nil {
			err = q.check()
		}
		if got := outcome(q, err); got != want {
			t.Fatalf("%x is read as\n%s, want\n%s", b, got, want)
		}
		q.Reset()
	}
}

// messages are requests of every kind, some of them malformed.
func messages(t testing.TB) [][]byte {
	limited := adding(7, descriptor("k", "v", "domain", "other"))
	limited.Limit = &commonv3.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: 2, UnitMultiplier: wrapperspb.UInt32(300)}
	refund := descriptor("k", "x")
	refund.IsNegativeHits = true
	var list [][]byte
	for _, m := range []*ratelimitv3.RateLimitRequest{
		asking(0, descriptor("tenant", "acme", "route", "/r/77")),
		asking(300, limited, adding(0, descriptor("k", "~~ and ~")), adding(1<<63, descriptor("", ""))),
		asking(1, descriptor("k", "x"), refund), asking(math.MaxUint32, descriptor()), asking(1),
		{},
		asking(1, descriptor(strings.Split(strings.Repeat("k,v,", maxEntries+2), ",")[:2*maxEntries+2]...)),
		asking(1, slices.Repeat([]*commonv3.RateLimitDescriptor{limited}, agent.MaxDescriptors+1)...),
		asking(1, slices.Repeat([]*commonv3.RateLimitDescriptor{descriptor(strings.Split(strings.Repeat("k,v,", maxEntries), ",")[:2*maxEntries]...)}, agent.MaxDescriptors)...),
		{Domain: strings.Repeat("d", agent.MaxWord+1), Descriptors: []*commonv3.RateLimitDescriptor{limited}},
	} {
		b, err := proto.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, b, []byte(strings.ReplaceAll(string(b), "~", "\xff")), b[:len(b)/2])
	}
	// Values that are given twice, unknown fields and groups of later protocols,
	// and what looks like them.
	two := append(slices.Clone(list[3]), list[0]...)
	group := append(protowire.AppendTag(slices.Clone(list[0]), 9, protowire.StartGroupType), list[0]...)
	ended := protowire.AppendTag(slices.Clone(group), 9, protowire.EndGroupType)
	merged := []byte{0x0a, 1, 'd', 0x12, 15, 0x0a, 4, 0x0a, 0, 0x12, 0, 0x1a, 2, 8, 5, 0x1a, 0, 0x22, 0, 0x20, 0}
	return append(list, two, group, ended, merged,
		append(slices.Clone(list[0]), 0xf8, 0xff, 0xff, 0xff, 0x0f, 0), // the last number of a field
		append(slices.Clone(list[0]), 0x80, 0x80, 0x80, 0x80, 0x10, 0), // the one after it
		append(slices.Clone(list[0]), 0x0b), append(slices.Clone(list[0]), 0x0e), append(slices.Clone(list[0]), 0x0c), []byte{0},
		[]byte{0x12, 4, 0x12, 2, 0x1a, 9}, []byte{0x12, 2, 0x1a, 1, 8}, []byte{0x18, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2},
	)
}

// Every message is read, refused or taken for malformed as it is by the protobuf
// library. Seen to catch: the first of two domains taken, an addend's message
// replaced instead of merged, an override that is not looked into, a string's
// place taken from the length instead of the capacity, one descriptor's pairs
// left to the next request.
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

// A request that is too long takes up no more room than one that is not.
func TestALongRequestTakesUpNoRoom(t *testing.T) {
	var q request
	entries := protowire.AppendBytes([]byte{0x12}, []byte(strings.Repeat("\x0a\x00", 10_000)))
	for _, b := range [][]byte{entries, []byte(strings.Repeat("\x12\x00", 30_000))} {
		if !wire.Unmarshal(mem.BufferSlice{mem.SliceBuffer(b)}, &q) {
			t.Error("not read")
		}
		if len(q.pairs) > maxPairs || len(q.parts) > agent.MaxDescriptors {
			t.Errorf("%d pairs, %d parts", len(q.pairs), len(q.parts))
		}
		if q.Reset() {
			t.Error("kept")
		}
	}
}

// ready is an agent with an answer, by which it knows the states of budgets too.
type ready struct {
	answer  agent.Answer
	matched []agent.Matched
}

func (r *ready) Check(context.Context, agent.Check) (agent.Answer, error) { return r.answer, nil }

func (r *ready) Match(_ []agent.Descriptor, to []agent.Matched) []agent.Matched {
	return append(to, r.matched...)
}

func (r *ready) State(budget string) (agent.Answer, bool) {
	a := r.answer
	a.Remaining, a.ResetAfter = a.Remaining/lease.Tokens(1+len(budget)), a.ResetAfter/3
	return a, true
}

// Whatever the answer, the reply that is written is that which the protobuf
// library would be given. Seen to catch: a denial's header left out, remaining
// tokens not cut to 32 bits, nanoseconds that have the seconds in them.
func TestRepliesAreWrittenAsTheProtobufLibraryReadsThem(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	contracts := []policy.Contract{
		{},
		{Rate: lease.Rate{Tokens: 7, Per: time.Second}},
		{Rate: lease.Rate{Tokens: 0, Per: 90 * time.Minute}},
		{Rate: lease.Rate{Tokens: 3, Per: 700 * time.Millisecond}},
		{Rate: lease.Rate{Tokens: math.MaxUint32, Per: 300 * 24 * time.Hour}},
		{Quota: policy.Quota{N: 900, Per: policy.Year}},
	}
	budgets := make([]agent.Matched, len(contracts))
	for i := range contracts {
		budgets[i] = agent.Matched{Budget: strings.Repeat("a/b", 1+40*i), Contract: &contracts[i]}
	}
	times := []time.Duration{0, 1, time.Second - 1, time.Second, time.Second + 1, 1234567891234, 1<<63 - 1}
	remaining := []lease.Tokens{0, 1, 127, 128, math.MaxUint32, math.MaxUint32 + 1, lease.MaxTokens}
	for range 5_000 {
		a := agent.Answer{
			Outcome: agent.Allowed, Budget: budgets[r.IntN(len(budgets))].Budget, Never: r.IntN(4) == 0,
			Remaining: remaining[r.IntN(len(remaining))], RetryAfter: times[r.IntN(len(times))], ResetAfter: times[r.IntN(len(times))],
		}
		if r.IntN(2) == 0 {
			a.Outcome = agent.Denied
		}
		q := &request{parts: make([]part, 1+r.IntN(4))}
		for i := range q.parts {
			first := r.IntN(len(budgets))
			q.parts[i] = part{hits: lease.Tokens(r.IntN(2)), budgets: budgets[first : first+r.IntN(len(budgets)-first+1)]}
		}
		s := NewServer(&ready{answer: a}, new(atomic.Int64))
		wiretest.Written(t, s.reply(q, &a), s.plainReply(q, &a))
	}
}

// BenchmarkDecision is the face alone, between the bytes of a request and those
// of its reply; plainly is with the protobuf library's messages.
func BenchmarkDecision(b *testing.B) {
	a := &ready{
		answer:  agent.Answer{Outcome: agent.Allowed, Mode: agent.FromPrefetch, Budget: "acme/route", Remaining: 77_000, ResetAfter: 1_234_567_000},
		matched: []agent.Matched{{Budget: "acme/route", Contract: &policy.Contract{Rate: lease.Rate{Tokens: 100_000, Per: time.Second}}}},
	}
	message, err := proto.Marshal(asking(0, descriptor("tenant", "acme", "route", "/v1/items/4711")))
	if err != nil {
		b.Fatal(err)
	}
	s := NewServer(a, new(atomic.Int64))
	wiretest.Benchmark(b, message, wiretest.Method(s.Register), func(ctx context.Context, codec encoding.CodecV2, data mem.BufferSlice) (proto.Message, error) {
		m := new(ratelimitv3.RateLimitRequest)
		if err := codec.Unmarshal(data, m); err != nil {
			return nil, err
		}
		q, err := plainRead(m)
		if err != nil {
			return nil, err
		}
		q.match(a)
		answer, err := s.decide(ctx, q)
		return s.plainReply(q, &answer), err
	})
}
