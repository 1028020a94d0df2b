package postgres

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// snapshot copies what a step may change in place. Rows are plain values, and
// a Budget is immutable, so copying the slices is enough.
func snapshot(s *allocation.State) *allocation.State {
	if s == nil {
		return &allocation.State{}
	}
	c := *s
	c.Pools, c.Leases = slices.Clone(s.Pools), slices.Clone(s.Leases)
	c.Regions, c.Locals = slices.Clone(s.Regions), slices.Clone(s.Locals)
	return &c
}

// changes are the rows of one table to write and to delete.
type changes[R any] struct{ put, gone []owned[R] }

// diff adds what differs between two lists of one budget's rows.
func diff[R comparable, K comparable](c *changes[R], budget string, before, after []R, key func(*R) K) {
	if slices.Equal(before, after) {
		return
	}
	old := make(map[K]R, len(before))
	for i := range before {
		old[key(&before[i])] = before[i]
	}
	for i := range after {
		k := key(&after[i])
		if was, ok := old[k]; !ok || was != after[i] {
			c.put = append(c.put, owned[R]{budget, after[i]})
		}
		delete(old, k)
	}
	for i := range before {
		if _, gone := old[key(&before[i])]; gone {
			c.gone = append(c.gone, owned[R]{budget, before[i]})
		}
	}
}

func (c changes[R]) queue(q *pgx.Batch, remove string, keys func([]owned[R]) []any, put string, columns func([]owned[R]) []any) {
	if len(c.gone) > 0 {
		q.Queue(remove, keys(c.gone)...)
	}
	if len(c.put) > 0 {
		q.Queue(put, columns(c.put)...)
	}
}

// queueSave queues the statements that turn the states in before into those
// in after. Every budget's own row is written even if nothing changed.
func queueSave(q *pgx.Batch, now lease.Time, before, after []*allocation.State) error {
	var pools changes[allocation.Pool]
	var leases changes[allocation.Lease]
	var regions changes[allocation.Region]
	var locals changes[allocation.Local]
	var policies, touched []*allocation.State
	for i, s := range after {
		was, name := before[i], s.Budget.Name
		if reflect.DeepEqual(was.Budget, s.Budget) {
			touched = append(touched, s)
		} else {
			policies = append(policies, s)
		}
		diff(&pools, name, was.Pools, s.Pools, poolKey)
		diff(&leases, name, was.Leases, s.Leases, leaseKey)
		diff(&regions, name, was.Regions, s.Regions, regionKey)
		diff(&locals, name, was.Locals, s.Locals, localKey)
	}
	// Budgets first: the other tables refer to them.
	if err := queuePolicies(q, now, policies); err != nil {
		return err
	}
	queueTouch(q, now, touched)
	pools.queue(q, sqlDeletePools, poolKeyColumns, sqlPutPools, poolColumns)
	leases.queue(q, sqlDeleteLeases, leaseKeyColumns, sqlPutLeases, leaseColumns)
	regions.queue(q, sqlDeleteRegions, regionKeyColumns, sqlPutRegions, regionColumns)
	locals.queue(q, sqlDeleteLocals, localKeyColumns, sqlPutLocals, localColumns)
	return nil
}

func queuePolicies(q *pgx.Batch, now lease.Time, states []*allocation.State) error {
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
		raw, dues(states), repeat(now, len(states)))
	return nil
}

func queueTouch(q *pgx.Batch, now lease.Time, states []*allocation.State) {
	if len(states) > 0 {
		q.Queue(sqlTouchBudgets, names(states), dues(states), repeat(now, len(states)))
	}
}

func names(states []*allocation.State) [][]byte {
	return column(states, func(s *allocation.State) []byte { return []byte(s.Budget.Name) })
}

func dues(states []*allocation.State) []int64 {
	return column(states, func(s *allocation.State) int64 { return int64(s.NextDue()) })
}

func repeat(now lease.Time, n int) []int64 {
	return slices.Repeat([]int64{int64(now)}, n)
}
