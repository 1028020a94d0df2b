package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/policy"
)

// Ten thousand active budgets of one region: each is served, reads and Syncs
// go in bounded batches, and an idle second costs no more than a share of
// them.
func TestTenThousandActiveBudgets(t *testing.T) {
	const many = 10_000
	w := newWorld(t, 12)
	w.check = false
	for i := 0; i < many; i += 1000 {
		var budgets []policy.Budget
		for j := range 1000 {
			budgets = append(budgets, bucket(fmt.Sprintf("acme/%05d", i+j), 10, 100, policy.Dynamic, "us", "eu"))
		}
		w.apply(budgets...)
	}
	n := w.agent(w.region("us", 20*time.Millisecond))
	largest := 0
	reads, begins := 0, 0
	n.killAt = func(stage string, f Effect) bool {
		switch f := f.(type) {
		case ReadRows:
			largest = max(largest, len(f.Budgets))
			if stage == "before" {
				reads += len(f.Budgets)
			}
		case SendSync:
			largest = max(largest, len(f.Items))
		case BeginSync:
			if stage == "before" {
				begins++
			}
		}
		return false
	}
	w.run(time.Second)
	allowed := 0
	for i := range many {
		name := fmt.Sprintf("acme/%05d", i)
		for _, at := range []time.Duration{0, 3 * time.Second, 5 * time.Second} {
			w.after(at+time.Duration(w.rand.IntN(1000))*time.Millisecond, func() {
				n.decide(Check{Budgets: []string{name}, Cost: 1}, func(a Answer) {
					if a.Outcome == Allowed {
						allowed++
					}
				})
			})
		}
	}
	w.run(5 * time.Second)
	reads, begins = 0, 0
	w.run(2 * time.Second)
	if allowed < many*3*98/100 {
		t.Errorf("%d of %d allowed", allowed, many*3)
	}
	if largest > maxItems {
		t.Errorf("a batch of %d", largest)
	}
	t.Logf("%d allowed, %d reads and %d begins in 2 s", allowed, reads, begins)
	if reads > 3*many || begins > many {
		t.Errorf("%d reads and %d begins in 2 s", reads, begins)
	}
}
