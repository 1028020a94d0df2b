package rpc

import (
	"errors"
	"fmt"

	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec that codec wraps
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/ration-dev/ration/internal/wire"
	"github.com/ration-dev/ration/lease"
)

const (
	// maxParts bounds the messages inside a request: those of a full batch, each
	// item with a report and rate of every kind and all its local counters.
	maxParts = lease.MaxItems * (1 + 2*lease.Kinds + lease.MaxLocal)
	// smallMessage has few parts whatever is in it, so decisions are not
	// counted.
	smallMessage = 16 << 10
)

// codec is gRPC's own, save that it looks at a long request before it makes
// room for it: an empty message inside takes two bytes on the wire and over a
// hundred in memory, so the bound on bytes alone would let one call take up
// more than a gigabyte. What reads and writes itself it leaves alone.
type codec struct{ encoding.CodecV2 }

// NewCodec makes the codec of ServerOptions, for whoever reads or writes without a
// server.
func NewCodec() encoding.CodecV2 { return codec{encoding.GetCodecV2("proto")} }

var errMalformed = errors.New("malformed")

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	if r, ok := v.(wire.Request); ok {
		if !wire.Unmarshal(data, r) {
			return errMalformed
		}
		return nil
	}
	m, ok := v.(proto.Message)
	if !ok || data.Len() <= smallMessage {
		return c.CodecV2.Unmarshal(data, v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	if left := maxParts; !fits(whole.ReadOnlyData(), m.ProtoReflect().Descriptor(), &left) {
		return fmt.Errorf("more than %d messages inside one", maxParts)
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{whole}, v)
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ok := v.(*wire.Reply); ok {
		return r.Marshal(), nil
	}
	return c.CodecV2.Marshal(v)
}

// fits takes the messages inside b off left and reports whether there were as
// many. What cannot be read is left to the decoder, which stops there.
func fits(b []byte, d protoreflect.MessageDescriptor, left *int) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return true
		}
		b = b[n:]
		if n = protowire.ConsumeFieldValue(number, kind, b); n < 0 {
			return true
		}
		field := d.Fields().ByNumber(number)
		if kind == protowire.BytesType && field != nil && field.Message() != nil {
			inner, _ := protowire.ConsumeBytes(b)
			if *left--; *left < 0 || !fits(inner, field.Message(), left) {
				return false
			}
		}
		b = b[n:]
	}
	return true
}
