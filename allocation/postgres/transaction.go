package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ration-dev/ration/allocation"
)

// transaction is one attempt on one connection.
type transaction struct {
	s    *Store
	conn *pgxpool.Conn // nil once it was handed over to commit

	batch         batch
	version       uint64 // of the budget changed last; Apply only
	before, after []*allocation.State
}

func (s *Store) begin(ctx context.Context) (*transaction, error) {
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	return &transaction{s: s, conn: conn}, nil
}

// end gives the connection back; a transaction that is still open is rolled
// back with it.
func (tx *transaction) end() {
	if tx.conn == nil {
		return
	}
	if tx.conn.Conn().PgConn().TxStatus() != 'I' {
		tx.rollback()
	}
	tx.conn.Release() // closes a connection that is still in a transaction
	tx.conn = nil
}

func (tx *transaction) rollback() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_, _ = tx.conn.Exec(ctx, sqlRollback)
}

// write notes a state to be written by commit.
func (tx *transaction) write(before, after *allocation.State) {
	tx.before, tx.after = append(tx.before, before), append(tx.after, after)
}

// check holds what is to be written against the invariants.
func (tx *transaction) check() error {
	for i, after := range tx.after {
		before := tx.before[i]
		if before.Budget.Name == "" {
			before = nil
		}
		if err := allocation.CheckStep(before, after); err != nil {
			return err
		}
	}
	return nil
}

// attempt runs one transaction over budgets, sorted: load, step, save,
// commit. With apply it may create budgets, and locks the versions first.
func (s *Store) attempt(ctx context.Context, budgets []string, apply bool, step func(allocation.Now, *transaction) error) error {
	limited, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	tx, err := s.begin(limited)
	if err != nil {
		return err
	}
	defer tx.end()
	now, err := tx.load(limited, budgets, apply)
	if err != nil {
		return err
	}
	if err := step(now, tx); err != nil {
		return err
	}
	if err := tx.save(limited, now, apply); err != nil {
		return err
	}
	return tx.commit()
}

// load begins the transaction, locks its budgets, and reads their states and
// then the clock.
func (tx *transaction) load(ctx context.Context, budgets []string, apply bool) (allocation.Now, error) {
	keys := column(budgets, func(name string) []byte { return []byte(name) })
	var q pgx.Batch
	q.Queue(sqlBegin)
	if apply {
		q.Queue(sqlLockVersion)
	}
	q.Queue(sqlLock, keys)
	queueLoad(&q, keys)
	q.Queue(tx.s.sqlClock)

	sent := tx.s.opts.Elapsed()
	r := tx.conn.SendBatch(ctx, &q)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return allocation.Now{}, err
	}
	if apply {
		if err := r.QueryRow().Scan(&tx.version); err != nil {
			return allocation.Now{}, err
		}
	}
	if err := tx.readStates(r); err != nil {
		return allocation.Now{}, err
	}
	return tx.readClock(ctx, r, sent)
}

// readStates reads the budgets of the batch and all that belongs to them.
func (tx *transaction) readStates(r pgx.BatchResults) error {
	list, err := tx.s.readBudgets(r.Query())
	if err != nil {
		return err
	}
	tx.batch = newBatch(list)
	return readLoad(r, tx.batch)
}

// readClock reads the clock, last in its batch, and decides on the time. When
// the clock's shift has to move first, the transaction is over.
func (tx *transaction) readClock(ctx context.Context, r pgx.BatchResults, sent time.Duration) (allocation.Now, error) {
	reading, err := tx.s.scanClock(r.QueryRow(), sent)
	if err == nil {
		err = r.Close()
	}
	if err != nil {
		return allocation.Now{}, err
	}
	v := tx.s.govern(reading)
	if !v.Move {
		return v.Now, nil
	}
	tx.rollback()
	if err := tx.s.moveClock(ctx, tx.conn, reading.Row.Shift, v.Shift); err != nil {
		return allocation.Now{}, err
	}
	return allocation.Now{}, errClockMoved
}

