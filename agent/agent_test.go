package agent

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func lease64(f float64) lease.Tokens { return lease.Tokens(f) }

// remembering is an entry's memory, made if it has none.
func remembering(e *entry) *entry {
	if e.usage == nil {
		e.usage = &usage{}
	}
	return e
}

func perSecond(n lease.Tokens) lease.Rate { return lease.Rate{Tokens: n, Per: time.Second} }

func bucket(name string, rate, burst lease.Tokens, s policy.Strategy, regions ...string) policy.Budget {
	b := policy.Budget{
		Name: name, Match: map[string]string{"budget": name}, Strategy: s,
		Contract: policy.Contract{Rate: perSecond(rate), Burst: burst},
	}
	for _, r := range regions {
		b.Regions = append(b.Regions, policy.Region{Name: r, Weight: 1})
	}
	return b
}

func (w *world) outcomes() (out [outcomes][modes]int64) {
	for _, n := range w.agents {
		for i := range out {
			for j := range out[i] {
				out[i][j] += n.stats.Decisions[i][j].Load()
			}
		}
	}
	return out
}

// A global limit holds across three regions while demand is above it, and
// most of the limit is used.
func TestDynamicBudgetAcrossRegions(t *testing.T) {
	w := newWorld(t, 1)
	w.apply(bucket("acme/search", 1000, 500, policy.Dynamic, "us", "eu", "ap"))
	end := 10 * time.Second
	for _, r := range []struct {
		name string
		rtt  time.Duration
		load float64
	}{{"us", 20 * time.Millisecond, 1000}, {"eu", 80 * time.Millisecond, 150}, {"ap", 200 * time.Millisecond, 150}} {
		w.agent(w.region(r.name, r.rtt)).load("acme/search", r.load, end)
	}
	w.check = false
	w.run(end + time.Second)
	t.Log(w.outcomes())
	for _, n := range w.agents {
		t.Log(n.site.name, n.stats.SyncCalls.Load(), n.stats.Prefetched.Load(), n.stats.GivenBack.Load())
	}
	if x := w.excess("acme/search", 1000*1.001, 500); x > 1 {
		t.Errorf("admitted %.1f above the bucket", x)
	}
	if got := w.total("acme/search"); got < 9500 {
		t.Errorf("admitted %d of about 10500", got)
	}
	w.audit()
}
