// Package scenario reads the files that say what is simulated, and what must
// come out:
//
//	version: 1
//	extends: base.yaml                # fields here replace those of that file
//	title: US fails over to EU at peak
//	question: Does EU get the tokens that US no longer asks for, and how soon?
//	duration: 10m
//	warmup: 5s                        # what comes before is not measured
//	mode: request                     # or bulk, with step: 100ms
//	seeds: [1, 2, 3, 4, 5]            # or runs: 5
//	windows: [1s, 10s]                # the W in which over-admission is measured
//	topology:
//	  regions:
//	    us: {rtt: 20ms, agents: 3}
//	    eu: {up: {delay: 40ms, jitter: 5ms, loss: 1%}, down: {delay: 45ms}}
//	  allocators: 2
//	budgets:                          # as in a budget file
//	  - {name: acme/search, limit: {rate: 1000/s, burst: 2000}}
//	workloads:
//	  - {name: us, region: us, budget: acme/search, rate: 700/s}
//	changes:
//	  - {at: 5m, apply: [{name: acme/search, limit: {rate: 500/s, burst: 1000}}]}
//	faults:
//	  - {at: 4m, for: 2m, kind: partition, region: us}
//	expect:
//	  - {measure: utilisation, at_least: 99.5%}
//	  - {measure: over_admission, window: 10s, at_most: 0}
//
// A file that extends another replaces its top-level fields, except that
// topology is merged field by field, a budget's fields replace those of the
// budget of its name, and a workload replaces that of its name. A budget with "repeat: 500" stands for 500 of
// them, whose names have their number in place of {n}.
//
// In bulk, agents look at demand every second step unless sync_every says
// otherwise; a burst should be several steps' worth of the rate, for a wallet
// must hold what comes in a step.
//
// Every fault of a file is reported at once, with its file, line and column,
// as with budget files. So are scenarios that could not be run in reasonable
// memory or time.
package scenario
