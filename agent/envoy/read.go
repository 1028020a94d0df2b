package envoy

import (
	"strings"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/internal/wire"
)

// Tags of a request's fields.
const (
	tagDomain     = 1<<3 | wire.Bytes
	tagDescriptor = 2<<3 | wire.Bytes
	tagHitsAddend = 3<<3 | wire.Varint
	tagEntry      = 1<<3 | wire.Bytes // in a descriptor
	tagLimit      = 2<<3 | wire.Bytes
	tagOwnHits    = 3<<3 | wire.Bytes
	tagNegative   = 4<<3 | wire.Varint
	tagKey        = 1<<3 | wire.Bytes // in an entry
	tagValue      = 2<<3 | wire.Bytes
	tagMultiplier = 3<<3 | wire.Bytes // in a limit
	tagWrapped    = 1<<3 | wire.Varint
)

// maxPairs are those of the largest request that is not refused, so that a
// longer one takes up no more.
const maxPairs = agent.MaxDescriptors * (maxEntries + 1)

// Read implements wire.Request.
func (q *request) Read(b []byte, text wire.Text) bool {
	q.text = text
	f := wire.Read(b)
	for f.Next() {
		switch f.Tag {
		case tagDomain:
			q.domain[0].Value = q.word(f.Bytes)
		case tagDescriptor:
			f.Bad = !q.readDescriptor(f.Bytes)
		case tagHitsAddend:
			q.hitsAddend = uint32(f.Number)
		}
	}
	return !f.Bad
}

// word is the string b. Bytes that are not UTF-8 are read as U+FFFD: Envoy puts a
// client's header into a descriptor as it came.
func (q *request) word(b []byte) string { return strings.ToValidUTF8(q.text.Of(b), "\uFFFD") }

func (q *request) readDescriptor(b []byte) bool {
	f, p, first := wire.Read(b), part{}, len(q.pairs)
	for f.Next() {
		switch f.Tag {
		case tagEntry:
			p.entries++
			f.Bad = !q.readEntry(f.Bytes)
		case tagLimit:
			f.Bad = !readLimit(f.Bytes)
		case tagOwnHits:
			p.adds = true
			f.Bad = !readWrapped(f.Bytes, &p.hitsAddend)
		case tagNegative:
			p.negative = f.Number != 0
		}
	}
	q.add(agent.Descriptor{}) // the domain, which may come last
	p.pairs = q.pairs[first:]
	if q.descriptors++; q.descriptors <= agent.MaxDescriptors {
		q.parts = append(q.parts, p)
	}
	return !f.Bad
}

func (q *request) readEntry(b []byte) bool {
	f, e := wire.Read(b), agent.Descriptor{}
	for f.Next() {
		switch f.Tag {
		case tagKey:
			e.Key = q.word(f.Bytes)
		case tagValue:
			e.Value = q.word(f.Bytes)
		}
	}
	if e.Key != domainKey {
		q.add(e)
	}
	return !f.Bad
}

func (q *request) add(d agent.Descriptor) {
	if len(q.pairs) < maxPairs {
		q.pairs = append(q.pairs, d)
	}
}

// readLimit reports whether an override is well formed.
func readLimit(b []byte) bool {
	f := wire.Read(b)
	for f.Next() {
		if f.Tag == tagMultiplier {
			f.Bad = !readWrapped(f.Bytes, new(uint64))
		}
	}
	return !f.Bad
}

// readWrapped reads a UInt32Value or UInt64Value into to, which stays as it is
// where the message has none.
func readWrapped(b []byte, to *uint64) bool {
	f := wire.Read(b)
	for f.Next() {
		if f.Tag == tagWrapped {
			*to = f.Number
		}
	}
	return !f.Bad
}
