package explore

import (
	"fmt"
	"sync"
	"time"
)

// Options bound a search.
type Options struct {
	// States is how many states are visited at most; 0 for no bound.
	States int
	// Time is how long the search runs at most, looked at between levels of
	// depth and blocks of states; 0 for no bound. What is found within it does
	// not depend on it.
	Time time.Duration
	// Exact keeps what only a broken rule would look at.
	Exact bool
	// Workers is how many goroutines expand states; 0 takes 1. The result does
	// not depend on it.
	Workers int
}

// Result is what a search found.
type Result struct {
	Config string
	// States were visited, Steps taken between them, and Depth is the length of
	// the longest of the shortest ways to a state.
	States, Steps, Depth int
	// Exhaustive is set when every state that can be reached was visited.
	Exhaustive bool
	Took       time.Duration
	// Broken is the first invariant that fell, nil for none, and Trace the
	// shortest way there, one line per step.
	Broken *Broken
	Trace  []string
}

func (r Result) String() string {
	s := fmt.Sprintf("%-34s %9d states %10d steps  depth %3d  exhaustive %-3s %6.1fs",
		r.Config, r.States, r.Steps, r.Depth, map[bool]string{true: "yes", false: "no"}[r.Exhaustive], r.Took.Seconds())
	if r.Broken != nil {
		s += fmt.Sprintf("\n  broken after %d steps: %v", len(r.Trace), r.Broken)
		for _, line := range r.Trace {
			s += "\n    " + line
		}
	}
	return s
}

// search is breadth first, level by level. Workers expand blocks of a level
// and drop what earlier levels have seen; then the finds are entered in order,
// so that every state has the same number and the same way to it in each run.
type search struct {
	cfg     *Config
	opt     Options
	seen    table
	parents []step
	level   []node
	workers []*worker
	result  Result
}

// step is how a state was first reached.
type step struct {
	from uint32
	by   action
}

// node is a state of the level: its number and what it is.
type node struct {
	number uint32
	state  []byte
}

// find is a state that a worker came to.
type find struct {
	hash   [2]uint64
	from   uint32
	by     action
	start  int
	end    int
	broken *Broken
}

// worker has all that one goroutine needs to expand states.
type worker struct {
	m        *model
	in, out  codec
	base, to world
	list     []action
	finds    []find
	arena    []byte
	steps    int
}

// Run explores cfg.
func Run(cfg Config, opt Options) Result {
	s := &search{cfg: &cfg, opt: opt, result: Result{Config: cfg.Name}}
	for range max(1, opt.Workers) {
		s.workers = append(s.workers, newWorker(&cfg, opt.Exact))
	}
	started := time.Now()
	s.run(started)
	s.result.Took = time.Since(started)
	return s.result
}

func newWorker(cfg *Config, exact bool) *worker {
	m := newModel(cfg, exact)
	return &worker{m: m, in: codec{m: m, read: true}, out: codec{m: m}}
}

func (s *search) run(started time.Time) {
	w := s.workers[0]
	first := w.encode(root(s.cfg))
	s.seen.add(hash(first))
	s.parents = append(s.parents, step{})
	s.level = []node{{0, append([]byte(nil), first...)}}
	for len(s.level) > 0 {
		if !s.deepen(started) {
			s.result.States = s.seen.n
			return
		}
	}
	s.result.Exhaustive = true
	s.result.States = s.seen.n
}

// block is how many states are expanded before their finds are entered.
const block = 1 << 13

// deepen expands the level into the next one, and reports whether to go on.
func (s *search) deepen(started time.Time) bool {
	var next []node
	for from := 0; from < len(s.level); from += block {
		s.expand(s.level[from:min(from+block, len(s.level))])
		var ok bool
		if next, ok = s.enter(next); !ok {
			return false
		}
		if s.opt.States > 0 && s.seen.n >= s.opt.States || s.opt.Time > 0 && time.Since(started) > s.opt.Time {
			return false
		}
	}
	s.level = next
	if len(next) > 0 {
		s.result.Depth++
	}
	return true
}

func (s *search) expand(nodes []node) {
	var wg sync.WaitGroup
	n := len(s.workers)
	for i, w := range s.workers {
		part := nodes[i*len(nodes)/n : (i+1)*len(nodes)/n]
		wg.Add(1)
		go func() {
			defer wg.Done()
			w.finds, w.arena, w.steps = w.finds[:0], w.arena[:0], 0
			for _, node := range part {
				if !w.expand(node, &s.seen) {
					return
				}
			}
		}()
	}
	wg.Wait()
}

// enter takes over what the workers found, in order.
func (s *search) enter(next []node) ([]node, bool) {
	for _, w := range s.workers {
		s.result.Steps += w.steps
		kept := 0
		for i := range w.finds {
			if f := &w.finds[i]; f.broken == nil {
				kept += f.end - f.start
			}
		}
		arena := make([]byte, 0, kept)
		for i := range w.finds {
			f := &w.finds[i]
			if f.broken != nil {
				s.result.Broken = f.broken
				s.result.Trace = s.trace(step{f.from, f.by})
				return next, false
			}
			if !s.seen.add(f.hash) {
				continue
			}
			number := uint32(len(s.parents))
			s.parents = append(s.parents, step{f.from, f.by})
			start := len(arena)
			arena = append(arena, w.arena[f.start:f.end]...)
			next = append(next, node{number, arena[start:len(arena):len(arena)]})
		}
	}
	return next, true
}

func (w *worker) encode(x *world) []byte {
	w.out.buf = w.out.buf[:0]
	w.out.world(x)
	return w.out.buf
}

func (w *worker) decode(state []byte, to *world) {
	w.in.buf, w.in.at = state, 0
	w.in.world(to)
}

// expand tries everything that may happen in one state. It stops at a broken
// invariant.
func (w *worker) expand(n node, seen *table) bool {
	w.decode(n.state, &w.base)
	w.list = w.m.actions(&w.base, w.list)
	for _, a := range w.list {
		w.decode(n.state, &w.to)
		if !w.m.apply(&w.to, a) {
			continue
		}
		w.steps++
		b := w.m.checkStep(&w.base, &w.to, a)
		state := w.encode(&w.to)
		h := hash(state)
		if b == nil && seen.has(h) {
			continue
		}
		if b == nil {
			b = w.m.checkState(&w.to)
		}
		f := find{hash: h, from: n.number, by: a, start: len(w.arena), broken: b}
		w.arena = append(w.arena, state...)
		f.end = len(w.arena)
		w.finds = append(w.finds, f)
		if b != nil {
			return false
		}
	}
	return true
}

// trace tells the way to a state, from the start.
func (s *search) trace(last step) []string {
	way := []action{last.by}
	for at := last.from; at != 0; at = s.parents[at].from {
		way = append(way, s.parents[at].by)
	}
	w := newWorker(s.cfg, s.opt.Exact)
	state := append([]byte(nil), w.encode(root(s.cfg))...)
	var lines []string
	for i := len(way) - 1; i >= 0; i-- {
		w.decode(state, &w.to)
		said := w.m.describe(&w.to, way[i])
		w.m.apply(&w.to, way[i])
		state = append(state[:0], w.encode(&w.to)...)
		lines = append(lines, fmt.Sprintf("%2d. %s\n         %s", len(way)-i, said, w.m.summary(&w.to)))
	}
	return lines
}
