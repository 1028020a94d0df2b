package allocation

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// pageSize bounds what one call reads from the store.
const pageSize = 500

// ListBudgets returns what changed after since. The list is full when since is
// 0, and when the ledger has never reached since: then it is another ledger,
// or an older copy, and the caller starts anew.
func (a *Allocator) ListBudgets(ctx context.Context, since uint64) (policy.List, error) {
	list, err := a.listAfter(ctx, since)
	if err == nil && list.Version < since {
		list, err = a.listAfter(ctx, 0)
	}
	return list, a.translate(err)
}

func (a *Allocator) listAfter(ctx context.Context, since uint64) (policy.List, error) {
	list := policy.List{Version: since, Full: since == 0}
	for {
		page, next, err := a.store.Budgets(ctx, list.Version, pageSize)
		if err != nil {
			return policy.List{}, err
		}
		list.Budgets = append(list.Budgets, page...)
		list.Version = next
		if len(page) < pageSize {
			return list, nil
		}
	}
}

// maxApply bounds the budgets of one Apply or Delete.
const maxApply = 1000

// Apply puts budgets in force, all or none, and returns them as they stand,
// with their versions. A budget that says what is in force already is left
// alone. The error names the offending field, as in "budgets[2].limit.rate".
func (a *Allocator) Apply(ctx context.Context, budgets []policy.Budget) ([]policy.Budget, error) {
	wanted := make([]policy.Budget, len(budgets))
	names := make([]string, len(budgets))
	for i, b := range budgets {
		normal, err := b.Normalize(a.deployment)
		if err != nil {
			return nil, at(i, err)
		}
		wanted[i], names[i] = normal, b.Name
	}
	if err := distinct(names); err != nil {
		return nil, err
	}
	return a.apply(ctx, names, func(i int, now Now, s *State) (*State, error) {
		if s == nil {
			return NewState(now, wanted[i]), nil
		}
		if !s.SetBudget(a.cfg, now, wanted[i]) {
			return nil, nil
		}
		return s, nil
	})
}

// Delete makes the named budgets admit nothing, all or none; a budget already
// deleted is left alone. Its row stays until nothing of it can be spent.
func (a *Allocator) Delete(ctx context.Context, names []string) ([]policy.Budget, error) {
	if err := distinct(names); err != nil {
		return nil, err
	}
	return a.apply(ctx, names, func(i int, now Now, s *State) (*State, error) {
		if s == nil {
			return nil, lease.Errorf(lease.UnknownBudget, fmt.Sprintf("budgets[%d].name", i), "no budget %q is known", names[i])
		}
		gone := s.Budget
		gone.Deleted = true
		if !s.SetBudget(a.cfg, now, gone) {
			return nil, nil
		}
		return s, nil
	})
}

// apply runs change on each budget in one transaction; a nil state leaves a
// budget as it is.
func (a *Allocator) apply(ctx context.Context, names []string, change func(i int, now Now, s *State) (*State, error)) ([]policy.Budget, error) {
	inForce := make([]policy.Budget, len(names))
	written := make([]*State, len(names))
	if len(names) == 0 {
		return inForce, nil
	}
	err := a.store.Apply(ctx, names, func(now Now, states []*State) ([]*State, error) {
		for i, s := range states {
			if s != nil {
				inForce[i] = s.Budget
			}
			after, err := change(i, now, s)
			if err != nil {
				return nil, err
			}
			written[i] = after
		}
		return written, nil
	})
	if err != nil {
		return nil, a.translate(err)
	}
	for i, s := range written {
		if s != nil {
			inForce[i] = s.Budget
		}
	}
	return inForce, nil
}

// distinct refuses too many names, and one that stands twice.
func distinct(names []string) error {
	if len(names) > maxApply {
		return lease.Errorf(lease.Invalid, "budgets", "has %d budgets, at most %d are allowed at a time: apply them in parts", len(names), maxApply)
	}
	seen := make(map[string]int, len(names))
	for i, name := range names {
		if first, twice := seen[name]; twice {
			return lease.Errorf(lease.Invalid, fmt.Sprintf("budgets[%d].name", i), "repeats budgets[%d]", first)
		}
		seen[name] = i
	}
	return nil
}

// at puts the budget's place before the fields of its faults.
func at(i int, err error) error {
	faults := slices.Clone(policy.AllErrors(err))
	for k, f := range faults {
		moved := *f
		moved.Field = fmt.Sprintf("budgets[%d].%s", i, f.Field)
		faults[k] = &moved
	}
	return faults
}

// Audit proves conservation from the stored rows, budget by budget, page by
// page, and yields what does not hold. An error ends it.
func (a *Allocator) Audit(ctx context.Context) iter.Seq2[Violation, error] {
	return func(yield func(Violation, error) bool) {
		for s, err := range a.States(ctx) {
			if err != nil {
				yield(Violation{}, err)
				return
			}
			for _, v := range Audit(s) {
				if !yield(v, nil) {
					return
				}
			}
		}
	}
}

// States yields every budget's state in order of name, a page at a time, each
// page from one consistent snapshot. An error ends it.
func (a *Allocator) States(ctx context.Context) iter.Seq2[State, error] {
	return func(yield func(State, error) bool) {
		after := ""
		for {
			page, _, err := a.store.View(ctx, after, pageSize)
			if err != nil {
				yield(State{}, a.translate(err))
				return
			}
			for _, s := range page {
				if !yield(s, nil) {
					return
				}
				after = s.Budget.Name
			}
			if len(page) < pageSize {
				return
			}
		}
	}
}
