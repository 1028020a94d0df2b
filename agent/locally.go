package agent

import (
	"context"
	"time"

	"github.com/ration-dev/ration/regionstore"
)

// takeLocal admits l's cost from the budget's local allowance: the region's one
// bucket in the store or, when the store is down, this process's part of it.
// Otherwise it says when the cost could pass; not above 0 if unknown.
func (d *Decider) takeLocal(ctx context.Context, l *lot) (ok bool, retry time.Duration) {
	e, cost := l.entry, l.cost
	e.lock()
	credited := e.local != nil && e.local.takeCredit(cost)
	e.unlock()
	if credited {
		return true, 0
	}
	if !l.down {
		reply, err := d.takeLocalFromStore(ctx, l)
		if err == nil {
			if reply.Outcome == regionstore.OK {
				d.stats.LocalStore.Add(int64(cost))
			}
			return reply.Outcome == regionstore.OK, reply.RetryIn
		}
		l.down = true
	}
	e.lock()
	defer e.unlock()
	primary := d.opt.Store.Primary(l.policy.Name)
	bucket := e.allowance()
	bucket.outage(primary, d.primary.answered(primary))
	ok, retry = bucket.take(l.policy.OnFailure, int64(d.opt.MaxAgents), cost, d.opt.Now())
	if ok {
		d.stats.LocalProcess.Add(int64(cost))
	}
	return ok, retry
}

func (d *Decider) takeLocalFromStore(ctx context.Context, l *lot) (reply regionstore.LocalReply, err error) {
	s := d.send(l.policy.Name)
	req := regionstore.LocalRequest{
		Budget: l.policy.Name, Cost: l.cost,
		Rate: l.policy.OnFailure.Rate, Burst: l.policy.OnFailure.Burst,
		Now: d.bound(l.entry, s),
	}
	err = d.call(ctx, s.primary, "take_local", func(ctx context.Context) error {
		reply, err = d.opt.Store.TakeLocal(ctx, req)
		return err
	})
	if err == nil {
		d.saw(l.entry, s, d.opt.Now(), reply.Time, reply.Outcome)
	}
	return reply, err
}

// creditLocal gives back what was admitted locally for a decision that was
// then refused. The totals stay, so that none ever decreases; the credit is
// spent before anything else.
func (d *Decider) creditLocal(lots []*lot) {
	for _, l := range lots {
		l.entry.lock()
		l.entry.allowance().credit += l.cost
		l.entry.unlock()
	}
}
