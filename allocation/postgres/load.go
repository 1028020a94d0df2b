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
	order   []string
	budgets map[string]*loaded
}

// loaded is a budget as a transaction found it.
type loaded struct {
	// state is for the step to change, before to compare with. They share the
	// budget, which is immutable, and no rows.
	state, before allocation.State
	// due is the stored time at which the sweep looks.
	due lease.Time
}

// list returns the states of the named budgets, nil where there is none, and
// what to compare them with later, empty where there is none.
func (b batch) list(names []string) (states, before []*allocation.State) {
	states = make([]*allocation.State, len(names))
	before = make([]*allocation.State, len(names))
	for i, name := range names {
		if l := b.budgets[name]; l != nil {
			states[i], before[i] = &l.state, &l.before
		} else {
			before[i] = &allocation.State{}
		}
	}
	return states, before
}

// due is the stored due time of a budget; 0 where there is none.
func (b batch) due(name string) lease.Time {
	if l := b.budgets[name]; l != nil {
		return l.due
	}
	return 0
}

// copy returns a state for a caller who is not trusted to leave the budget, a
// value shared with others, as it is.
func (b batch) copy(name string) allocation.State {
	s := b.budgets[name].state
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
	err := each(r, scanPool, b, func(l *loaded, rows, copies []allocation.Pool) { l.state.Pools, l.before.Pools = rows, copies })
	if err != nil {
		return err
	}
	err = each(r, scanLease, b, func(l *loaded, rows, copies []allocation.Lease) { l.state.Leases, l.before.Leases = rows, copies })
	if err != nil {
		return err
	}
	err = each(r, scanRegion, b, func(l *loaded, rows, copies []allocation.Region) { l.state.Regions, l.before.Regions = rows, copies })
	if err != nil {
		return err
	}
	return each(r, scanLocal, b, func(l *loaded, rows, copies []allocation.Local) { l.state.Locals, l.before.Locals = rows, copies })
}

// each reads one query's rows, which come in order of their budgets, and gives
// every budget its own, twice. The rows of all budgets lie in one slice.
func each[R any](r pgx.BatchResults, scan func(pgx.Rows) ([]byte, R, error), b batch, give func(l *loaded, rows, copies []R)) error {
	rows, err := r.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	var all []R
	var owners []*loaded // of each row
	for rows.Next() {
		budget, row, err := scan(rows)
		if err != nil {
			return err
		}
		// A budget that appeared after the lock was taken is not of this batch.
		if l := b.budgets[string(budget)]; l != nil {
			all, owners = append(all, row), append(owners, l)
		}
	}
	copies := slices.Clone(all)
	for from, to := 0, 0; from < len(all); from = to {
		for to = from; to < len(all) && owners[to] == owners[from]; {
			to++
		}
		// Capped, so that a step that appends moves away.
		give(owners[from], all[from:to:to], copies[from:to:to])
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
	b := batch{order: make([]string, len(list)), budgets: make(map[string]*loaded, len(list))}
	all := make([]loaded, len(list))
	for i, l := range list {
		all[i].state.Budget, all[i].before.Budget, all[i].due = l.Budget, l.Budget, l.due
		b.order[i], b.budgets[l.Name] = l.Name, &all[i]
	}
	return b
}

// maxPolicies bounds how many decoded policies are remembered, at a kilobyte
// or two each.
const maxPolicies = 1 << 16

// policies remembers decoded policies, one per budget: they rarely change,
// and decoding thousands while their rows are locked would cost every region.
// Budgets are immutable values, so they can be shared. Beyond maxPolicies each
// new one takes the place of any other.
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
	if _, ok := p.last[name]; !ok && len(p.last) >= maxPolicies {
		for other := range p.last {
			delete(p.last, other)
			break
		}
	}
	p.last[name] = d
	return d.budget, nil
}
