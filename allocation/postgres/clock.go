package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ration-dev/ration/allocation"
)

// writeClockEvery is how old the stored governed time may grow before Now
// writes it again.
const writeClockEvery = 500 * time.Millisecond

const (
	sqlMoveClock = `
UPDATE ledger_clock
SET shift = $1
WHERE shift = $2`
	// Neither time decreases, and a time counted with another shift is not
	// written.
	sqlWriteClock = `
UPDATE ledger_clock
SET governed = $1, raw = $2
WHERE shift = $3 AND governed < $1 AND raw <= $2`
)

// errClockMoved means that the attempt must start again, on a clock whose
// shift has been moved.
var errClockMoved = errors.New("the ledger's clock was moved")

// Now implements allocation.Store.
func (s *Store) Now(ctx context.Context) (now allocation.Now, err error) {
	err = s.retry(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
		defer cancel()
		sent := s.opts.Elapsed()
		reading, err := s.scanClock(s.pool.QueryRow(ctx, s.sqlClock), sent)
		if err != nil {
			return err
		}
		v := s.govern(reading)
		if v.Move {
			if err := s.moveClock(ctx, s.pool, reading.Row.Shift, v.Shift); err != nil {
				return err
			}
			return errClockMoved
		}
		now = v.Now
		return s.writeClock(ctx, reading.Row, now)
	})
	return now, err
}

func (s *Store) scanClock(row pgx.Row, sent time.Duration) (allocation.ClockReading, error) {
	r := allocation.ClockReading{Sent: sent}
	var shift int64
	err := row.Scan(&shift, &r.Row.Governed, &r.Row.Raw, &r.DB)
	r.Row.Shift = duration(shift)
	r.Received = s.opts.Elapsed()
	return r, err
}

func (s *Store) govern(r allocation.ClockReading) allocation.Verdict {
	s.clockMu.Lock()
	defer s.clockMu.Unlock()
	var v allocation.Verdict
	s.clock, v = s.clock.Govern(r, s.opts.Clocks.DriftPPM)
	s.Stats.ClockShift.Store(int64(v.Shift / time.Microsecond))
	return v
}

type execer interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// moveClock replaces the shift if it still is what it was; if another replica
// was faster, that one's is as good.
func (s *Store) moveClock(ctx context.Context, db execer, from, to time.Duration) error {
	tag, err := db.Exec(ctx, sqlMoveClock, int64(to/time.Microsecond), int64(from/time.Microsecond))
	s.Stats.ClockMoves.Add(tag.RowsAffected())
	return err
}

func (s *Store) writeClock(ctx context.Context, row allocation.ClockRow, now allocation.Now) error {
	if row.Governed != 0 && now.Governed.Sub(row.Governed) < writeClockEvery {
		return nil
	}
	_, err := s.pool.Exec(ctx, sqlWriteClock, int64(now.Governed), int64(now.Raw), int64(row.Shift/time.Microsecond))
	return err
}
