//go:build mutants

package mutant

import "sync/atomic"

var active atomic.Uint32

// On reports whether the rule that m breaks is broken.
func On(m Mutant) bool { return m != None && Mutant(active.Load()) == m }

// Enable breaks the rule m for the whole process until the returned function
// is called. Tests that use it do not run in parallel.
func Enable(m Mutant) (restore func()) {
	before := active.Swap(uint32(m))
	return func() { active.Store(before) }
}
