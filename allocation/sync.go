package allocation

import "github.com/ration-dev/ration/lease"

// Sync applies one item of region's request to s and answers it.
func Sync(cfg Config, now Now, s *State, region string, it lease.Item) lease.ItemReply {
	return lease.ItemReply{Budget: it.Budget, Version: s.Budget.Version}
}
