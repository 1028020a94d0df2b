package rpc

import (
	"bytes"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

// Caught: the codec used as it is, and only the outermost messages counted.
func TestALongRequestIsLookedAtBeforeRoomIsMadeForIt(t *testing.T) {
	// Two bytes each: items, and reports inside one item.
	items := bytes.Repeat([]byte{2<<3 | 2, 0}, MaxMessage/2-8)
	reports := protowire.AppendBytes([]byte{2<<3 | 2}, items)
	for name, data := range map[string][]byte{"items": items, "reports": reports} {
		t.Run(name, func(t *testing.T) {
			var m rationv1.SyncLeasesRequest
			if err := NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &m); err == nil || len(m.Items) > 0 {
				t.Errorf("%d items, %v", len(m.Items), err)
			}
		})
	}
	// A list that is too long by a little reaches the handler, which knows which
	// one it is.
	few := bytes.Repeat([]byte{2<<3 | 2, 0}, 10*lease.MaxItems)
	var m rationv1.SyncLeasesRequest
	if err := NewCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(few)}, &m); err != nil || len(m.Items) != 10*lease.MaxItems {
		t.Errorf("%d items, %v", len(m.Items), err)
	}
}
