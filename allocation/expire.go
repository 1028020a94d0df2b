package allocation

// Sweep does what time alone demands: it rolls windows, expires leases whose
// reclaim has come, and purges what was kept long enough.
func Sweep(cfg Config, now Now, s *State) {}
