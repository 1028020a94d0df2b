package sim

import (
	"maps"
	"slices"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Messages cross the network as deep copies: whoever changes one later
// changes his own.

func cloneRequest(r lease.SyncRequest) lease.SyncRequest {
	r.Items = slices.Clone(r.Items)
	for i := range r.Items {
		r.Items[i].Leases = slices.Clone(r.Items[i].Leases)
		r.Items[i].Local = slices.Clone(r.Items[i].Local)
	}
	return r
}

func cloneReply(r lease.SyncReply) lease.SyncReply {
	r.Items = slices.Clone(r.Items)
	for i := range r.Items {
		r.Items[i].Leases = slices.Clone(r.Items[i].Leases)
		if err := r.Items[i].Err; err != nil {
			copied := *err
			r.Items[i].Err = &copied
		}
	}
	return r
}

func cloneList(l policy.List) policy.List {
	l.Budgets = slices.Clone(l.Budgets)
	for i := range l.Budgets {
		l.Budgets[i].Match = maps.Clone(l.Budgets[i].Match)
		l.Budgets[i].Regions = slices.Clone(l.Budgets[i].Regions)
	}
	return l
}
