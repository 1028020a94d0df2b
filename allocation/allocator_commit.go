package allocation

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/ration-dev/ration/lease"
)

// task is one pure step on one budget.
type task struct {
	budget string
	// run may be called several times, each time on a freshly loaded state.
	run func(now Now, s *State)
	// err is the task's outcome once commit returned.
	err *lease.Error
}

// errPanic ends a transaction in which a step panicked.
var errPanic = errors.New("allocation: a step panicked")

// maxPanics is how many tasks of one batch are taken out for panicking before
// the rest of it is given up.
const maxPanics = 8

// commit runs the tasks in their order in one transaction and says in each how
// it went. A task that panics is refused alone: the transaction it spoiled is
// abandoned, and run again without it.
func (a *Allocator) commit(ctx context.Context, tasks []*task) {
	for range maxPanics {
		if len(tasks) == 0 {
			return
		}
		culprit, err := a.try(ctx, tasks)
		if culprit < 0 {
			a.settle(tasks, err)
			return
		}
		a.stats.Reruns.Add(1)
		rest := make([]*task, 0, len(tasks)-1)
		rest = append(rest, tasks[:culprit]...)
		tasks = append(rest, tasks[culprit+1:]...)
	}
	a.settle(tasks, lease.Errorf(lease.Internal, "", "too many steps of one batch failed"))
}

// settle gives every task the outcome of its transaction, save for those that
// have their own.
func (a *Allocator) settle(tasks []*task, err error) {
	switch {
	case err == nil:
		a.stats.countBatch(len(tasks))
		return
	case errors.Is(err, ErrUnknownCommit):
		a.stats.UnknownCommits.Add(1)
	default:
		a.stats.Failed.Add(1)
	}
	typed := a.typed(err)
	for _, t := range tasks {
		t.err = typed
	}
}

// try runs one transaction. culprit is the index of a task that panicked, in
// which case nothing was written; else -1. A store that panics itself leaves
// the outcome unknown.
func (a *Allocator) try(ctx context.Context, tasks []*task) (culprit int, err error) {
	culprit = -1
	defer func() {
		if v := recover(); v != nil {
			_ = a.panicked(v, debug.Stack())
			culprit, err = -1, fmt.Errorf("%w: the store panicked", ErrUnknownCommit)
		}
	}()
	names, place := budgetsOf(tasks)
	var counted tally
	runs := 0
	err = a.store.Update(ctx, names, func(now Now, states []*State) error {
		if runs++; runs > 1 {
			a.stats.Reruns.Add(1)
		}
		counted, culprit = tally{}, -1
		before := counted.before(now, states)
		for i, t := range tasks {
			if !a.step(t, now, states[place[i]]) {
				culprit = i
				return errPanic
			}
		}
		counted.after(now, states, before)
		return nil
	})
	if culprit < 0 && err == nil {
		a.stats.Expired.Add(counted.expired)
		a.stats.WrittenOff.Add(counted.writtenOff)
	}
	return culprit, err
}

// step runs one task and reports whether it came to its end.
func (a *Allocator) step(t *task, now Now, s *State) (ok bool) {
	t.err = nil
	if s == nil {
		t.err = lease.Errorf(lease.UnknownBudget, "budget", "no budget %q is known", t.budget)
		return true
	}
	defer func() {
		if v := recover(); v != nil {
			t.err, ok = a.panicked(v, debug.Stack()), false
		}
	}()
	t.run(now, s)
	return true
}

// budgetsOf names each budget once, and says for each task which it is.
func budgetsOf(tasks []*task) (names []string, place []int) {
	at := make(map[string]int, len(tasks))
	place = make([]int, len(tasks))
	for i, t := range tasks {
		n, known := at[t.budget]
		if !known {
			n = len(names)
			at[t.budget] = n
			names = append(names, t.budget)
		}
		place[i] = n
	}
	return names, place
}
