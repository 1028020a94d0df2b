package redis

import (
	"fmt"

	"github.com/ration-dev/ration/lease"
)

// run is one run of a script, for one call or several: what a server needs before
// a step begins, it needs once. A step that fails does not hold up the others.
type run struct {
	script *script
	slot   uint32
	calls  []call
	at     []int // where each call stood among all
	rows   int
}

// runRows is how many keys the steps of a run have together, unless one has
// more by itself: a server does nothing else while it runs.
const runRows = 32

// together puts calls into as few runs as may be, each with calls of one script
// and slot in their order.
func together(calls []call) []run {
	runs := make([]run, 0, 4)
	for i, c := range calls {
		r := withRoom(runs, &c)
		if r == nil {
			runs = append(runs, run{script: c.script, slot: c.slot})
			r = &runs[len(runs)-1]
		}
		r.calls, r.at, r.rows = append(r.calls, c), append(r.at, i), r.rows+len(c.keys)
	}
	return runs
}

// withRoom returns the run that takes c in too, or nil.
func withRoom(runs []run, c *call) *run {
	for i := len(runs) - 1; i >= 0; i-- {
		if r := &runs[i]; r.script == c.script && r.slot == c.slot {
			if !c.script.each || r.rows+len(c.keys) > runRows {
				return nil // an earlier one would change the order
			}
			return r
		}
	}
	return nil
}

// arguments are those of the command: place for its name and script, the keys, the
// clock and the replication id to use (both empty in production, where the
// script reads them), and the calls' own.
func (s *Store) arguments(r *run) []any {
	n := 5 + r.rows
	for i := range r.calls {
		n += 2 + len(r.calls[i].args)
	}
	args := append(make([]any, 0, n), "", "", r.rows)
	for i := range r.calls {
		for _, k := range r.calls[i].keys {
			args = append(args, k)
		}
	}
	now, replid := s.told()
	args = append(args, now, replid)
	for i := range r.calls {
		c := &r.calls[i]
		if r.script.each {
			args = append(args, len(c.keys), len(c.args))
		}
		args = append(args, c.args...)
	}
	return args
}

// told is what a script is told of the clock and the replication id.
func (s *Store) told() (now, replid string) {
	if s.opts.TestClock != nil {
		t, id := s.opts.TestClock()
		now, replid = fmt.Sprint(int64(t)), id
	}
	if s.connCheck.Load() {
		if id := s.connReplid.Load(); id != nil {
			replid = *id
		}
	}
	return now, replid
}

// answer deals a run's answer out to its calls.
func (s *Store) answer(r *run, cmd onceCmd, replies []*reply, errs []error) {
	whole, err := s.opened(r, cmd)
	for _, at := range r.at {
		switch {
		case err != nil:
			errs[at] = err
		case !r.script.each:
			replies[at] = whole
		default:
			replies[at], errs[at] = whole.step()
		}
	}
}

// opened takes the header off a run's answer: the replication id.
func (s *Store) opened(r *run, cmd onceCmd) (*reply, error) {
	if err := cmd.Err(); err != nil {
		return nil, translate(err)
	}
	vals, ok := cmd.Val().([]any)
	if !ok {
		return nil, lease.Errorf(lease.Internal, "", "a script answered %T", cmd.Val())
	}
	whole := &reply{vals: vals}
	whole.replid = whole.str()
	if whole.err != nil {
		return nil, whole.err
	}
	s.saw(r.slot, whole.replid)
	return whole, nil
}
