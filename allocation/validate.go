package allocation

import (
	"fmt"
	"math"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Bounds on one item of a request.
const (
	// maxID bounds incarnations and the sources of local counters, in bytes.
	maxID = 64
	// maxLocal bounds the local counters of one item: the store's own and those
	// of processes that decided while the store was away.
	maxLocal = 64
	// maxRTT is beyond any round trip that got an answer.
	maxRTT = time.Hour
	// maxSeq keeps sequences exact in the region's store and in the database.
	maxSeq = uint64(lease.MaxTokens)
)

// validateRequest refuses a request that is at fault as a whole.
func validateRequest(req lease.SyncRequest) *lease.Error {
	if why := policy.CheckName(req.Region); why != "" {
		return lease.Errorf(lease.Invalid, "region", "%s", why)
	}
	if len(req.Items) > lease.MaxItems {
		return lease.Errorf(lease.Invalid, "items", "has %d items, at most %d are allowed", len(req.Items), lease.MaxItems)
	}
	return nil
}

// validateItem checks every field of the item at index i of its request.
func validateItem(i int, it lease.Item) *lease.Error {
	c := itemCheck{path: fmt.Sprintf("items[%d]", i)}
	if why := policy.CheckName(it.Budget); why != "" {
		c.fail("budget", "%s", why)
	}
	c.demand(it.Demand)
	c.tokens("demand_total", it.DemandTotal)
	c.tokens("waiting", it.Waiting)
	c.duration("rtt", it.RTT, maxRTT)
	c.locals(it.Local)
	c.reports(it.Leases)
	return c.err
}

// itemCheck keeps the first fault found.
type itemCheck struct {
	path string
	err  *lease.Error
}

func (c *itemCheck) fail(field, format string, args ...any) {
	if c.err == nil {
		c.err = lease.Errorf(lease.Invalid, c.path+"."+field, format, args...)
	}
}

func (c *itemCheck) demand(d float64) {
	switch {
	case math.IsNaN(d) || math.IsInf(d, 0):
		c.fail("demand", "is not finite")
	case d < 0 || d > float64(lease.MaxTokens):
		c.fail("demand", "is %g, must be 0 to %d", d, lease.MaxTokens)
	}
}

func (c *itemCheck) tokens(field string, n lease.Tokens) {
	if n < 0 || n > lease.MaxTokens {
		c.fail(field, "is %d, must be 0 to %d", n, lease.MaxTokens)
	}
}

func (c *itemCheck) duration(field string, d, most time.Duration) {
	if d < 0 || d > most {
		c.fail(field, "is %v, must be 0 to %v", d, most)
	}
}

func (c *itemCheck) id(field, id string) {
	if len(id) > maxID {
		c.fail(field, "has %d bytes, at most %d are allowed", len(id), maxID)
		return
	}
	if why := policy.CheckName(id); why != "" {
		c.fail(field, "%s", why)
	}
}

func (c *itemCheck) locals(uses []lease.LocalUse) {
	if len(uses) > maxLocal {
		c.fail("local", "has %d counters, at most %d are allowed", len(uses), maxLocal)
		return
	}
	for i, u := range uses {
		c.id(fmt.Sprintf("local[%d].source", i), u.Source)
		c.tokens(fmt.Sprintf("local[%d].total", i), u.Total)
	}
}

func (c *itemCheck) reports(reports []lease.Report) {
	if len(reports) > lease.Kinds {
		c.fail("leases", "has %d reports, at most %d are allowed", len(reports), lease.Kinds)
		return
	}
	var seen [lease.Kinds + 1]bool
	for i, r := range reports {
		field := fmt.Sprintf("leases[%d].", i)
		if r.Kind < 1 || r.Kind > lease.Kinds {
			c.fail(field+"kind", "is %d, must be 1 to %d", r.Kind, lease.Kinds)
			return
		}
		if seen[r.Kind] {
			c.fail(field+"kind", "is %s, reported twice", r.Kind)
		}
		seen[r.Kind] = true
		c.report(field, r)
	}
}

func (c *itemCheck) report(field string, r lease.Report) {
	c.id(field+"incarnation", string(r.Incarnation))
	if r.Seq < 1 || r.Seq > maxSeq {
		c.fail(field+"seq", "is %d, must be 1 to %d", r.Seq, maxSeq)
	}
	c.tokens(field+"used", r.Used)
	c.tokens(field+"returned", r.Returned)
	c.tokens(field+"beta", r.Beta)
	c.tokens(field+"prefetched", r.Prefetched)
	c.tokens(field+"want", r.Want)
	c.tokens(field+"x.tokens", r.X.Tokens)
	c.duration(field+"x.per", r.X.Per, lease.MaxPeriod)
	if r.X.Tokens > 0 && r.X.Per <= 0 || r.X.Per%time.Microsecond != 0 {
		c.fail(field+"x.per", "is %v, must be whole microseconds, at least 1", r.X.Per)
	}
	if r.Regrant == "" {
		return
	}
	c.id(field+"regrant", string(r.Regrant))
	if !r.Kind.IsShare() {
		c.fail(field+"regrant", "is only for shares")
	}
	if r.Regrant == r.Incarnation {
		c.fail(field+"regrant", "names the lease itself")
	}
}
