package envoy

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// This file reads requests and writes replies with the protobuf library's own
// messages, as plainly as can be.

// plainUnmarshal is nil for what is no RateLimitRequest.
func plainUnmarshal(b []byte) *ratelimitv3.RateLimitRequest {
	var m ratelimitv3.RateLimitRequest
	if proto.Unmarshal(b, &m) == nil {
		return &m
	}
	m.Reset()
	if proto.Unmarshal(mend(b, m.ProtoReflect().Descriptor()), &m) == nil {
		return &m
	}
	return nil
}

// mend returns b, a message of the kind d, with all strings valid. What cannot
// be read is left to the decoder, which stops there.
func mend(b []byte, d protoreflect.MessageDescriptor) []byte {
	var out []byte
	for len(b) > 0 {
		number, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			break
		}
		size := protowire.ConsumeFieldValue(number, kind, b[tag:])
		if size < 0 {
			break
		}
		field := d.Fields().ByNumber(number)
		if kind == protowire.BytesType && field != nil {
			inner, _ := protowire.ConsumeBytes(b[tag:])
			out = protowire.AppendTag(out, number, kind)
			out = protowire.AppendBytes(out, mendField(inner, field))
		} else {
			out = append(out, b[:tag+size]...)
		}
		b = b[tag+size:]
	}
	return append(out, b...)
}

func mendField(b []byte, field protoreflect.FieldDescriptor) []byte {
	switch {
	case field.Message() != nil:
		return mend(b, field.Message())
	case field.Kind() == protoreflect.StringKind:
		return bytes.ToValidUTF8(b, []byte("\uFFFD"))
	}
	return b
}

func plainRead(m *ratelimitv3.RateLimitRequest) (*request, error) {
	domain, descriptors := m.GetDomain(), m.GetDescriptors()
	switch {
	case domain == "" || len(domain) > agent.MaxWord:
		return nil, lease.Errorf(lease.Invalid, "domain", "must be 1 to %d bytes", agent.MaxWord)
	case len(descriptors) == 0:
		return nil, lease.Errorf(lease.Invalid, "descriptors", "none given")
	case len(descriptors) > agent.MaxDescriptors:
		return nil, lease.Errorf(lease.Invalid, "descriptors", "%d are more than %d", len(descriptors), agent.MaxDescriptors)
	}
	q := &request{parts: make([]part, len(descriptors))}
	q.domain[0] = agent.Descriptor{Key: domainKey, Value: domain}
	for i, d := range descriptors {
		n, refused := plainHits(d, m.GetHitsAddend())
		if refused != nil {
			return nil, within(i, refused)
		}
		q.parts[i].hits = n
		if n := len(d.GetEntries()); n == 0 || n > maxEntries {
			return nil, within(i, lease.Errorf(lease.Invalid, "entries", "must be 1 to %d, not %d", maxEntries, n))
		}
		q.parts[i].pairs = plainPairs(d, q.domain[0])
	}
	return q, nil
}

func plainHits(d *commonv3.RateLimitDescriptor, all uint32) (lease.Tokens, *lease.Error) {
	if d.GetIsNegativeHits() {
		return 0, lease.Errorf(lease.Invalid, "is_negative_hits", "tokens that were spent never come back")
	}
	if d.GetHitsAddend() == nil {
		return max(1, lease.Tokens(all)), nil
	}
	own := d.GetHitsAddend().GetValue()
	if own > uint64(lease.MaxTokens) {
		return 0, lease.Errorf(lease.Invalid, "hits_addend", "above %d", lease.MaxTokens)
	}
	return lease.Tokens(own), nil
}

func plainPairs(d *commonv3.RateLimitDescriptor, domain agent.Descriptor) []agent.Descriptor {
	out := make([]agent.Descriptor, 0, len(d.GetEntries())+1)
	for _, e := range d.GetEntries() {
		if e.GetKey() != domainKey {
			out = append(out, agent.Descriptor{Key: e.GetKey(), Value: e.GetValue()})
		}
	}
	return append(out, domain)
}

func (s *Server) plainReply(q *request, a *agent.Answer) *ratelimitv3.RateLimitResponse {
	out := &ratelimitv3.RateLimitResponse{
		OverallCode: ratelimitv3.RateLimitResponse_OK,
		Statuses:    make([]*ratelimitv3.RateLimitResponse_DescriptorStatus, len(q.parts)),
	}
	if a.Outcome != agent.Allowed {
		out.OverallCode = ratelimitv3.RateLimitResponse_OVER_LIMIT
	}
	if a.Outcome != agent.Allowed && !a.Never {
		seconds := int64((max(a.RetryAfter, 1)-1)/time.Second) + 1
		out.ResponseHeadersToAdd = []*corev3.HeaderValue{{Key: "retry-after", Value: strconv.FormatInt(seconds, 10)}}
	}
	for i := range q.parts {
		out.Statuses[i] = s.plainStatus(&q.parts[i], a)
	}
	return out
}

func (s *Server) plainStatus(p *part, a *agent.Answer) *ratelimitv3.RateLimitResponse_DescriptorStatus {
	out := &ratelimitv3.RateLimitResponse_DescriptorStatus{Code: ratelimitv3.RateLimitResponse_OK}
	if len(p.budgets) == 0 {
		return out
	}
	var decisive agent.Matched
	state := *a
	at := slices.IndexFunc(p.budgets, func(b agent.Matched) bool { return b.Budget == a.Budget })
	switch {
	case at >= 0 && a.Outcome != agent.Allowed:
		out.Code = ratelimitv3.RateLimitResponse_OVER_LIMIT
		decisive = p.budgets[at]
	case at >= 0 && p.hits > 0:
		decisive = p.budgets[at]
	default:
		decisive, state = s.least(p.budgets)
	}
	if l, said := limitOf(decisive); said {
		out.CurrentLimit = &ratelimitv3.RateLimitResponse_RateLimit{Name: l.name, RequestsPerUnit: l.requests, Unit: l.unit}
		if l.multiple > 0 {
			out.CurrentLimit.UnitMultiplier = wrapperspb.UInt32(l.multiple)
		}
	}
	out.LimitRemaining = uint32(min(int64(state.Remaining), math.MaxUint32))
	out.DurationUntilReset = durationpb.New(state.ResetAfter)
	return out
}
