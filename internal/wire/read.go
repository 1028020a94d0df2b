package wire

import (
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Kinds of fields in a tag, which is a field's number<<3 and its kind.
const (
	Varint = uint64(protowire.VarintType)
	Bytes  = uint64(protowire.BytesType)
)

const (
	minTag = uint64(protowire.MinValidNumber) << 3
	maxTag = uint64(protowire.MaxValidNumber)<<3 | 7
)

// Fields reads a message field by field, and takes for malformed what the
// protobuf library does. A tag that the reader does not know is of a later
// protocol, and to be left aside.
type Fields struct {
	rest []byte
	// Tag says which field it is; Number is its value if its kind is Varint, Bytes
	// if it is Bytes.
	Tag, Number uint64
	Bytes       []byte
	// Bad is set at what is malformed; a reader sets it for what is within.
	Bad bool
}

// Read begins to read a message.
func Read(b []byte) Fields { return Fields{rest: b} }

// Next goes to the next field, if there is one and all was well so far.
func (f *Fields) Next() bool {
	if f.Bad || len(f.rest) == 0 {
		return false
	}
	tag, n := protowire.ConsumeVarint(f.rest)
	if n < 0 || tag < minTag || tag > maxTag {
		f.Bad = true
		return false
	}
	f.Tag, f.rest = tag, f.rest[n:]
	switch kind := protowire.Type(tag & 7); kind {
	case protowire.VarintType:
		f.Number, n = protowire.ConsumeVarint(f.rest)
	case protowire.BytesType:
		f.Bytes, n = protowire.ConsumeBytes(f.rest)
	default:
		n = protowire.ConsumeFieldValue(protowire.Number(tag>>3), kind, f.rest)
	}
	if n < 0 {
		f.Bad = true
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// Text has a message's strings, all of one copy that is made of the message: who
// keeps one keeps all of it.
type Text struct {
	all  string
	room int // the capacity of what it was copied from
}

// Of is the part b of the message, which may be not UTF-8: it stands in the copy as
// far from the end of the room as b does.
func (t Text) Of(b []byte) string {
	at := t.room - cap(b)
	return t.all[at : at+len(b)]
}

// Request is read from bytes and used again.
type Request interface {
	// Read reads b, whose strings are in text, and reports whether it is well
	// formed. It keeps nothing of b.
	Read(b []byte, text Text) bool
	// Reset readies it for other bytes, and reports whether it is small enough to
	// be kept.
	Reset() bool
}

// Unmarshal reads data into r, and reports whether it is well formed.
func Unmarshal(data mem.BufferSlice, r Request) bool {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	b := whole.ReadOnlyData()
	return r.Read(b, Text{all: string(b), room: cap(b)})
}
