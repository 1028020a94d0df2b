// Package postgres keeps the ledger in Postgres 15 or later. Any number of
// processes may share one database.
//
// A transaction is READ COMMITTED: it locks its budgets' rows in order of
// name, loads their states, runs the step, and writes back the rows that
// changed, in three round trips whatever the number of budgets: begin, lock and
// read; write; commit. All arithmetic is the step's.
//
// A commit is never cancelled. With synchronous replication a cancelled COMMIT
// reports success with a warning and may be lost at a promotion, so the store
// waits for a commit for CommitTimeout without regard to the caller's context,
// then gives up the connection without asking the server to cancel, and
// reports allocation.ErrUnknownCommit; so it does for any warning. Every
// transaction writes something, so that a repeated answer waits for the
// durability of what it repeats.
//
// Names hold any byte: they are bytea columns. See package migrations for the
// schema.
package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Options tune a Store; the zero value works.
type Options struct {
	// MaxConns bounds the connections of this process; 0 leaves pgx's default,
	// or what the URL says.
	MaxConns int32
	// Timeout bounds one attempt at a transaction up to its commit; 0 takes 5 s.
	Timeout time.Duration
	// CommitTimeout bounds the wait for a commit; 0 takes 10 s.
	CommitTimeout time.Duration
	// RetryFor bounds how long a transaction is retried; 0 takes 5 s.
	RetryFor time.Duration
	// Clocks bounds the error of clock rates; the zero value takes
	// lease.DefaultClocks.
	Clocks lease.Clocks
	// AllowVolatile accepts a database whose commits may be lost in a crash
	// (synchronous_commit off, or local with synchronous standbys). After such
	// a loss tokens can be granted twice.
	AllowVolatile bool
	// OnCommit, when set, is told how long each commit took. It must not block.
	OnCommit func(time.Duration)
	// Check proves allocation.CheckStep of every write, and refuses one that
	// breaks an invariant with the allocation.Violation. For tests.
	Check bool
	// ClockSQL is an expression that reads the database's clock, in
	// microseconds; tests step it. Empty takes clock_timestamp().
	ClockSQL string
	// Elapsed is this process's monotonic clock; nil takes the time since Open.
	Elapsed func() time.Duration
}

func (o Options) withDefaults() Options {
	if o.Timeout <= 0 {
		o.Timeout = 5 * time.Second
	}
	if o.CommitTimeout <= 0 {
		o.CommitTimeout = 10 * time.Second
	}
	if o.RetryFor <= 0 {
		o.RetryFor = 5 * time.Second
	}
	if o.Clocks == (lease.Clocks{}) {
		o.Clocks = lease.DefaultClocks()
	}
	if o.ClockSQL == "" {
		o.ClockSQL = "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"
	}
	if o.Elapsed == nil {
		born := time.Now()
		o.Elapsed = func() time.Duration { return time.Since(born) }
	}
	return o
}

// Stats counts what a Store has done since it was opened.
type Stats struct {
	// Transactions were committed; Retries are attempts beyond the first.
	Transactions, Retries atomic.Int64
	// UnknownCommits ended with allocation.ErrUnknownCommit.
	UnknownCommits atomic.Int64
	// ClockShift is how far governed time is behind the database's clock, in
	// microseconds; ClockMoves counts how often this process raised or lowered
	// it.
	ClockShift, ClockMoves atomic.Int64
}

// Store is an allocation.Store in a Postgres database.
type Store struct {
	// Stats may be read at any time.
	Stats Stats

	pool     *pgxpool.Pool
	opts     Options
	sqlClock string
	policies policies

	clockMu sync.Mutex
	clock   allocation.Clock
}

var _ allocation.Store = (*Store)(nil)

// Open connects to the database at url, a URL or keyword/value string as pgx
// takes it. It fails when the schema is missing, and with ErrVolatile when
// commits would not be durable. The caller closes the Store.
func Open(ctx context.Context, url string, opts Options) (*Store, error) {
	opts = opts.withDefaults()
	config, err := poolConfig(url, opts)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, translate(err)
	}
	s := &Store{pool: pool, opts: opts}
	s.sqlClock = "SELECT shift, governed, raw, " + opts.ClockSQL + " FROM ledger_clock"
	if _, err := s.Now(ctx); err != nil {
		pool.Close()
		return nil, err
	}
	return s, nil
}

// Close gives up all connections, after what still runs on them. It may be
// called more than once.
func (s *Store) Close() { s.pool.Close() }

// Ping reports whether the database answers and has the ledger's schema.
func (s *Store) Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	var version int64
	err := s.pool.QueryRow(ctx, sqlVersion).Scan(&version)
	return translate(err)
}

