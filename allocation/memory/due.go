package memory

import (
	"container/heap"

	"github.com/ration-dev/ration/lease"
)

// dueHeap orders the entries that have a due time by it.
type dueHeap []*entry

func (h dueHeap) Len() int           { return len(h) }
func (h dueHeap) Less(i, j int) bool { return h[i].due < h[j].due }

func (h dueHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push is heap.Interface's.
func (h *dueHeap) Push(x any) {
	e := x.(*entry)
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop is heap.Interface's.
func (h *dueHeap) Pop() any {
	last := len(*h) - 1
	e := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	e.place = -1
	return e
}

// upTo names up to limit entries that are due at now, the earliest first, and
// leaves them in the heap: it takes them out and puts them back.
func (h *dueHeap) upTo(now lease.Time, limit int) []string {
	var names []string
	var taken []*entry
	for len(*h) > 0 && len(taken) < limit && (*h)[0].due <= now {
		e := heap.Pop(h).(*entry)
		taken = append(taken, e)
		names = append(names, e.name)
	}
	for _, e := range taken {
		heap.Push(h, e)
	}
	return names
}
