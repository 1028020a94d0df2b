package sim

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// Topology is who is there and what lies between them.
type Topology struct {
	// Regions has at least one region; names are distinct.
	Regions []Region
	Ledger  Ledger
	// Declared is what the deployment believes of its clocks; the zero value
	// takes lease.DefaultClocks. The clocks that hosts have may be worse.
	Declared lease.Clocks
	// ReplicatedStores says that regions' stores fail over to replicas, for the
	// budgets' floats; see policy.Deployment.
	ReplicatedStores bool
	// StoreIsolation and StoreOutage are policy.Deployment's.
	StoreIsolation, StoreOutage time.Duration
}

// Region is one region: a store, and agents that share it.
type Region struct {
	Name string
	// Agents is the number of agent processes; 0 means 1.
	Agents int
	// Up carries the agents' messages to the allocators, Down the answers. A
	// zero Down is the same as Up.
	Up, Down Link
	// StoreLatency is how long the Keeper's calls to the store take; 0 takes
	// 200 us, negative none. A decision's own calls take no simulated time.
	StoreLatency time.Duration
	// Store and Agent are the clocks of the store's host and of the agents'
	// hosts at the start; faults change them.
	Store, Agent Clock
}

// Ledger is the database and the allocator processes over it.
type Ledger struct {
	// Allocators is the number of processes; 0 means 1.
	Allocators int
	// Commit is how long a transaction takes; 0 takes 2 ms, negative none.
	Commit time.Duration
	// Database and Allocator are the hosts' clocks at the start.
	Database, Allocator Clock
}

// Clock says how a host's clock differs from the true time.
type Clock struct {
	// Offset is how far ahead the wall clock is at the start. Monotonic clocks
	// have an arbitrary origin and no offset.
	Offset time.Duration
	// DriftPPM is how much faster it runs, in parts per million, -900000 to
	// 900000.
	DriftPPM int64
}

// Link is one direction of a network. The zero value delivers at once.
type Link struct {
	Delay Delay
	// Loss and Duplicate are probabilities per message, 0 to 1. A copy has a
	// delay of its own.
	Loss, Duplicate float64
	// Reorder is the probability that a message is held back by ReorderBy, so
	// that later ones overtake it; varying delays reorder by themselves.
	Reorder   float64
	ReorderBy time.Duration
}

// Delay is a distribution of delays: the sum of its parts, each 0 if unset.
type Delay struct {
	Base time.Duration
	// Uniform adds between 0 and this.
	Uniform time.Duration
	// Exponential adds an exponential part with this mean.
	Exponential time.Duration
	// Lognormal adds a lognormal part with this median and shape Sigma, 0 to 5.
	Lognormal time.Duration
	Sigma     float64
}

// RTT returns a pair of links with a constant round trip.
func RTT(d time.Duration) (up, down Link) {
	half := Link{Delay: Delay{Base: d / 2}}
	return half, half
}
