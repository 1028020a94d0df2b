package postgres

import (
	"strconv"
	"testing"
)

// An allocator that meets more budgets than it remembers goes on, with as much
// memory. Seen to catch: every policy remembered for good.
func TestRememberedPoliciesAreBounded(t *testing.T) {
	var p policies
	for i := range maxPolicies + 100 {
		name := "b/" + strconv.Itoa(i)
		b, err := p.decode(name, 1, []byte(`{}`))
		if err != nil || b.Name != name {
			t.Fatalf("%q: %v, %v", name, b.Name, err)
		}
	}
	if len(p.last) != maxPolicies {
		t.Errorf("%d are remembered, at most %d may be", len(p.last), maxPolicies)
	}
}
