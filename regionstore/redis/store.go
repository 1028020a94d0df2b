package redis

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Store is a regionstore.Store over Redis. Make one with New or Open.
type Store struct {
	client  redis.UniversalClient
	opts    Options
	keys    keyspace
	scripts scripts
	owned   bool // Shutdown closes the client

	checkMu sync.Mutex
	checked atomic.Bool

	// connCheck is set where INFO is forbidden in scripts; connReplid is then
	// what the last new connection said.
	connCheck  atomic.Bool
	connReplid atomic.Pointer[string]

	// primaries has the replication id last seen per slot group: one, or one
	// per slot of a Cluster.
	primaries []atomic.Pointer[string]
	lanes     lanes
}

var _ regionstore.Store = (*Store)(nil)

// New makes a store over a client that the caller configures and closes: no
// retries (MaxRetries -1), ContextTimeoutEnabled. A server that cannot keep
// wallets is an error here; one that cannot be reached is not: the checks are
// then made before the first step.
func New(ctx context.Context, client redis.UniversalClient, opts Options) (*Store, error) {
	s, err := newStore(opts)
	if err != nil {
		return nil, err
	}
	return s.over(ctx, client)
}

func newStore(opts Options) (*Store, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	return &Store{opts: opts, scripts: loadScripts(opts.Config), keys: keyspace{prefix: opts.Prefix, region: opts.Region}}, nil
}

func (s *Store) over(ctx context.Context, client redis.UniversalClient) (*Store, error) {
	s.client = client
	slots := 1
	switch client.(type) {
	case *redis.ClusterClient:
		s.keys.cluster = true
		slots = clusterSlots
	case *redis.Client:
	default:
		return nil, fmt.Errorf("redis store: a %T shards keys in its own way", client)
	}
	s.primaries = make([]atomic.Pointer[string], slots)
	if err := s.check(ctx); err != nil && final(err) {
		return nil, err
	}
	return s, nil
}

// Open makes a client and a store over it. One address is a single server, a
// redis:// or rediss:// URL or host:port; several are a Cluster's nodes, or
// with Options.MasterName the Sentinels'. User, password, database and TLS
// are those of the first address. Shutdown closes the client.
func Open(ctx context.Context, opts Options, addrs ...string) (*Store, error) {
	s, err := newStore(opts)
	if err != nil {
		return nil, err
	}
	uopts, err := s.clientOptions(addrs)
	if err != nil {
		return nil, err
	}
	s.owned = true
	client := redis.NewUniversalClient(uopts)
	if _, err := s.over(ctx, client); err != nil {
		_ = client.Close()
		return nil, err
	}
	return s, nil
}

// Shutdown closes the client that Open made. Steps after it fail.
func (s *Store) Shutdown() error {
	if !s.owned {
		return nil
	}
	if err := s.client.Close(); err != nil && !errors.Is(err, redis.ErrClosed) {
		return err
	}
	return nil
}

func (s *Store) clientOptions(addrs []string) (*redis.UniversalOptions, error) {
	if len(addrs) == 0 {
		return nil, errors.New("redis store: no address")
	}
	u := &redis.UniversalOptions{
		MasterName:    s.opts.MasterName,
		IsClusterMode: s.opts.MasterName == "" && (s.opts.Cluster || len(addrs) > 1),
		OnConnect:     s.onConnect,

		MaxRetries:            -1,
		DialerRetries:         1,
		ContextTimeoutEnabled: true,
		ReadTimeout:           s.opts.Timeout,
		WriteTimeout:          s.opts.Timeout,
		PoolTimeout:           s.opts.Timeout,
		DialTimeout:           max(s.opts.Timeout, time.Second),
		PoolSize:              s.opts.PoolSize,
		MaxActiveConns:        s.opts.PoolSize,

		Protocol:                 2,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}
	for i, addr := range addrs {
		p, err := parseAddr(addr)
		if err != nil {
			return nil, err
		}
		u.Addrs = append(u.Addrs, p.Addr)
		if i == 0 {
			u.Username, u.Password, u.DB, u.TLSConfig = p.Username, p.Password, p.DB, p.TLSConfig
		}
	}
	return u, nil
}

func parseAddr(addr string) (*redis.Options, error) {
	if !strings.Contains(addr, "://") {
		addr = "redis://" + addr
	}
	p, err := redis.ParseURL(addr)
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err // not the address itself: it may hold a password
	}
	if err != nil {
		return nil, lease.Errorf(lease.Invalid, "redis_url", "%v", err)
	}
	return p, nil
}

// Slot groups budgets that can be taken in one step: all on a single primary,
// those whose tenants share a hash slot on a Cluster.
func (s *Store) Slot(budget string) uint32 { return s.keys.slot(budget) }

// Primary is the replication id that the budget's primary had when it last
// answered; "" before that. No two lives of any primary share one.
func (s *Store) Primary(budget string) string { return s.primary(s.keys.slot(budget)) }

func (s *Store) primary(slot uint32) string {
	if id := s.primaries[slot].Load(); id != nil {
		return *id
	}
	return ""
}

func (s *Store) saw(slot uint32, replid string) {
	if id := s.primaries[slot].Load(); id == nil || *id != replid {
		s.primaries[slot].Store(&replid)
	}
}
