package wire

import (
	"slices"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Reply is a message as it is written. Its bytes are of gRPC's pool, to which they
// go back once they were sent.
type Reply []byte

// replySize has room for most replies. Much smaller buffers are not used again:
// gRPC's pool does not think them worth it.
const replySize = 2 << 10

// NewReply has no fields yet.
func NewReply() *Reply {
	r := (*Reply)(mem.DefaultBufferPool().Get(replySize))
	*r = (*r)[:0]
	return r
}

// Marshal gives r's bytes away.
func (r *Reply) Marshal() mem.BufferSlice {
	return mem.BufferSlice{mem.NewBuffer((*[]byte)(r), mem.DefaultBufferPool())}
}

// Number appends a field that is a number, unless that is 0.
func Number(b []byte, field protowire.Number, n uint64) []byte {
	if n == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, field, protowire.VarintType), n)
}

// Bool appends a field that is a truth value, unless that is false.
func Bool(b []byte, field protowire.Number, v bool) []byte {
	return Number(b, field, protowire.EncodeBool(v))
}

// String appends a field that is a string, unless that is empty.
func String(b []byte, field protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), s)
}

// Enclose makes what was appended from at on a field that is a message.
func Enclose(at int, field protowire.Number, b []byte) []byte {
	var room [20]byte
	head := protowire.AppendTag(room[:0], field, protowire.BytesType)
	return slices.Insert(b, at, protowire.AppendVarint(head, uint64(len(b)-at))...)
}
