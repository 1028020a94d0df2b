package postgres

import (
	"context"
	"errors"
	"net"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/ration-dev/ration/lease"
)

func poolConfig(url string, opts Options) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, lease.Errorf(lease.Invalid, "database_url", "%v", err)
	}
	if opts.MaxConns > 0 {
		config.MaxConns = opts.MaxConns
	}
	if config.ConnConfig.ConnectTimeout == 0 {
		config.ConnConfig.ConnectTimeout = opts.Timeout
	}
	dialer := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{
		Enable: true, Idle: 5 * time.Second, Interval: 5 * time.Second, Count: 3,
	}}
	config.ConnConfig.DialFunc = dialer.DialContext
	config.ConnConfig.OnNotice = markWarning
	config.BeforeConnect = neverCancel
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error { return prepareSession(ctx, conn, opts) }
	return config, nil
}

// neverCancel keeps a connection from asking the server to cancel what it
// runs, which pgx does by dialling once more when a connection breaks or a
// context ends: the request could hit a COMMIT.
func neverCancel(_ context.Context, config *pgx.ConnConfig) error {
	var connected atomic.Bool
	dial := config.DialFunc
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if connected.Load() {
			return nil, errors.New("cancel requests are not sent")
		}
		return dial(ctx, network, addr)
	}
	config.AfterConnect = func(context.Context, *pgconn.PgConn) error {
		connected.Store(true)
		return nil
	}
	return nil
}

const sqlSession = `
SELECT
    set_config('statement_timeout', '0', false),
    set_config('lock_timeout', $1, false),
    set_config('idle_in_transaction_session_timeout', $2, false),
    set_config('plan_cache_mode', 'force_generic_plan', false),
    set_config('jit', 'off', false),
    set_config('enable_seqscan', 'off', false),
    set_config('enable_hashjoin', 'off', false),
    set_config('enable_mergejoin', 'off', false),
    current_setting('synchronous_commit'),
    current_setting('synchronous_standby_names')
`

// prepareSession sets the session's limits and refuses one whose commits are
// not durable. No statement timeout: it would cancel a COMMIT that waits for a
// standby. A lock is waited for less long than an attempt lasts, so that the
// connection outlives the wait. Statements find rows by their keys: planned
// once, as long as the tables are small, they must not read whole tables when
// these have grown.
func prepareSession(ctx context.Context, conn *pgx.Conn, opts Options) error {
	milliseconds := func(d time.Duration) string { return strconv.FormatInt(max(1, d.Milliseconds()), 10) }
	var ignored, setting, standbys string
	err := conn.QueryRow(ctx, sqlSession, milliseconds(opts.Timeout*3/4), milliseconds(2*opts.Timeout)).
		Scan(&ignored, &ignored, &ignored, &ignored, &ignored, &ignored, &ignored, &ignored, &setting, &standbys)
	if err != nil || opts.AllowVolatile {
		return err
	}
	return volatile(setting, standbys)
}

const warned = "ration.warned"

// markWarning remembers on the connection that the server has warned. During
// a COMMIT any warning means that it may not be durable; to tell the texts
// apart would rest on the server's language.
func markWarning(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.SeverityUnlocalized == "WARNING" || n.SeverityUnlocalized == "" {
		conn.CustomData()[warned] = n.Message
	}
}
