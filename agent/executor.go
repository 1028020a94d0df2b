package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
	"github.com/ration-dev/ration/regionstore"
)

// Executor does the Keeper's effects against a store, a ledger and a Decider,
// one at a time per call; the Runner calls it from several goroutines, a
// simulator from its own loop. Safe for concurrent use.
type Executor struct {
	Decider  *Decider
	Leases   lease.Source
	Policies policy.Source
	// StoreTimeout bounds each store call of the Keeper; default 250 ms: it can
	// wait longer than a decision. Negative for none.
	StoreTimeout time.Duration
}

// Do does one effect and returns the event that answers it, or nil.
func (x *Executor) Do(ctx context.Context, effect Effect) Event {
	switch f := effect.(type) {
	case ListBudgets:
		list, err := x.Policies.ListBudgets(ctx, f.Since)
		return Listed{List: list, Err: err}
	case SendSync:
		return x.send(ctx, f)
	case AskUsed:
		return Used{Budgets: x.Decider.Used(), Locals: x.Decider.Locals()}
	case SetBudgets:
		x.Decider.setBudgets(f.Budgets)
	case Tell:
		x.Decider.Tell(f.Budget, f.Hint, f.Arrived)
	default:
		return x.onStore(ctx, effect)
	}
	return nil
}

// Failed is the event that stands for an effect that panicked or was never
// done.
func Failed(effect Effect, err error) Event {
	switch f := effect.(type) {
	case ListBudgets:
		return Listed{Err: err}
	case ReadRows:
		return RowsRead{Budgets: f.Budgets, Err: err}
	case OpenRow:
		return RowOpened{Budget: f.Request.Budget, Err: err}
	case BeginSync:
		return SyncBegun{Budget: f.Request.Budget, Err: err}
	case SendSync:
		return SyncDone{ID: f.ID, Err: err}
	case InstallStates:
		return StatesInstalled{Budget: f.Budget, Err: err}
	case ReturnTokens:
		return RowChanged{Budget: f.Request.Budget, Err: err}
	case CloseLease:
		return RowChanged{Budget: f.Request.Budget, Err: err}
	case ListInUse:
		return InUse{Err: err}
	case ListDisused:
		return Disused{Err: err}
	case Lead:
		return Led{Err: err}
	case Leave:
		return Left{Err: err}
	case AskUsed:
		return Used{}
	}
	return nil
}

func (x *Executor) send(ctx context.Context, f SendSync) Event {
	ctx, cancel := context.WithTimeout(ctx, f.Timeout)
	defer cancel()
	d := x.Decider
	start := d.opt.Now()
	reply, err := x.Leases.SyncLeases(ctx, lease.SyncRequest{Region: d.opt.Region, Items: f.Items})
	took := d.opt.Now() - start
	d.opt.Observer.Synced(took, len(f.Items), err)
	return SyncDone{ID: f.ID, Reply: reply, Took: took, Err: err}
}

// onStore does the effects on the region's store.
func (x *Executor) onStore(ctx context.Context, effect Effect) Event {
	timeout := x.StoreTimeout
	if timeout == 0 {
		timeout = 250 * time.Millisecond
	}
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	store, process := x.Decider.opt.Store, x.Decider.opt.Process
	switch f := effect.(type) {
	case ReadRows:
		return x.read(ctx, f)
	case OpenRow, BeginSync, InstallStates, ReturnTokens, CloseLease:
		return x.onRow(ctx, effect)
	case TouchBudgets:
		_ = store.Touch(ctx, f.Budgets, f.TTL) // said again soon
	case ListInUse:
		budgets, err := store.InUse(ctx)
		return InUse{Budgets: budgets, Err: err}
	case ListDisused:
		budgets, err := store.Disused(ctx, f.Within)
		return Disused{Budgets: budgets, Err: err}
	case Lead:
		ok, err := store.Lead(ctx, process, f.TTL)
		return Led{OK: ok && err == nil, Err: err}
	case Unlead:
		_ = store.Unlead(ctx, process) // expires by itself
	case Join:
		_, _ = store.Join(ctx, process, f.TTL) // said again soon
	case Leave:
		n, err := store.Leave(ctx, process)
		return Left{Processes: n, Err: err}
	}
	return nil
}

