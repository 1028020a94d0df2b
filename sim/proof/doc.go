// Package proof attacks the bounds of errorbound with the simulator, which
// runs the production code of allocation, agent and regionstore.
//
// Its tests are the package. Random deployments with random budgets, loads and
// schedules of faults must never admit more than errorbound says, keep every
// invariant, and leave no token above a contract without a cause. Committed
// scenarios come close to each cause's bound, so that a bound that is too wide
// shows as well. Named scenarios play one fault each, and the mutants of the
// protocol's rules must all die.
//
// A random run is made of its seed alone. One that fails prints the command
// that plays it again:
//
//	go test ./sim/proof -run TestRandomRuns -seed N -v
package proof
