package envoy

import (
	"strings"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/ration-dev/ration/agent"
)

// A request's fields as they are written on the wire: number and kind.
const (
	bytesOf  = uint64(protowire.BytesType)
	varintOf = uint64(protowire.VarintType)

	tagDomain      = 1<<3 | bytesOf
	tagDescriptor  = 2<<3 | bytesOf
	tagHitsAddend  = 3<<3 | varintOf
	tagEntry       = 1<<3 | bytesOf // in a descriptor
	tagLimit       = 2<<3 | bytesOf
	tagOwnHits     = 3<<3 | bytesOf
	tagNegative    = 4<<3 | varintOf
	tagKey         = 1<<3 | bytesOf // in an entry
	tagValue       = 2<<3 | bytesOf
	tagMultiplier  = 3<<3 | bytesOf // in a limit
	tagWrapped     = 1<<3 | varintOf
	minTag, maxTag = uint64(protowire.MinValidNumber) << 3, uint64(protowire.MaxValidNumber)<<3 | 7
)

// maxPairs are those of the largest request that is not refused, so that a
// longer one takes up no more.
const maxPairs = agent.MaxDescriptors * (maxEntries + 1)

// fields reads a message field by field, and takes for malformed what the
// protobuf library does. What it does not know is of a later protocol, and left
// aside.
type fields struct {
	rest []byte
	tag  uint64
	// number is the field's value if it is a varint, bytes if it has a length.
	number uint64
	bytes  []byte
	bad    bool
}

// next goes to the next field, if there is one and all was well so far.
func (f *fields) next() bool {
	if f.bad || len(f.rest) == 0 {
		return false
	}
	tag, n := protowire.ConsumeVarint(f.rest)
	if n < 0 || tag < minTag || tag > maxTag {
		f.bad = true
		return false
	}
	f.tag, f.rest = tag, f.rest[n:]
	switch kind := protowire.Type(tag & 7); kind {
	case protowire.VarintType:
		f.number, n = protowire.ConsumeVarint(f.rest)
	case protowire.BytesType:
		f.bytes, n = protowire.ConsumeBytes(f.rest)
	default:
		n = protowire.ConsumeFieldValue(protowire.Number(tag>>3), kind, f.rest)
	}
	if n < 0 {
		f.bad = true
		return false
	}
	f.rest = f.rest[n:]
	return true
}

// unmarshal reads a RateLimitRequest, and reports whether it is one. As in the
// protobuf library the last of several values counts, and messages are merged.
func (q *request) unmarshal(data mem.BufferSlice) bool {
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	b := whole.ReadOnlyData()
	q.text, q.textCap = string(b), cap(b)
	f := fields{rest: b}
	for f.next() {
		switch f.tag {
		case tagDomain:
			q.domain[0].Value = q.word(f.bytes)
		case tagDescriptor:
			f.bad = !q.readDescriptor(f.bytes)
		case tagHitsAddend:
			q.hitsAddend = uint32(f.number)
		}
	}
	return !f.bad
}

// word is the part b of the message as a string: of the one copy that was made
// of it all, in which it stands as far from the end of the room as b does. Bytes
// that are not UTF-8 are read as U+FFFD.
func (q *request) word(b []byte) string {
	at := q.textCap - cap(b)
	return strings.ToValidUTF8(q.text[at:at+len(b)], "\uFFFD")
}

func (q *request) readDescriptor(b []byte) bool {
	f, p, first := fields{rest: b}, part{}, len(q.pairs)
	for f.next() {
		switch f.tag {
		case tagEntry:
			p.entries++
			f.bad = !q.readEntry(f.bytes)
		case tagLimit:
			f.bad = !readLimit(f.bytes)
		case tagOwnHits:
			p.adds = true
			f.bad = !readWrapped(f.bytes, &p.hitsAddend)
		case tagNegative:
			p.negative = f.number != 0
		}
	}
	q.add(agent.Descriptor{}) // the domain, which may come last
	p.pairs = q.pairs[first:]
	if q.descriptors++; q.descriptors <= agent.MaxDescriptors {
		q.parts = append(q.parts, p)
	}
	return !f.bad
}

func (q *request) readEntry(b []byte) bool {
	f, e := fields{rest: b}, agent.Descriptor{}
	for f.next() {
		switch f.tag {
		case tagKey:
			e.Key = q.word(f.bytes)
		case tagValue:
			e.Value = q.word(f.bytes)
		}
	}
	if e.Key != domainKey {
		q.add(e)
	}
	return !f.bad
}

func (q *request) add(d agent.Descriptor) {
	if len(q.pairs) < maxPairs {
		q.pairs = append(q.pairs, d)
	}
}

// readLimit reports whether an override is well formed.
func readLimit(b []byte) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag == tagMultiplier {
			f.bad = !readWrapped(f.bytes, new(uint64))
		}
	}
	return !f.bad
}

// readWrapped reads a UInt32Value or UInt64Value into to, which stays as it is
// where the message has none.
func readWrapped(b []byte, to *uint64) bool {
	f := fields{rest: b}
	for f.next() {
		if f.tag == tagWrapped {
			*to = f.number
		}
	}
	return !f.bad
}
