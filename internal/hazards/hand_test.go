package hazards_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// hand is an agent process that does one budget's protocol step by step, so
// that something can happen between any two of them. It goes on after that as a
// process would that noticed nothing: what it has in memory it uses, what was
// under way arrives late.
type hand struct {
	store  regionstore.Store
	ledger lease.Source
	budget string

	lump    lease.Incarnation
	report  *lease.Report
	states  []lease.State
	held    regionstore.Part
	until   time.Time
	spent   lease.Tokens
	granted lease.Tokens
	failed  error // the last step's, save that a step may find nothing to do
}

// steps are the protocol in order. The gap before the first and behind the last
// are gaps too.
var steps = []struct {
	name string
	do   func(*hand, context.Context)
}{
	{"open", (*hand).open},
	{"begin", (*hand).begin},
	{"send and commit", (*hand).sync},
	{"send again", (*hand).sync},
	{"reply and install", (*hand).install},
	{"take", (*hand).take},
	{"use and give back", (*hand).use},
	{"return", (*hand).giveReturn},
	{"begin to report", (*hand).begin},
	{"send the report", (*hand).sync},
	{"install its answer", (*hand).install},
	{"take again", (*hand).take},
	{"close", (*hand).close},
	{"begin to close", (*hand).begin},
	{"send the close", (*hand).sync},
	{"install its answer, again", (*hand).install},
}

func (h *hand) open(ctx context.Context) {
	req := regionstore.OpenRequest{Budget: h.budget, LocalNonce: "local-" + h.budget}
	for i := range req.Nonces {
		req.Nonces[i] = lease.Incarnation(fmt.Sprintf("hand-%s-%d", h.budget, i))
	}
	reply, err := h.store.Open(ctx, req)
	h.failed = err
	h.lump = reply.View.Row.Leases[lease.Lump-1].Incarnation
}

func (h *hand) begin(ctx context.Context) {
	reply, err := h.store.Begin(ctx, regionstore.BeginRequest{
		Budget:  h.budget,
		Intents: []regionstore.Intent{{Kind: lease.Lump, Incarnation: h.lump, Want: 40, LowerBeta: -1, Supersede: true}},
	})
	h.failed, h.report = err, nil
	if err == nil && reply.Reports[0].Outcome == regionstore.OK {
		h.report = &reply.Reports[0].Report
	}
}

func (h *hand) sync(ctx context.Context) {
	h.states = nil
	if h.report == nil {
		return
	}
	reply, err := h.ledger.SyncLeases(ctx, lease.SyncRequest{Region: "us", Items: []lease.Item{
		{Budget: h.budget, Leases: []lease.Report{*h.report}, Demand: 100, RTT: time.Millisecond},
	}})
	h.failed = err
	if err != nil || reply.Items[0].Err != nil {
		return
	}
	h.states = reply.Items[0].Leases
	for _, s := range h.states {
		h.granted = max(h.granted, s.Granted)
	}
}

func (h *hand) install(ctx context.Context) {
	_, h.failed = h.store.Install(ctx, regionstore.InstallRequest{Budget: h.budget, States: h.states})
}

func (h *hand) take(ctx context.Context) {
	sent := time.Now()
	reply, err := h.store.Take(ctx, regionstore.TakeRequest{
		Takes: []regionstore.Take{{Budget: h.budget, Cost: 5, Prefetch: 10, Demand: 5}},
	})
	h.failed = err
	if err != nil || !reply.Took {
		return
	}
	h.spent += 5
	for _, p := range reply.Results[0].Parts {
		h.held, h.until = p, sent.Add(p.Remains)
	}
}

func (h *hand) use(ctx context.Context) {
	if h.held.Tokens < 10 || !time.Now().Before(h.until) {
		return
	}
	h.spent += 4
	_, h.failed = h.store.Settle(ctx, []regionstore.Settle{{
		Budget: h.budget, Kind: h.held.Kind, Incarnation: h.held.Incarnation, Generation: h.held.Generation, Used: 4, Back: 6,
	}})
	h.held = regionstore.Part{}
}

func (h *hand) giveReturn(ctx context.Context) {
	_, h.failed = h.store.Return(ctx, regionstore.ReturnRequest{Budget: h.budget, Incarnation: h.lump, Keep: 20})
}

func (h *hand) close(ctx context.Context) {
	_, h.failed = h.store.Close(ctx, regionstore.CloseRequest{Budget: h.budget, Kind: lease.Lump, Incarnation: h.lump})
}
