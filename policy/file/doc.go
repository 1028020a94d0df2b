// Package file reads and writes budgets as YAML:
//
//	budgets:
//	  - name: acme/search
//	    match: {tenant: acme, endpoint: search}
//	    limit: {rate: 1000/s, burst: 2000}        # or {quota: 1000000, per: month, zone: UTC}
//	    strategy: dynamic                         # static | independent | dynamic
//	    over_admission: {percent: 5, within: 2s}  # or {tokens: 0}, the default
//	    regions: {us: {weight: 60, floor: 100/s}, eu: {weight: 40, reserve: {rate: 20/s, burst: 20}}}
//	    lease: {ttl: 10s, share_ttl: 1h}          # defaults are derived
//	    on_failure: {mode: allow_local, rate: 20/s, burst: 20}   # or {mode: deny}
//	    on_store_loss: regrant                    # or wait
//	    wait: 0s                                  # at most 300ms
//
// What is read is taken whole or not at all: every fault of every file is
// reported at once, with its file, line and column, and then no budget is
// returned. Unknown fields are faults. A file may hold several documents,
// anchors, aliases, and merge keys.
package file
