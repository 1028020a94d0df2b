package postgres

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// changes are the rows of one table to insert, to update and to delete. The
// locks on the budgets keep others from inserting or deleting any, so what is
// there is known, and no row is looked for twice, as an upsert would.
type changes[R any] struct{ added, changed, gone []owned[R] }

// diff adds what differs between two lists of one budget's rows.
func diff[R comparable, K comparable](c *changes[R], budget string, before, after []R, key func(*R) K) {
	if slices.Equal(before, after) {
		return
	}
	if slices.EqualFunc(before, after, func(a, b R) bool { return key(&a) == key(&b) }) {
		for i := range after {
			if before[i] != after[i] {
				c.changed = append(c.changed, owned[R]{budget, after[i]})
			}
		}
		return
	}
	old := make(map[K]R, len(before))
	for i := range before {
		old[key(&before[i])] = before[i]
	}
	for i := range after {
		k := key(&after[i])
		was, known := old[k]
		switch row := (owned[R]{budget, after[i]}); {
		case !known:
			c.added = append(c.added, row)
		case was != after[i]:
			c.changed = append(c.changed, row)
		}
		delete(old, k)
	}
	for i := range before {
		if _, gone := old[key(&before[i])]; gone {
			c.gone = append(c.gone, owned[R]{budget, before[i]})
		}
	}
}

// table has the statements that write one table.
type table[R any] struct {
	insert, update, remove string
	columns, keys          func([]owned[R]) []any
}

var (
	poolTable   = table[allocation.Pool]{sqlInsertPools, sqlUpdatePools, sqlDeletePools, poolColumns, poolKeyColumns}
	leaseTable  = table[allocation.Lease]{sqlInsertLeases, sqlUpdateLeases, sqlDeleteLeases, leaseColumns, leaseKeyColumns}
	regionTable = table[allocation.Region]{sqlInsertRegions, sqlUpdateRegions, sqlDeleteRegions, regionColumns, regionKeyColumns}
	localTable  = table[allocation.Local]{sqlInsertLocals, sqlUpdateLocals, sqlDeleteLocals, localColumns, localKeyColumns}
)

func (t table[R]) queue(q *pgx.Batch, c changes[R]) {
	queueRows(q, t.remove, len(c.gone), func() []any { return t.keys(c.gone) })
	queueRows(q, t.update, len(c.changed), func() []any { return t.columns(c.changed) })
	queueRows(q, t.insert, len(c.added), func() []any { return t.columns(c.added) })
}

// queueRows queues a statement that must touch n rows; none for n = 0.
func queueRows(q *pgx.Batch, sql string, n int, args func() []any) {
	if n == 0 {
		return
	}
	q.Queue(sql, args()...).Exec(func(tag pgconn.CommandTag) error {
		if tag.RowsAffected() != int64(n) {
			return fmt.Errorf("%s touched %d rows instead of %d", tag, tag.RowsAffected(), n)
		}
		return nil
	})
}

// queueSave queues the statements that turn the states in before into those
// in after; due has the stored times of the budgets' next sweeps.
func queueSave(q *pgx.Batch, now lease.Time, due func(budget string) lease.Time, before, after []*allocation.State) error {
	var pools changes[allocation.Pool]
	var leases changes[allocation.Lease]
	var regions changes[allocation.Region]
	var locals changes[allocation.Local]
	var policies, moved []*allocation.State
	for i, s := range after {
		was, name := before[i], s.Budget.Name
		switch {
		case !reflect.DeepEqual(was.Budget, s.Budget):
			policies = append(policies, s)
		case mustMove(due(name), s.NextDue(), now):
			moved = append(moved, s)
		}
		diff(&pools, name, was.Pools, s.Pools, poolKey)
		diff(&leases, name, was.Leases, s.Leases, leaseKey)
		diff(&regions, name, was.Regions, s.Regions, regionKey)
		diff(&locals, name, was.Locals, s.Locals, localKey)
	}
	// Budgets first: the other tables refer to them.
	if err := queuePolicies(q, policies); err != nil {
		return err
	}
	queueDues(q, moved)
	poolTable.queue(q, pools)
	leaseTable.queue(q, leases)
	regionTable.queue(q, regions)
	localTable.queue(q, locals)
	if q.Len() == 0 {
		// An answer that rests on what an earlier transaction wrote must wait
		// until that is durable, and only a commit that writes waits. (Locking a
		// row writes too, as Postgres stands; this does not rest on it.)
		queueDues(q, after)
	}
	return nil
}

// mustMove reports whether a stored due time has to be replaced. One that is
// early is left for a while: most leases are extended long before they are
// due, and each extension would cost an index entry. It moves when it has come,
// or when three quarters of the time to the true one lie behind it, so that
// the sweep is not called for what regions keep alive.
func mustMove(stored, due, now lease.Time) bool {
	switch {
	case stored == 0:
		return due != 0
	case due == 0:
		return stored <= now
	}
	return due < stored || due > stored && stored <= now.Add(max(0, due.Sub(now))/4)
}

func queuePolicies(q *pgx.Batch, states []*allocation.State) error {
	if len(states) == 0 {
		return nil
	}
	raw := make([]string, len(states))
	for i, s := range states {
		b, err := json.Marshal(s.Budget)
		if err != nil {
			return fmt.Errorf("policy of budget %q: %w", s.Budget.Name, err)
		}
		raw[i] = string(b)
	}
	q.Queue(sqlPutBudgets, names(states),
		column(states, func(s *allocation.State) int64 { return int64(s.Budget.Version) }),
		raw, dues(states))
	return nil
}

func queueDues(q *pgx.Batch, states []*allocation.State) {
	if len(states) > 0 {
		q.Queue(sqlTouchBudgets, names(states), dues(states))
	}
}

func names(states []*allocation.State) [][]byte {
	return column(states, func(s *allocation.State) []byte { return []byte(s.Budget.Name) })
}

func dues(states []*allocation.State) []int64 {
	return column(states, func(s *allocation.State) int64 { return int64(s.NextDue()) })
}
