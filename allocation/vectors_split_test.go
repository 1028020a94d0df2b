package allocation

import (
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// vectors.yaml, strategies: a static split 60/40 of 100 lets us use 60 of the
// 100 it asks for and eu 10 of 10; 30 lie idle.
func TestVectorStaticSplit(t *testing.T) {
	b := policy.Budget{
		Name: "acme/split", Strategy: policy.Static, TTL: 10 * time.Second, ShareTTL: time.Hour,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 100, Per: time.Second}, Burst: 100},
		Regions:  []policy.Region{{Name: "eu", Weight: 40}, {Name: "us", Weight: 60}},
	}
	now := Now{Governed: 1_000_000, Raw: 1_000_000}
	s := NewState(now, b)
	idle := lease.Tokens(0)
	for region, want := range map[string]struct{ asked, allowed lease.Tokens }{"us": {100, 60}, "eu": {10, 10}} {
		reply := Sync(Config{}, now, s, region, lease.Item{
			Budget: b.Name, Leases: []lease.Report{{Kind: lease.Reserve, Incarnation: lease.Incarnation(region), Seq: 1}},
		})
		if reply.Err != nil || len(reply.Leases) != 1 {
			t.Fatalf("%s: %+v", region, reply)
		}
		held := reply.Leases[0].Granted
		if got := min(held, want.asked); got != want.allowed {
			t.Errorf("%s: %d allowed, want %d", region, got, want.allowed)
		}
		idle += held - want.allowed
	}
	if idle != 30 {
		t.Errorf("%d idle, want 30", idle)
	}
}