// save writes what the step changed.
func (tx *transaction) save(ctx context.Context, now allocation.Now, apply bool) error {
	var q pgx.Batch
	if err := queueSave(&q, now.Governed, tx.batch.due, tx.before, tx.after); err != nil {
		return stepError{err}
	}
	if apply && len(tx.after) > 0 {
		q.Queue(sqlPutVersion, int64(tx.version))
	}
	if q.Len() == 0 {
		return nil
	}
	return tx.conn.SendBatch(ctx, &q).Close()
}

// commit commits, and waits until that is durable, however the caller's
// context ends meanwhile. Any outcome but a plain success is unknown, save a
// conflict, which the server reports before it commits.
func (tx *transaction) commit() error {
	conn := tx.conn
	tx.conn = nil
	pg := conn.Conn().PgConn()
	delete(pg.CustomData(), warned)
	began := time.Now()
	done := make(chan error, 1)
	go func() {
		defer conn.Release()
		results, err := pg.Exec(context.Background(), sqlCommit).ReadAll()
		switch {
		case err != nil:
		case len(results) != 1 || results[0].CommandTag.String() != sqlCommit:
			err = errRolledBack
		case pg.CustomData()[warned] != nil:
			err = fmt.Errorf("the server warned: %v", pg.CustomData()[warned])
		}
		done <- err
	}()
	timer := time.NewTimer(tx.s.opts.CommitTimeout)
	defer timer.Stop()
	var err error
	select {
	case err = <-done:
	case <-timer.C:
		_ = pg.Conn().Close()
		err = fmt.Errorf("no answer within %v", tx.s.opts.CommitTimeout)
	}
	return tx.s.committed(err, time.Since(began))
}

// committed counts a commit's outcome and names it.
func (s *Store) committed(err error, took time.Duration) error {
	if s.opts.OnCommit != nil {
		s.opts.OnCommit(took)
	}
	switch {
	case err == nil:
		s.Stats.Transactions.Add(1)
		return nil
	case errors.Is(err, errRolledBack) || isConflict(err):
		return err
	}
	s.Stats.UnknownCommits.Add(1)
	//nolint:errorlint // the cause is for people: nothing may act on it but ErrUnknownCommit
	return stepError{fmt.Errorf("%w: %v", allocation.ErrUnknownCommit, err)}
}

// view loads up to limit budgets after a name, in one snapshot.
func (tx *transaction) view(ctx context.Context, after string, limit int) ([]allocation.State, allocation.Now, error) {
	list, err := tx.listBudgets(ctx, after, limit)
	if err != nil {
		return nil, allocation.Now{}, err
	}
	tx.batch = newBatch(list)
	var q pgx.Batch
	queueLoad(&q, column(tx.batch.order, func(name string) []byte { return []byte(name) }))
	q.Queue(tx.s.sqlClock)
	sent := tx.s.opts.Elapsed()
	r := tx.conn.SendBatch(ctx, &q)
	defer r.Close()
	if err := readLoad(r, tx.batch); err != nil {
		return nil, allocation.Now{}, err
	}
	now, err := tx.readClock(ctx, r, sent)
	if err != nil {
		return nil, allocation.Now{}, err
	}
	return column(tx.batch.order, tx.batch.copy), now, nil
}

func (tx *transaction) listBudgets(ctx context.Context, after string, limit int) ([]listed, error) {
	var q pgx.Batch
	q.Queue(sqlBeginView)
	q.Queue(sqlList, []byte(after), limit)
	r := tx.conn.SendBatch(ctx, &q)
	defer r.Close()
	if _, err := r.Exec(); err != nil {
		return nil, err
	}
	list, err := tx.s.readBudgets(r.Query())
	if err != nil {
		return nil, err
	}
	return list, r.Close()
}
