package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// plainLedger grants and does nothing else: two narrow tables, no replays, no
// plan, no expiry.
type plainLedger struct {
	pool    *pgxpool.Pool
	budgets int
}

const plainConns = 16

var plainSchema = []string{
	`CREATE TABLE plain_pools (
		budget    integer PRIMARY KEY,
		available bigint NOT NULL
	) WITH (fillfactor = 70)`,
	`CREATE TABLE plain_leases (
		id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
		budget     integer NOT NULL,
		region     text NOT NULL,
		tokens     bigint NOT NULL,
		expires_at timestamptz NOT NULL
	)`,
}

const plainFill = `INSERT INTO plain_pools SELECT i, 1e15 FROM generate_series(0, $1::integer - 1) AS i`

const (
	plainDebit = `UPDATE plain_pools SET available = available - $2 WHERE budget = $1 AND available >= $2`
	plainLease = `INSERT INTO plain_leases (budget, region, tokens, expires_at) VALUES ($1, $2, $3, now() + interval '10 s')`
	// plainBoth is the two in one statement, and so in one round trip.
	plainBoth = `
WITH debit AS (UPDATE plain_pools SET available = available - $2 WHERE budget = $1 AND available >= $2 RETURNING budget)
INSERT INTO plain_leases (budget, region, tokens, expires_at) SELECT budget, $3, $2, now() + interval '10 s' FROM debit`

	plainDebits = `
UPDATE plain_pools SET available = available - debit.tokens
FROM (SELECT budget, sum(tokens) AS tokens FROM unnest($1::integer[], $2::bigint[]) AS row (budget, tokens) GROUP BY budget) AS debit
WHERE plain_pools.budget = debit.budget AND available >= debit.tokens`
	plainLeases = `
INSERT INTO plain_leases (budget, region, tokens, expires_at)
SELECT budget, 'eu', tokens, now() + interval '10 s' FROM unnest($1::integer[], $2::bigint[]) AS row (budget, tokens)`
)

func newPlainLedger(tb testing.TB, url string, budgets int) *plainLedger {
	tb.Helper()
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		tb.Fatal(err)
	}
	config.MaxConns, config.MinConns = plainConns, plainConns
	pool, err := pgxpool.NewWithConfig(context.Background(), config)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(pool.Close)
	for _, sql := range plainSchema {
		if _, err := pool.Exec(context.Background(), sql); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := pool.Exec(context.Background(), plainFill, budgets); err != nil {
		tb.Fatal(err)
	}
	return &plainLedger{pool, budgets}
}

// each runs a transaction on each of n connections again and again for d, and
// returns how many there were per second.
func (p *plainLedger) each(tb testing.TB, n int, d time.Duration, tx func(*pgx.Conn) error) float64 {
	tb.Helper()
	var running sync.WaitGroup
	var done atomic.Int64
	errs := make(chan error, n)
	began := time.Now()
	for range n {
		running.Go(func() {
			errs <- p.pool.AcquireFunc(context.Background(), func(c *pgxpool.Conn) error {
				for time.Since(began) < d {
					if err := tx(c.Conn()); err != nil {
						return err
					}
					done.Add(1)
				}
				return nil
			})
		})
	}
	running.Wait()
	took := time.Since(began)
	close(errs)
	for err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
	return float64(done.Load()) / took.Seconds()
}

// one grants one lease per transaction, in its four statements, on 16
// connections.
func (p *plainLedger) one(tb testing.TB, d time.Duration) float64 {
	tb.Helper()
	return p.each(tb, plainConns, d, func(c *pgx.Conn) error {
		ctx := context.Background()
		tx, err := c.Begin(ctx)
		if err != nil {
			return err
		}
		budget := rand.IntN(p.budgets)
		if err := touchesOne(tx.Exec(ctx, plainDebit, budget, int64(spent))); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, plainLease, budget, "eu", int64(spent)); err != nil {
			return err
		}
		return tx.Commit(ctx)
	})
}

// single grants one lease per statement, which is its own transaction, on 16
// connections.
func (p *plainLedger) single(tb testing.TB, d time.Duration) float64 {
	tb.Helper()
	return p.each(tb, plainConns, d, func(c *pgx.Conn) error {
		return touchesOne(c.Exec(context.Background(), plainBoth, rand.IntN(p.budgets), int64(spent), "eu"))
	})
}

func touchesOne(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.RowsAffected() != 1 {
		err = fmt.Errorf("%s touched %d rows", tag, tag.RowsAffected())
	}
	return err
}

const plainBatch = 500

// batches grants 500 leases per transaction, on one connection: the limit.
func (p *plainLedger) batches(tb testing.TB, d time.Duration) float64 {
	tb.Helper()
	budgets, tokens := make([]int32, plainBatch), slices.Repeat([]int64{int64(spent)}, plainBatch)
	return plainBatch * p.each(tb, 1, d, func(c *pgx.Conn) error {
		for i := range budgets {
			budgets[i] = rand.Int32N(int32(p.budgets))
		}
		var q pgx.Batch
		q.Queue("BEGIN")
		q.Queue(plainDebits, budgets, tokens)
		q.Queue(plainLeases, budgets, tokens)
		q.Queue("COMMIT")
		return c.SendBatch(context.Background(), &q).Close()
	})
}
