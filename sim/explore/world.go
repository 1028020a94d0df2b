package explore

import (
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// epoch is what all clocks show in a state as it is kept.
const epoch = lease.Time(1_000_000_000_000)

// thousandths of a token are the unit of the admission levels.
const thousandths = 1000

// world is one state: the production values, and what the model adds.
type world struct {
	ledger allocation.State
	// variant is the index of the budget in force.
	variant int

	ledgerNow, storeNow, processNow lease.Time
	// lag is how far the slower of the region's clocks has fallen behind the
	// ledger's since it was least behind, in ticks: a process's deadline is
	// counted first on the one and then on the other, and their errors together
	// are within the drift. behind is the process's clock behind the store's.
	lag, behind int

	// stores has the region's store and, once it failed over, the isolated one.
	stores [2]store
	// copied is the row as a replica or a snapshot has it.
	copied    regionstore.Row
	processes [2]process

	requests []request
	replies  []reply

	// level is Lindley's queue of everything admitted under leases or by the
	// rest of the world, drained at the rate; life the same with the floor at
	// minus the float, which bounds the lifetime; local that of local admissions
	// and declared that of a regranted share's old primary.
	level, life, local, declared int64

	// drawn counts the incarnations given per kind, lives those of the store.
	drawn [lease.Kinds]int
	lives int
	// left is how much of each bounded thing may still happen.
	left budgetOfEvents
}

type budgetOfEvents struct{ crashes, steps, changes, locals, ticks int }

// store is one server with its life and its row.
type store struct {
	on   bool
	life int
	row  regionstore.Row
}

// process is one process of the region: what it remembers of the store's clock
// and the tokens in its memory.
type process struct {
	// known is set once it has seen the row; bound is then the NotAfter of its
	// next call.
	known bool
	bound lease.Time
	parts []part
	// coming is a take's reply on its way, sent when the take was sent.
	coming []part
	sent   lease.Time
	// settling is a settlement on its way; Kind 0 for none.
	settling regionstore.Settle
}

// part is one lease's tokens in a process: the agent's pocket in small.
type part struct {
	kind        lease.Kind
	incarnation lease.Incarnation
	generation  uint64
	free, used  lease.Tokens
	// deadline is on the process's clock; for a coming part what remained.
	deadline lease.Time
}

// request is an item as it was sent.
type request struct {
	reports [lease.Kinds]lease.Report
	n       int
	// local is the store's counter of local admissions; "" for none.
	local lease.LocalUse
}

// reply is an answer: of each state what an install looks at.
type reply struct {
	states [lease.Kinds]lease.State
	n      int
}

// The names of incarnations by kind and number, and of lives.
var (
	incarnations = [lease.Kinds][8]lease.Incarnation{
		{"", "r1", "r2", "r3", "r4", "r5", "r6", "r7"},
		{"", "p1", "p2", "p3", "p4", "p5", "p6", "p7"},
		{"", "l1", "l2", "l3", "l4", "l5", "l6", "l7"},
	}
	lifeNames = [8]string{"", "1", "2", "3", "4", "5", "6", "7"}
)

// number is the place of a name in its table; the empty name is 0.
func number[T ~string](name T) int64 {
	if name == "" {
		return 0
	}
	return int64(name[len(name)-1] - '0')
}

// root is the state in which nothing has happened.
func root(c *Config) *world {
	now := allocation.Now{Governed: epoch, Raw: epoch}
	w := &world{
		ledger:    *allocation.NewState(now, c.Budgets[0]),
		ledgerNow: epoch, storeNow: epoch, processNow: epoch,
		lives: 1,
		left:  budgetOfEvents{crashes: c.Crashes, steps: c.Steps, changes: c.Changes, locals: c.Locals, ticks: c.Ticks},
	}
	w.stores[0] = store{on: true, life: 1}
	return w
}

func (w *world) now() allocation.Now {
	return allocation.Now{Governed: w.ledgerNow, Raw: w.ledgerNow}
}

func (w *world) pool() *allocation.Pool { return &w.ledger.Pools[0] }

// step is the production step of a store as it stands.
func (m *model) step(w *world, at int) regionstore.Step {
	return regionstore.Step{Config: m.stores, Time: w.storeNow, Replid: lifeNames[w.stores[at].life]}
}

// budgets of the models: one bucket, its lives in ticks.
func bucket(rate, burst, float lease.Tokens, ttl int) policy.Budget {
	b := policy.Budget{
		Name: "t/b", Strategy: policy.Dynamic, OnStoreLoss: policy.Wait, Float: float,
		Contract: policy.Contract{Burst: burst},
	}
	if rate > 0 {
		b.Contract.Rate = lease.Rate{Tokens: rate, Per: tick}
	}
	b.TTL, b.ShareTTL = time.Duration(ttl)*tick, time.Duration(ttl)*tick
	return b
}
