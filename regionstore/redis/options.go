package redis

import (
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// Errors of a server that cannot keep wallets. They are final until an
// operator changes the server or the options.
var (
	// ErrEvicts means that the server may drop rows to make room, which would
	// lose what was granted; it needs maxmemory-policy noeviction.
	ErrEvicts = errors.New("redis evicts keys: set maxmemory-policy noeviction")
	// ErrNoReplicationID means that the replication id of the server cannot be
	// read, neither in scripts nor on a new connection of this client, so that
	// a restart or a promotion would go unnoticed.
	ErrNoReplicationID = errors.New("redis does not tell its replication id (INFO replication)")
	// ErrClusterNode means that a single address belongs to a Cluster.
	ErrClusterNode = errors.New("redis is a node of a cluster: set Options.Cluster or give several addresses")
)

// Options says how a Store uses a server. Only Region is required.
type Options struct {
	// Region keeps the wallets of regions that share a server apart.
	Region string
	// Prefix begins every key: 1 to 32 letters, digits, dots, dashes or
	// underscores; "" is "ration".
	Prefix string
	// Config is the deployment's; the zero value is regionstore.DefaultConfig.
	Config regionstore.Config
	// Timeout bounds every step, waiting for a connection included; 0 is 10 ms.
	// With New it needs a client with ContextTimeoutEnabled.
	Timeout time.Duration
	// PoolSize is the most connections per server that Open's client has; 0 is
	// 32. Steps beyond it wait, within their timeout.
	PoolSize int
	// MasterName makes Open take the addresses as Sentinels that watch a
	// primary of this name.
	MasterName string
	// Cluster makes Open take a single address as a Cluster's.
	Cluster bool
	// Log gets a warning where a check could not be made; nil is slog.Default.
	Log *slog.Logger
	// TestClock replaces the server's clock and replication id in every script,
	// for tests alone; an empty id leaves the server's own in place.
	TestClock func() (now lease.Time, replid string)

	// connCheck reads the replication id when connecting, as where INFO is
	// forbidden in scripts; for tests.
	connCheck bool
}

var validPrefix = regexp.MustCompile(`^[A-Za-z0-9._-]{1,32}$`)

func (o Options) withDefaults() (Options, error) {
	if o.Prefix == "" {
		o.Prefix = "ration"
	}
	if !validPrefix.MatchString(o.Prefix) {
		return o, fmt.Errorf("redis prefix %q: want 1 to 32 letters, digits, dots, dashes or underscores", o.Prefix)
	}
	if o.Region == "" {
		return o, errors.New("redis store: the region is empty")
	}
	if o.Config == (regionstore.Config{}) {
		o.Config = regionstore.DefaultConfig()
	}
	if o.Timeout <= 0 {
		o.Timeout = 10 * time.Millisecond
	}
	if o.PoolSize <= 0 {
		o.PoolSize = 32
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	return o, nil
}