// Update implements allocation.Store.
func (s *Store) Update(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) error) error {
	return s.transact(ctx, budgets, false, func(now allocation.Now, tx *transaction) error {
		states, before := tx.batch.list(budgets)
		if err := step(now, states); err != nil {
			return err
		}
		for i, state := range states {
			existed := tx.batch.budgets[budgets[i]] != nil
			if existed != (state != nil) {
				return lease.Errorf(lease.Internal, "", "a step may not create or drop budget %q", budgets[i])
			}
			if existed {
				tx.write(before[i], state)
			}
		}
		return nil
	})
}

// Apply implements allocation.Store. A state that step leaves nil is not
// written.
func (s *Store) Apply(ctx context.Context, budgets []string, step func(allocation.Now, []*allocation.State) ([]*allocation.State, error)) error {
	return s.transact(ctx, budgets, true, func(now allocation.Now, tx *transaction) error {
		states, before := tx.batch.list(budgets)
		after, err := step(now, states)
		if err != nil {
			return err
		}
		if len(after) != len(budgets) {
			return lease.Errorf(lease.Internal, "", "a step for %d budgets returned %d states", len(budgets), len(after))
		}
		for i, state := range after {
			if state == nil {
				continue
			}
			if state.Budget.Name != budgets[i] {
				return lease.Errorf(lease.Internal, "", "a step for budget %q returned %q", budgets[i], state.Budget.Name)
			}
			tx.version++
			state.Budget.Version = tx.version
			tx.write(before[i], state)
		}
		return nil
	})
}

// transact runs step in a transaction over the named budgets, until it is
// committed, and returns step's own errors as they are.
func (s *Store) transact(ctx context.Context, budgets []string, apply bool, step func(allocation.Now, *transaction) error) error {
	names := slices.Sorted(slices.Values(budgets))
	if len(slices.Compact(slices.Clone(names))) != len(names) {
		return lease.Errorf(lease.Internal, "", "a budget is named twice in one transaction")
	}
	return s.retry(ctx, func(ctx context.Context) error {
		return s.attempt(ctx, names, apply, func(now allocation.Now, tx *transaction) error {
			err := step(now, tx)
			if err == nil && s.opts.Check {
				err = tx.check()
			}
			if err != nil {
				return stepError{err}
			}
			return nil
		})
	})
}

// Budgets implements allocation.Store.
func (s *Store) Budgets(ctx context.Context, since uint64, limit int) (list []policy.Budget, next uint64, err error) {
	var found []listed
	err = s.retry(ctx, func(ctx context.Context) error {
		// The version is read first: the list is at least as new.
		var q pgx.Batch
		q.Queue(sqlVersion).QueryRow(func(row pgx.Row) error { return row.Scan(&next) })
		q.Queue(sqlChanged, int64(since), limit).Query(func(rows pgx.Rows) (err error) {
			found, err = s.readBudgets(rows, nil)
			return err
		})
		return s.pool.SendBatch(ctx, &q).Close()
	})
	n := len(found)
	switch {
	case n > 0 && (n == limit || found[n-1].Version > next):
		next = found[n-1].Version
	case n == limit:
		next = since
	}
	return column(found, func(l listed) policy.Budget { return cloneBudget(l.Budget) }), next, err
}

// Due implements allocation.Store. Its locks only find out what others have
// locked: they are given up at once, and nothing is committed.
func (s *Store) Due(ctx context.Context, limit int) (names []string, err error) {
	now, err := s.Now(ctx)
	if err != nil {
		return nil, err
	}
	err = s.retry(ctx, func(ctx context.Context) error {
		var q pgx.Batch
		q.Queue(sqlBegin)
		q.Queue(sqlDue, int64(now.Governed), limit).Query(func(rows pgx.Rows) error {
			found, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
			names = column(found, func(name []byte) string { return string(name) })
			return err
		})
		q.Queue(sqlRollback)
		return s.pool.SendBatch(ctx, &q).Close()
	})
	return names, err
}

// View implements allocation.Store.
func (s *Store) View(ctx context.Context, after string, limit int) (list []allocation.State, now allocation.Now, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		tx, err := s.begin(ctx)
		if err != nil {
			return err
		}
		defer tx.end()
		list, now, err = tx.view(ctx, after, limit)
		return err
	})
	return list, now, err
}

// stepError carries a step's own error past the retries, unchanged.
type stepError struct{ error }

// ErrVolatile means that the database confirms commits that it may lose.
var ErrVolatile = errors.New("the database's commits are not durable")

func volatile(setting, standbys string) error {
	if setting == "off" || setting == "local" && standbys != "" {
		return fmt.Errorf("%w: synchronous_commit is %q: set it to on, or allow it and accept that a crash may grant tokens twice", ErrVolatile, setting)
	}
	return nil
}
