package allocation

import "github.com/ration-dev/ration/policy"

// NewState returns the state of a budget that the ledger has never known, its
// pool full.
func NewState(now Now, b policy.Budget) *State { return &State{Budget: b} }

// SetBudget puts b in force, and reports whether that changed anything. A
// deleted b ends the budget and keeps its contract on record.
func (s *State) SetBudget(cfg Config, now Now, b policy.Budget) (changed bool) { return false }
