package memory

import (
	"context"
	"testing"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

func apply(t *testing.T, s *Store, b policy.Budget) {
	t.Helper()
	err := s.Apply(context.Background(), []string{b.Name}, func(now allocation.Now, _ []*allocation.State) ([]*allocation.State, error) {
		return []*allocation.State{allocation.NewState(now, b)}, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Seen to fail when Restore keeps the entries, the changes or the version that
// came after the snapshot.
func TestRestoreGoesOnFromTheSnapshot(t *testing.T) {
	s := New(func() lease.Time { return 5_000_000 })
	apply(t, s, policy.Budget{Name: "t/a", Contract: policy.Contract{Burst: 10}})
	p := s.Snapshot()
	apply(t, s, policy.Budget{Name: "t/a", Contract: policy.Contract{Burst: 99}})
	apply(t, s, policy.Budget{Name: "t/b", Contract: policy.Contract{Burst: 1}})
	s.Restore(p)
	if s.Peek("t/b") != nil {
		t.Error("a budget that came after the snapshot is there")
	}
	if got := s.Peek("t/a").Budget.Contract.Burst; got != 10 {
		t.Errorf("burst %d, want the snapshot's", got)
	}
	list, version, err := s.Budgets(context.Background(), 0, 10)
	if err != nil || len(list) != 1 || version != 1 {
		t.Errorf("listed %d budgets up to version %d, %v", len(list), version, err)
	}
	apply(t, s, policy.Budget{Name: "t/c"})
	if got := s.Peek("t/c").Budget.Version; got != 2 {
		t.Errorf("the next version is %d", got)
	}
}
