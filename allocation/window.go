package allocation

import (
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// window returns the calendar window of q that the raw time lies in. Budgets
// are validated before they come here; should a zone be unknown all the same,
// as on a machine with other zone data, its windows are UTC's, so that the
// ledger goes on.
func window(q policy.Quota, raw lease.Time) (start, end lease.Time) {
	for _, zone := range []string{q.Zone, "UTC"} {
		if start, end, err := policy.Window(zone, q.Per, raw); err == nil {
			return start, end
		}
	}
	return raw, raw.Add(24 * time.Hour)
}
