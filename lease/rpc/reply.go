package rpc

import (
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

func itemReplyToProto(r *lease.ItemReply) *rationv1.SyncItemReply {
	m := &rationv1.SyncItemReply{
		Budget:  r.Budget,
		Version: r.Version,
		Leases:  make([]*rationv1.LeaseState, len(r.Leases)),
		Error:   errorToProto(r.Err),
	}
	for i := range r.Leases {
		m.Leases[i] = stateToProto(&r.Leases[i])
	}
	return m
}

func stateToProto(s *lease.State) *rationv1.LeaseState {
	return &rationv1.LeaseState{
		Kind:         rationv1.Kind(s.Kind),
		Incarnation:  string(s.Incarnation),
		Seq:          s.Seq,
		Status:       rationv1.LeaseStatus(s.Status),
		Granted:      int64(s.Granted),
		X:            rateToProto(s.X),
		Beta:         int64(s.Beta),
		TtlUs:        micros(s.TTL),
		Keep:         int64(s.Keep),
		Shortage:     rationv1.Shortage(s.Short),
		RetryAfterUs: micros(s.RetryAfter),
		Holder:       string(s.Holder),
	}
}

// replyFromProto checks that the reply answers the request item by item: what
// does not is a reply to something else.
func replyFromProto(m *rationv1.SyncLeasesResponse, req lease.SyncRequest) (lease.SyncReply, error) {
	if len(m.GetItems()) != len(req.Items) {
		return lease.SyncReply{}, lease.Errorf(lease.Unavailable, "items",
			"the reply has %d items for %d requested", len(m.GetItems()), len(req.Items))
	}
	reply := lease.SyncReply{Items: make([]lease.ItemReply, len(req.Items))}
	for i, item := range m.GetItems() {
		reply.Items[i] = itemReplyFromProto(item, req.Items[i].Budget, i)
	}
	return reply, nil
}

// itemReplyFromProto makes an item that it cannot read fail alone. The item
// may have been applied, so its error says that the outcome is unknown.
func itemReplyFromProto(m *rationv1.SyncItemReply, budget string, i int) lease.ItemReply {
	var d decoder
	reply := lease.ItemReply{Budget: m.GetBudget(), Version: m.GetVersion(), Err: errorFromProto(m.GetError())}
	if m.GetBudget() != budget {
		d.refuse("the reply names another budget than the request", "items[%d].budget", i)
	}
	if n := len(m.GetLeases()); n > 0 && reply.Err == nil {
		reply.Leases = make([]lease.State, n)
		for j, state := range m.GetLeases() {
			reply.Leases[j] = d.state(state, i, j)
		}
	}
	if d.err != nil {
		d.err.Code = lease.Unavailable
		return lease.ItemReply{Budget: budget, Err: d.err}
	}
	return reply
}

func (d *decoder) state(m *rationv1.LeaseState, i, j int) lease.State {
	if s := m.GetStatus(); s < 1 || s > rationv1.LeaseStatus(lease.NotPlanned) {
		d.refuse(unknown(s), "items[%d].leases[%d].status", i, j)
	}
	if s := m.GetShortage(); s < 0 || s > rationv1.Shortage(lease.LimitZero) {
		d.refuse(unknown(s), "items[%d].leases[%d].shortage", i, j)
	}
	return lease.State{
		Kind:        d.kind(m.GetKind(), "items[%d].leases[%d].kind", i, j),
		Incarnation: lease.Incarnation(m.GetIncarnation()),
		Seq:         m.GetSeq(),
		Status:      lease.Status(m.GetStatus()),
		Granted:     lease.Tokens(m.GetGranted()),
		X:           d.rate(m.GetX(), "items[%d].leases[%d].x", i, j),
		Beta:        lease.Tokens(m.GetBeta()),
		TTL:         d.duration(m.GetTtlUs(), "items[%d].leases[%d].ttl_us", i, j),
		Keep:        lease.Tokens(m.GetKeep()),
		Short:       lease.Shortage(m.GetShortage()),
		RetryAfter:  d.duration(m.GetRetryAfterUs(), "items[%d].leases[%d].retry_after_us", i, j),
		Holder:      lease.Incarnation(m.GetHolder()),
	}
}
