package allocation

import "github.com/ration-dev/ration/lease"

// NextDue returns the earliest governed time at which Sweep has something to
// do with s; 0 for never.
func (s *State) NextDue() lease.Time { return 0 }
