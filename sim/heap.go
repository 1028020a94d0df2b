package sim

import "time"

// action is what happens at an instant.
type action interface{ fire() }

// call is an action made of a function, for what is rare.
type call func()

func (c call) fire() { c() }

// event is an action in the heap; seq keeps those of one instant in the order
// in which they were scheduled.
type event struct {
	at  time.Duration
	seq uint64
	do  action
}

func (e event) before(f event) bool { return e.at < f.at || e.at == f.at && e.seq < f.seq }

// events is a heap with four children per node: a run is mostly pushes and
// pops, and a flat heap touches fewer cache lines.
type events struct {
	list []event
	seq  uint64
}

func (h *events) push(at time.Duration, do action) {
	h.seq++
	e := event{at: at, seq: h.seq, do: do}
	h.list = append(h.list, e)
	i := len(h.list) - 1
	for i > 0 {
		parent := (i - 1) / 4
		if !e.before(h.list[parent]) {
			break
		}
		h.list[i] = h.list[parent]
		i = parent
	}
	h.list[i] = e
}

func (h *events) pop() event {
	top := h.list[0]
	last := h.list[len(h.list)-1]
	h.list[len(h.list)-1] = event{}
	h.list = h.list[:len(h.list)-1]
	if len(h.list) > 0 {
		h.sink(last)
	}
	return top
}

// sink puts e where the root was and lets it find its place.
func (h *events) sink(e event) {
	i := 0
	for {
		least := 4*i + 1
		if least >= len(h.list) {
			break
		}
		for c := least + 1; c < min(4*i+5, len(h.list)); c++ {
			if h.list[c].before(h.list[least]) {
				least = c
			}
		}
		if !h.list[least].before(e) {
			break
		}
		h.list[i] = h.list[least]
		i = least
	}
	h.list[i] = e
}
