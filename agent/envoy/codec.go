package envoy

import (
	"errors"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"

	leaserpc "github.com/ration-dev/ration/lease/rpc"
)

// ServerOption is for the gRPC server on which the service is registered, after
// leaserpc.ServerOptions; without it every call fails. The service's messages are
// its own. Envoy puts a client's header into a descriptor as it came, also what is
// not UTF-8, which the protobuf library does not take; and that library's messages
// were a fifth of a decision's garbage.
func ServerOption() grpc.ServerOption {
	return grpc.ForceServerCodecV2(codec{leaserpc.NewCodec()})
}

// codec reads requests into our own, and takes replies that are written already.
// Every other message is left to the codec within.
type codec struct{ encoding.CodecV2 }

var errMalformed = errors.New("not a RateLimitRequest")

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	q, ours := v.(*request)
	switch {
	case !ours:
		return c.CodecV2.Unmarshal(data, v)
	case !q.unmarshal(data):
		return errMalformed
	}
	return nil
}

// Marshal implements encoding.CodecV2.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if r, ours := v.(*reply); ours {
		return mem.BufferSlice{mem.NewBuffer((*[]byte)(r), mem.DefaultBufferPool())}, nil
	}
	return c.CodecV2.Marshal(v)
}