// onRow does one step on one row, with the store's clock bounded as this
// process knows it.
func (x *Executor) onRow(ctx context.Context, effect Effect) Event {
	store := x.Decider.opt.Store
	switch f := effect.(type) {
	case OpenRow:
		c := x.row(f.Request.Budget)
		f.Request.Now = c.bound
		reply, err := store.Open(ctx, f.Request)
		x.done(&c, "open", reply.View.Time, reply.View.Outcome, err)
		return RowOpened{Budget: f.Request.Budget, Reply: &reply, Err: err}
	case BeginSync:
		c := x.row(f.Request.Budget)
		f.Request.Now = c.bound
		reply, err := store.Begin(ctx, f.Request)
		x.done(&c, "begin", reply.View.Time, reply.View.Outcome, err)
		return SyncBegun{Budget: f.Request.Budget, Reply: &reply, Err: err}
	case InstallStates:
		c := x.row(f.Budget)
		reply, err := store.Install(ctx, regionstore.InstallRequest{Budget: f.Budget, States: f.States, Now: c.bound})
		x.done(&c, "install", reply.View.Time, reply.View.Outcome, err)
		return StatesInstalled{Budget: f.Budget, Reply: &reply, Err: err}
	case ReturnTokens:
		c := x.row(f.Request.Budget)
		f.Request.Now = c.bound
		view, err := store.Return(ctx, f.Request)
		x.done(&c, "return", view.Time, view.Outcome, err)
		return RowChanged{Budget: f.Request.Budget, View: &view, Err: err}
	case CloseLease:
		c := x.row(f.Request.Budget)
		f.Request.Now = c.bound
		view, err := store.Close(ctx, f.Request)
		x.done(&c, "close", view.Time, view.Outcome, err)
		return RowChanged{Budget: f.Request.Budget, View: &view, Err: err}
	}
	return nil
}

// rowCall is a call on one row: how the store's clock is bounded for it, and
// what is needed to book its outcome.
type rowCall struct {
	entry *entry
	start callStart
	bound regionstore.Now
}

func (x *Executor) row(budget string) rowCall {
	d := x.Decider
	c := rowCall{start: d.send(budget), entry: d.entry(budget)}
	if c.entry != nil {
		c.bound = d.bound(c.entry, c.start)
	}
	return c
}

// done books a call's outcome and the store's time that it told.
func (x *Executor) done(c *rowCall, step string, t lease.Time, o regionstore.Outcome, err error) {
	d := x.Decider
	got := d.opt.Now()
	d.opt.Observer.StoreCalled(got-c.start.at, step, err)
	if err != nil {
		d.stats.StoreErrors.Add(1)
		return
	}
	d.saw(c.entry, c.start, got, t, o)
}

func (x *Executor) read(ctx context.Context, f ReadRows) Event {
	d := x.Decider
	sent := d.opt.Now()
	calls := make([]callStart, len(f.Budgets))
	now := make([]regionstore.Now, len(f.Budgets))
	for i, b := range f.Budgets {
		calls[i] = d.send(b)
		if e := d.entry(b); e != nil {
			now[i] = d.bound(e, calls[i])
		}
	}
	views, err := d.opt.Store.Read(ctx, f.Budgets, now)
	got := d.opt.Now()
	d.opt.Observer.StoreCalled(got-sent, "read", err)
	if err != nil {
		d.stats.StoreErrors.Add(1)
		return RowsRead{Budgets: f.Budgets, Err: err}
	}
	for i, b := range f.Budgets {
		d.saw(d.entry(b), calls[i], got, views[i].Time, views[i].Outcome)
	}
	return RowsRead{Budgets: f.Budgets, Views: views}
}
