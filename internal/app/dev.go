package app

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/ration-dev/ration/agent"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
	wallet "github.com/ration-dev/ration/regionstore/memory"
)

// DevOptions says what dev runs.
type DevOptions struct {
	Budgets []policy.Budget
	Regions []DevRegion
	// Host and Port are where to listen: the allocator's gRPC on Port and HTTP
	// on Port+1, region i's on Port+10·(i+1) and the next. Port 0 takes any free
	// ports.
	Host string
	Port int
	Log  *slog.Logger
}

// DevRegion is a region that dev plays, with its simulated round trip to the
// allocator.
type DevRegion struct {
	Name string
	RTT  time.Duration
}

// DefaultDevRegions are three regions at round trips as between continents.
func DefaultDevRegions() []DevRegion {
	return []DevRegion{{"us", 20 * time.Millisecond}, {"eu", 80 * time.Millisecond}, {"ap", 200 * time.Millisecond}}
}

// Dev is everything in one process, in memory: a ledger, an allocator, and an
// agent with a store per region. What it holds is gone when it ends.
type Dev struct {
	opt       DevOptions
	allocator *Allocator
	agents    []*Agent
	meters    *meters
	parts     stack
	stop      sync.Once
	ended     error
}

// NewDev makes a dev that has not started. The budgets are normalized.
func NewDev(opt DevOptions) *Dev {
	if opt.Log == nil {
		opt.Log = slog.Default()
	}
	d := &Dev{opt: opt, meters: newMeters(opt.Budgets, len(opt.Regions))}
	d.allocator = NewAllocator(AllocatorOptions{
		Store: ledger.New(wallClock), Credentials: rpc.Insecure{},
		Listen: d.address(0, 0), HTTP: d.address(0, 1), Log: opt.Log,
	})
	return d
}

func wallClock() lease.Time { return lease.Time(time.Now().UnixMicro()) }

func (d *Dev) address(server, offset int) string {
	port := 0
	if d.opt.Port != 0 {
		port = d.opt.Port + 10*server + offset
	}
	return net.JoinHostPort(d.opt.Host, strconv.Itoa(port))
}

// Start starts everything and returns once every region decides.
func (d *Dev) Start(ctx context.Context) error {
	if err := d.start(ctx); err != nil {
		return errors.Join(err, d.Stop(context.WithoutCancel(ctx)))
	}
	return nil
}

func (d *Dev) start(ctx context.Context) error {
	if _, err := d.allocator.Core().Apply(ctx, d.opt.Budgets); err != nil {
		return err
	}
	if err := d.allocator.Start(ctx); err != nil {
		return portHint(err)
	}
	d.parts.push("the allocator", d.allocator.Stop)
	for i, r := range d.opt.Regions {
		a := d.agent(i, r)
		if err := a.Start(ctx); err != nil {
			return portHint(err)
		}
		d.parts.push("the agent of "+r.Name, a.Stop)
		d.agents = append(d.agents, a)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for _, a := range d.agents {
		if err := a.AwaitReady(ctx); err != nil {
			return err
		}
	}
	return nil
}

// startTimeout is how long the regions may take to learn the budgets.
const startTimeout = 10 * time.Second

// portHint names dev's own flag, where the servers name theirs.
func portHint(err error) error {
	if b, ok := errors.AsType[*busy](err); ok {
		return &busy{b.address, "--port"}
	}
	return err
}

func (d *Dev) agent(i int, r DevRegion) *Agent {
	far := distant{d.allocator.Source(), d.allocator.Core(), r.RTT}
	return NewAgent(AgentOptions{
		Region: r.Name, Store: wallet.New(wallClock, Nonce, regionstore.DefaultConfig()), Leases: far, Policies: far,
		GRPC: d.address(i+1, 0), HTTP: d.address(i+1, 1), Log: d.opt.Log, Watch: d.meters.watch,
		// One process serves everything: a pause of the machine is no dead store.
		StoreDeadline: 50 * time.Millisecond,
	})
}

// Allocator is the allocator, and Agents one agent per region, in the order of
// the regions; complete after Start.
func (d *Dev) Allocator() *Allocator { return d.allocator }

// Agents is described with Allocator.
func (d *Dev) Agents() []*Agent { return d.agents }

// Stop ends everything, regions first, so that their leases are closed. It may
// be called again and returns the same.
func (d *Dev) Stop(ctx context.Context) error {
	d.stop.Do(func() { d.ended = d.parts.close(ctx) })
	return d.ended
}

// distant is the allocator at a distance: half the round trip each way.
type distant struct {
	leases   lease.Source
	policies policy.Source
	rtt      time.Duration
}

func (s distant) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	if err := sleep(ctx, s.rtt/2); err != nil {
		return lease.SyncReply{}, err
	}
	reply, err := s.leases.SyncLeases(ctx, req)
	if err != nil {
		return lease.SyncReply{}, err
	}
	return reply, sleep(ctx, s.rtt/2)
}

func (s distant) ListBudgets(ctx context.Context, since uint64) (policy.List, error) {
	if err := sleep(ctx, s.rtt/2); err != nil {
		return policy.List{}, err
	}
	list, err := s.policies.ListBudgets(ctx, since)
	if err != nil {
		return policy.List{}, err
	}
	return list, sleep(ctx, s.rtt/2)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return lease.Errorf(lease.Unavailable, "", "%v", context.Cause(ctx))
	}
}

var (
	_ lease.Source  = distant{}
	_ policy.Source = distant{}
	_ Checker       = (*agent.Runner)(nil)
)
