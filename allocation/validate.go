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
	c := itemCheck{item: i}
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

// itemCheck keeps the first fault found. Paths are only made for faults.
type itemCheck struct {
	item int
	// list is the list that is being checked, and place where in it; "" for the
	// item's own fields.
	list  string
	place int
	err   *lease.Error
}

func (c *itemCheck) fail(field, format string, args ...any) {
	if c.err != nil {
		return
	}
	path := fmt.Sprintf("items[%d].", c.item)
	if c.list != "" {
		path += fmt.Sprintf("%s[%d].", c.list, c.place)
	}
	c.err = lease.Errorf(lease.Invalid, path+field, format, args...)
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
	if len(uses) > lease.MaxLocal {
		c.fail("local", "has %d counters, at most %d are allowed", len(uses), lease.MaxLocal)
		return
	}
	for i, u := range uses {
		c.list, c.place = "local", i
		c.id("source", u.Source)
		c.tokens("total", u.Total)
	}
	c.list = ""
}

func (c *itemCheck) reports(reports []lease.Report) {
	if len(reports) > lease.Kinds {
		c.fail("leases", "has %d reports, at most %d are allowed", len(reports), lease.Kinds)
		return
	}
	var seen [lease.Kinds + 1]bool
	for i, r := range reports {
		c.list, c.place = "leases", i
		if r.Kind < 1 || r.Kind > lease.Kinds {
			c.fail("kind", "is %d, must be 1 to %d", r.Kind, lease.Kinds)
			return
		}
		if seen[r.Kind] {
			c.fail("kind", "is %s, reported twice", r.Kind)
		}
		seen[r.Kind] = true
		c.report(r)
	}
	c.list = ""
}

func (c *itemCheck) report(r lease.Report) {
	c.id("incarnation", string(r.Incarnation))
	if r.Seq < 1 || r.Seq > maxSeq {
		c.fail("seq", "is %d, must be 1 to %d", r.Seq, maxSeq)
	}
	c.tokens("used", r.Used)
	c.tokens("returned", r.Returned)
	c.tokens("beta", r.Beta)
	c.tokens("prefetched", r.Prefetched)
	c.tokens("granted", r.Granted)
	c.tokens("want", r.Want)
	c.tokens("x.tokens", r.X.Tokens)
	c.duration("x.per", r.X.Per, lease.MaxPeriod)
	if r.X.Tokens > 0 && r.X.Per <= 0 || r.X.Per%time.Microsecond != 0 {
		c.fail("x.per", "is %v, must be whole microseconds, at least 1", r.X.Per)
	}
	if r.Regrant == "" {
		return
	}
	c.id("regrant", string(r.Regrant))
	if !r.Kind.IsShare() {
		c.fail("regrant", "is only for shares")
	}
	if r.Regrant == r.Incarnation {
		c.fail("regrant", "names the lease itself")
	}
}
