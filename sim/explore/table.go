package explore

import "math/bits"

// mix folds one word into a hash, both halves by products that take every bit
// to every place.
func mix(h [2]uint64, x uint64) [2]uint64 {
	hi, lo := bits.Mul64(h[0]^x, 0x9FB21C651E98DF25)
	a := hi ^ lo
	hi, lo = bits.Mul64(h[1]^bits.RotateLeft64(x, 32)^a, 0xD6E8FEB86659FD93)
	return [2]uint64{a + h[1], hi ^ lo ^ h[0]}
}

// table is a set of hashes, each with the number of its state. The zero value
// is empty. Reading is safe for concurrent use while nobody writes.
type table struct {
	slots []slot
	n     int
}

type slot struct {
	hash [2]uint64
	used bool
}

func (t *table) has(h [2]uint64) bool {
	if len(t.slots) == 0 {
		return false
	}
	_, found := t.find(h)
	return found
}

func (t *table) find(h [2]uint64) (at uint64, found bool) {
	mask := uint64(len(t.slots) - 1)
	for at = h[0] & mask; t.slots[at].used; at = (at + 1) & mask {
		if t.slots[at].hash == h {
			return at, true
		}
	}
	return at, false
}

// add puts h in and reports whether it was not there.
func (t *table) add(h [2]uint64) bool {
	if 3*t.n >= 2*len(t.slots) {
		t.grow()
	}
	at, found := t.find(h)
	if found {
		return false
	}
	t.slots[at] = slot{hash: h, used: true}
	t.n++
	return true
}

func (t *table) grow() {
	old := t.slots
	t.slots = make([]slot, max(1<<12, 2*len(old)))
	for i := range old {
		if old[i].used {
			at, _ := t.find(old[i].hash)
			t.slots[at] = old[i]
		}
	}
}
