package envoy

import (
	"bytes"
	"testing"

	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// asIs sends bytes that no encoder of Go would write.
type asIs struct{}

func (asIs) Marshal(v any) ([]byte, error)   { return v.([]byte), nil }
func (asIs) Unmarshal(b []byte, v any) error { return proto.Unmarshal(b, v.(proto.Message)) }
func (asIs) Name() string                    { return "proto" }

// A client's header that is not UTF-8 charges what its descriptor matches, and what
// cannot be read at all is still refused. Seen to catch: such words refused, and
// left as they are.
func TestHeadersThatAreNotUTF8AreCharged(t *testing.T) {
	l := newLive(t, once("a/x", 3, "k", "v"))
	conn, _ := dial(t, l)
	valid, err := proto.Marshal(asking(2, descriptor("k", "v", "agent", "~~ and more")))
	if err != nil {
		t.Fatal(err)
	}
	// As Envoy's encoder, which does not look into strings, would write it; a
	// field of a later protocol comes along.
	header := bytes.Replace(valid, []byte("~~"), []byte("\xff\xc3"), 1)
	header = protowire.AppendString(protowire.AppendTag(header, 99, protowire.BytesType), "\xff")
	var r ratelimitv3.RateLimitResponse
	if err := conn.Invoke(t.Context(), ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, header, &r, grpc.ForceCodec(asIs{})); err != nil {
		t.Fatal(err)
	}
	if got := verdict(&r); got != "++" || l.left(t, "a/x") != 1 {
		t.Errorf("%s, %d left, want ++ and 1", got, l.left(t, "a/x"))
	}
	for _, broken := range [][]byte{{0xff}, header[:len(header)-1], {0x12, 9, 0x0a}} {
		if err := conn.Invoke(t.Context(), ratelimitv3.RateLimitService_ShouldRateLimit_FullMethodName, broken, &r, grpc.ForceCodec(asIs{})); err == nil {
			t.Errorf("%x was read", broken)
		}
	}
}
