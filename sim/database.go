package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/allocation"
	ledgermemory "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/policy"
)

// database is the ledger's database: one host, whose clock the replicas read
// and govern (allocation.Clock).
type database struct {
	w     *world
	clock *hostClock
	mem   *ledgermemory.Store
	row   allocation.ClockRow
	// now is what the replica whose call is under way made of the clock.
	now     allocation.Now
	down    int
	unknown float64
	rand    *rand.Rand
	writes  int64
	// jumped is set once the clock was stepped forward.
	jumped bool
}

func newDatabase(w *world) *database {
	db := &database{
		w: w, clock: newClock(w.o.Epoch, w.o.Topology.Ledger.Database), rand: source(w.o.Seed, "database"),
	}
	opts := []ledgermemory.Option{ledgermemory.WithNow(func() allocation.Now { return db.now })}
	if w.o.Check == CheckAll {
		opts = append(opts, ledgermemory.WithCheck())
	}
	db.mem = ledgermemory.New(nil, opts...)
	return db
}

var errDown = errors.New("sim: the database is down")

// replica is one allocator's connection: an allocation.Store that governs the
// database's clock by its own monotonic one.
type replica struct {
	db       *database
	own      *hostClock
	governor allocation.Clock
	// governs is set once it has read the clock.
	governs bool
}

var _ allocation.Store = (*replica)(nil)

// read takes the database's time for one call.
func (r *replica) read() error {
	db := r.db
	if db.down > 0 {
		return errDown
	}
	for {
		at := r.own.mono(db.w.now)
		reading := allocation.ClockReading{Row: db.row, DB: db.clock.time(db.w.now), Sent: at, Received: at}
		var v allocation.Verdict
		r.governor, v = r.governor.Govern(reading, db.w.declared.DriftPPM)
		if !v.Move {
			db.now, r.governs = v.Now, true
			return nil
		}
		db.w.coverage.ClockMoved++
		db.row.Shift = v.Shift
	}
}

// write stores the governed time as replicas do about once a second.
func (r *replica) write() {
	const writeEvery = 500 * time.Millisecond
	row := &r.db.row
	if row.Governed != 0 && r.db.now.Governed.Sub(row.Governed) < writeEvery {
		return
	}
	row.Governed, row.Raw = max(row.Governed, r.db.now.Governed), max(row.Raw, r.db.now.Raw)
}

// commit runs a transaction, whose outcome may stay unknown.
func (r *replica) commit(budgets []string, run func() error) error {
	if err := r.read(); err != nil {
		return err
	}
	db := r.db
	unknown := chance(db.rand, db.unknown)
	if unknown && db.rand.IntN(2) == 0 {
		return allocation.ErrUnknownCommit
	}
	if err := run(); err != nil {
		return err
	}
	db.writes++
	db.w.wrote(budgets)
	if unknown {
		return allocation.ErrUnknownCommit
	}
	return nil
}

func (r *replica) Update(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	return r.commit(budgets, func() error { return r.db.mem.Update(ctx, budgets, step) })
}

func (r *replica) Apply(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) ([]*allocation.State, error)) error {
	return r.commit(budgets, func() error { return r.db.mem.Apply(ctx, budgets, step) })
}

func (r *replica) Budgets(ctx context.Context, since uint64, limit int) ([]policy.Budget, uint64, error) {
	if err := r.read(); err != nil {
		return nil, 0, err
	}
	return r.db.mem.Budgets(ctx, since, limit)
}

func (r *replica) Due(ctx context.Context, limit int) ([]string, error) {
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.db.mem.Due(ctx, limit)
}

func (r *replica) View(ctx context.Context, after string, limit int) ([]allocation.State, allocation.Now, error) {
	if err := r.read(); err != nil {
		return nil, allocation.Now{}, err
	}
	return r.db.mem.View(ctx, after, limit)
}

func (r *replica) Now(ctx context.Context) (allocation.Now, error) {
	if err := r.read(); err != nil {
		return allocation.Now{}, err
	}
	r.write()
	return r.db.mem.Now(ctx)
}
