// Package storetest holds what every allocation.Store must pass: a
// conformance suite, and a state machine that plays regions, a network that
// loses, repeats and reorders, limit changes and lost stores against it, and
// asserts the design's invariants by name.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Harness is one empty store under test.
type Harness struct {
	Store allocation.Store
	// Advance moves the store's clock forward, governed and raw. The clock may
	// also run by itself.
	Advance func(d time.Duration)
	// FailNext makes the next transaction's first attempt fail in a way that the
	// store retries. nil for a store that retries nothing.
	FailNext func()
}

// Run runs the conformance suite. open makes a fresh, empty store for each
// test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, h Harness)
	}{
		{"UnknownBudgetsAreNil", testUnknown},
		{"StepErrorWritesNothing", testStepError},
		{"StepsSeeFreshStates", testFreshStates},
		{"StatesDoNotAlias", testAliasing},
		{"ConcurrentUpdatesAreSerial", testConcurrent},
		{"ApplyIsAllOrNone", testApplyAllOrNone},
		{"VersionsRise", testVersions},
		{"BudgetsInPages", testBudgetPages},
		{"Due", testDue},
		{"DueOfWhatWasExtended", testDueExtended},
		{"ViewInPages", testViewPages},
		{"RoundTripOfEveryField", testRoundTrip},
		{"RoundTripOfNames", testNames},
		{"RowsComeAndGo", testRows},
		{"TimeIsMonotone", testTime},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

// bucket returns a normalized dynamic budget of burst tokens.
func bucket(name string, perSecond, burst lease.Tokens) policy.Budget {
	return policy.Budget{
		Name:        name,
		Contract:    policy.Contract{Rate: lease.Rate{Tokens: perSecond, Per: time.Second}, Burst: burst},
		Strategy:    policy.Dynamic,
		TTL:         10 * time.Second,
		ShareTTL:    time.Minute,
		OnFailure:   policy.Failure{Mode: policy.Deny},
		OnStoreLoss: policy.Regrant,
	}
}

// apply stores states as they are.
func apply(t testing.TB, s allocation.Store, states ...*allocation.State) {
	t.Helper()
	names := make([]string, len(states))
	for i, st := range states {
		names[i] = st.Budget.Name
	}
	err := s.Apply(context.Background(), names, func(allocation.Now, []*allocation.State) ([]*allocation.State, error) {
		return states, nil
	})
	if err != nil {
		t.Fatalf("Apply(%q): %v", names, err)
	}
}

// create stores new full buckets under the names.
func create(t testing.TB, s allocation.Store, names ...string) {
	t.Helper()
	err := s.Apply(context.Background(), names, func(now allocation.Now, before []*allocation.State) ([]*allocation.State, error) {
		after := make([]*allocation.State, len(names))
		for i, name := range names {
			after[i] = allocation.NewState(now, bucket(name, 10, 100))
		}
		return after, nil
	})
	if err != nil {
		t.Fatalf("Apply(%q): %v", names, err)
	}
}

// load returns the stored state of a budget, nil if there is none.
func load(t testing.TB, s allocation.Store, name string) *allocation.State {
	t.Helper()
	var out *allocation.State
	err := s.Update(context.Background(), []string{name}, func(_ allocation.Now, states []*allocation.State) error {
		out = states[0]
		return nil
	})
	if err != nil {
		t.Fatalf("Update(%q): %v", name, err)
	}
	return out
}
