package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/ration-dev/ration/lease"
)

// errRolledBack means that the server answered COMMIT with a rollback.
var errRolledBack = errors.New("the transaction was rolled back")

// retry runs attempt until it succeeds, fails for good, or RetryFor has
// passed, and translates its last error.
func (s *Store) retry(ctx context.Context, attempt func(context.Context) error) error {
	wait := backoff.NewExponentialBackOff(
		backoff.WithInitialInterval(5*time.Millisecond),
		backoff.WithMultiplier(2),
		backoff.WithMaxInterval(500*time.Millisecond),
		backoff.WithMaxElapsedTime(s.opts.RetryFor),
	)
	for {
		err := attempt(ctx)
		if err == nil || !retryable(err) {
			return translate(err)
		}
		pause := wait.NextBackOff()
		if pause == backoff.Stop {
			return translate(err)
		}
		if errors.Is(err, errClockMoved) {
			pause = 0
		}
		select {
		case <-ctx.Done():
			return translate(err)
		case <-time.After(pause):
		}
		s.Stats.Retries.Add(1)
	}
}

// retryable reports whether a failure before the commit may go away by
// itself. A commit's own failure never comes here except as a conflict.
func retryable(err error) bool {
	var step stepError
	if errors.As(err, &step) || errors.Is(err, ErrVolatile) || errors.Is(err, context.Canceled) {
		return false
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		// The network, a broken connection, a timeout of one attempt.
		return true
	}
	return isConflict(err) || isUnreachable(pg.Code)
}

// isConflict reports whether the server undid the transaction because of
// another one.
func isConflict(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.SeverityUnlocalized == "ERROR" && (pg.Code == "40001" || pg.Code == "40P01")
}

// isUnreachable reports whether a code means a server that is going, coming,
// full, or has become a standby.
func isUnreachable(code string) bool {
	switch code {
	case "57P01", "57P02", "57P03", "57P05", "53300", "25P03", "25006":
		return true
	}
	return strings.HasPrefix(code, "08")
}

// translate makes of a driver's error one that the ledger's callers know. A
// step's own error, ErrUnknownCommit among them, is given back as it is.
func translate(err error) error {
	if err == nil {
		return nil
	}
	var step stepError
	if errors.As(err, &step) {
		return step.error
	}
	var known *lease.Error
	if errors.As(err, &known) {
		return err
	}
	e := lease.Errorf(lease.Unavailable, "", "%s", reason(err))
	var pg *pgconn.PgError
	switch {
	case errors.Is(err, ErrVolatile):
		e.RetryAfter = 0
	case errors.As(err, &pg) && isFault(pg.Code):
		e.Code = lease.Internal
	default:
		e.RetryAfter = time.Second
	}
	return translated{e, err}
}

// isFault reports whether a code can only come from a bug: bad data, a broken
// constraint, bad SQL; a schema that is not there is told apart.
func isFault(code string) bool {
	switch code[:min(2, len(code))] {
	case "22", "23", "42":
		return !isSchemaMissing(code)
	}
	return false
}

// isSchemaMissing reports whether a code means another schema than this one. No
// statement writes NULL: a column that refuses it is one that an older schema
// has and the statement does not know.
func isSchemaMissing(code string) bool {
	return code == "42P01" || code == "42703" || code == "3F000" || code == "23502"
}

func reason(err error) string {
	var pg *pgconn.PgError
	switch {
	case errors.As(err, &pg) && isSchemaMissing(pg.Code):
		return "the database lacks the ledger's schema, or has an old one: run allocator migrate up (" + pg.Message + ")"
	case errors.As(err, &pg) && pg.Code == "55P03":
		return "the budgets are locked by another transaction, perhaps one that waits for a standby"
	case errors.Is(err, ErrVolatile):
		return err.Error()
	case errors.As(err, &pg):
		return fmt.Sprintf("the database refused: %v", err)
	}
	return fmt.Sprintf("the database did not answer: %v", err)
}

// translated shows the ledger's words and still is the driver's error.
type translated struct{ known, cause error }

func (t translated) Error() string   { return t.known.Error() }
func (t translated) Unwrap() []error { return []error{t.known, t.cause} }
