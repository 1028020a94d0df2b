package envoy

import (
	"bytes"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// ServerOption is for the gRPC server on which the service is registered, after
// leaserpc.ServerOptions. Envoy puts a client's header into a descriptor as it
// came, also what is not UTF-8, which no decoder takes: without this option such
// a header turns the check into an error.
func ServerOption() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{leaserpc.NewCodec()})
}

// codec reads bytes that are not UTF-8 in Envoy's strings as U+FFFD. Every
// other message is read as the codec within reads it.
type codec struct{ encoding.CodecV2 }

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	err := c.CodecV2.Unmarshal(data, v)
	m, ours := v.(*ratelimitv3.RateLimitRequest)
	if err == nil || !ours {
		return err
	}
	mended := mem.SliceBuffer(mend(data.Materialize(), m.ProtoReflect().Descriptor()))
	proto.Reset(m)
	return c.CodecV2.Unmarshal(mem.BufferSlice{mended}, m)
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
