package postgres

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// batch is some loaded budgets, found by name.
type batch struct {
	order  []string
	states map[string]*allocation.State
	dues   map[string]lease.Time // as stored
}

// list returns the states of the named budgets, nil where there is none, and
// copies of them to compare with later, empty where there is none.
func (b batch) list(names []string) (states, before []*allocation.State) {
	states = make([]*allocation.State, len(names))
	before = make([]*allocation.State, len(names))
	for i, name := range names {
		states[i] = b.states[name]
		before[i] = snapshot(states[i])
	}
	return states, before
}

// copy returns a state for a caller who is not trusted to leave the budget, a
// value shared with others, as it is.
func (b batch) copy(name string) allocation.State {
	s := *b.states[name]
	s.Budget = cloneBudget(s.Budget)
	return s
}

func cloneBudget(b policy.Budget) policy.Budget {
	b.Match, b.Regions = maps.Clone(b.Match), slices.Clone(b.Regions)
	return b
}

// queueLoad queues what readLoad reads: the rows of the named budgets.
func queueLoad(q *pgx.Batch, names [][]byte) {
	for _, sql := range []string{sqlLoadPools, sqlLoadLeases, sqlLoadRegions, sqlLoadLocals} {
		q.Queue(sql, names)
	}
}

func readLoad(r pgx.BatchResults, b batch) error {
	err := each(r, scanPool, b, func(s *allocation.State, p allocation.Pool) { s.Pools = append(s.Pools, p) })
	if err != nil {
		return err
	}
	err = each(r, scanLease, b, func(s *allocation.State, l allocation.Lease) { s.Leases = append(s.Leases, l) })
	if err != nil {
		return err
	}
	err = each(r, scanRegion, b, func(s *allocation.State, g allocation.Region) { s.Regions = append(s.Regions, g) })
	if err != nil {
		return err
	}
	return each(r, scanLocal, b, func(s *allocation.State, l allocation.Local) { s.Locals = append(s.Locals, l) })
}

// each reads one query's rows into the states they belong to.
func each[R any](r pgx.BatchResults, scan func(pgx.Rows) ([]byte, R, error), b batch, add func(*allocation.State, R)) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		budget, row, err := scan(rows)
		if err != nil {
			return err
		}
		// A budget that appeared after the lock was taken is not of this batch.
		if s := b.states[string(budget)]; s != nil {
			add(s, row)
		}
	}
	return rows.Err()
}

// listed is a row of the table budgets.
type listed struct {
	policy.Budget
	// due is the time at which the sweep looks, never after State.NextDue.
	due lease.Time
}

// readBudgets reads the rows of name, version, next_due and policy.
func (s *Store) readBudgets(rows pgx.Rows, err error) ([]listed, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var list []listed
	for rows.Next() {
		var name, raw []byte
		var version int64
		var l listed
		if err := rows.Scan(&name, &version, &l.due, &raw); err != nil {
			return nil, err
		}
		if l.Budget, err = s.policies.decode(string(name), uint64(version), raw); err != nil {
			return nil, err
		}
		list = append(list, l)
	}
	return list, rows.Err()
}

func newBatch(list []listed) batch {
	b := batch{states: make(map[string]*allocation.State, len(list)), dues: make(map[string]lease.Time, len(list))}
	for _, l := range list {
		b.order = append(b.order, l.Name)
		b.states[l.Name] = &allocation.State{Budget: l.Budget}
		b.dues[l.Name] = l.due
	}
	return b
}

// policies remembers decoded policies, one per budget: they rarely change,
// and decoding thousands while their rows are locked would cost every region.
// Budgets are immutable values, so they can be shared.
type policies struct {
	mu   sync.Mutex
	last map[string]decoded
}

type decoded struct {
	raw    []byte
	budget policy.Budget
}

// decode returns the budget in raw. The columns' name and version hold,
// whatever raw says: JSON cannot carry every name.
func (p *policies) decode(name string, version uint64, raw []byte) (policy.Budget, error) {
	p.mu.Lock()
	d, ok := p.last[name]
	p.mu.Unlock()
	if ok && d.budget.Version == version && bytes.Equal(d.raw, raw) {
		return d.budget, nil
	}
	d = decoded{raw: slices.Clone(raw)}
	if err := json.Unmarshal(raw, &d.budget); err != nil {
		return policy.Budget{}, fmt.Errorf("policy of budget %q: %w", name, err)
	}
	d.budget.Name, d.budget.Version = name, version
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = make(map[string]decoded)
	}
	p.last[name] = d
	return d.budget, nil
}
