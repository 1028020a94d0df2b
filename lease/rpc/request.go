package rpc

import (
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

func requestToProto(req lease.SyncRequest) *rationv1.SyncLeasesRequest {
	m := &rationv1.SyncLeasesRequest{Region: req.Region, Items: make([]*rationv1.SyncItem, len(req.Items))}
	for i := range req.Items {
		m.Items[i] = itemToProto(&req.Items[i])
	}
	return m
}

func itemToProto(item *lease.Item) *rationv1.SyncItem {
	m := &rationv1.SyncItem{
		Budget:      item.Budget,
		Leases:      make([]*rationv1.LeaseReport, len(item.Leases)),
		Demand:      item.Demand,
		DemandTotal: int64(item.DemandTotal),
		Local:       make([]*rationv1.LocalUse, len(item.Local)),
		Waiting:     int64(item.Waiting),
		RttUs:       micros(item.RTT),
	}
	for i := range item.Leases {
		m.Leases[i] = reportToProto(&item.Leases[i])
	}
	for i, use := range item.Local {
		m.Local[i] = &rationv1.LocalUse{Source: use.Source, Total: int64(use.Total)}
	}
	return m
}

func reportToProto(r *lease.Report) *rationv1.LeaseReport {
	return &rationv1.LeaseReport{
		Kind:        rationv1.Kind(r.Kind),
		Incarnation: string(r.Incarnation),
		Seq:         r.Seq,
		Used:        int64(r.Used),
		Returned:    int64(r.Returned),
		X:           rateToProto(r.X),
		Beta:        int64(r.Beta),
		Prefetched:  int64(r.Prefetched),
		Closed:      r.Closed,
		Want:        int64(r.Want),
		Regrant:     string(r.Regrant),
		Granted:     int64(r.Granted),
	}
}

// itemFromProto converts item number i of a request. It refuses lists that are
// too long before it makes room for them.
func itemFromProto(m *rationv1.SyncItem, i int) (lease.Item, *lease.Error) {
	var d decoder
	d.atMost(lease.Kinds, len(m.GetLeases()), "items[%d].leases", i)
	d.atMost(lease.MaxLocal, len(m.GetLocal()), "items[%d].local", i)
	if d.err != nil {
		return lease.Item{}, d.err
	}
	item := lease.Item{
		Budget:      m.GetBudget(),
		Demand:      m.GetDemand(),
		DemandTotal: lease.Tokens(m.GetDemandTotal()),
		Waiting:     lease.Tokens(m.GetWaiting()),
		RTT:         d.duration(m.GetRttUs(), "items[%d].rtt_us", i),
	}
	if n := len(m.GetLeases()); n > 0 {
		item.Leases = make([]lease.Report, n)
	}
	for j, report := range m.GetLeases() {
		item.Leases[j] = lease.Report{
			Kind:        d.kind(report.GetKind(), "items[%d].leases[%d].kind", i, j),
			Incarnation: lease.Incarnation(report.GetIncarnation()),
			Seq:         report.GetSeq(),
			Used:        lease.Tokens(report.GetUsed()),
			Returned:    lease.Tokens(report.GetReturned()),
			X:           d.rate(report.GetX(), "items[%d].leases[%d].x", i, j),
			Beta:        lease.Tokens(report.GetBeta()),
			Prefetched:  lease.Tokens(report.GetPrefetched()),
			Closed:      report.GetClosed(),
			Want:        lease.Tokens(report.GetWant()),
			Regrant:     lease.Incarnation(report.GetRegrant()),
			Granted:     lease.Tokens(report.GetGranted()),
		}
	}
	if n := len(m.GetLocal()); n > 0 {
		item.Local = make([]lease.LocalUse, n)
	}
	for j, use := range m.GetLocal() {
		item.Local[j] = lease.LocalUse{Source: use.GetSource(), Total: lease.Tokens(use.GetTotal())}
	}
	return item, d.err
}
