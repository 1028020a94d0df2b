package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// outage notes whether something outside answers, and says once that it does
// not and once that it does again, however many calls that concerns. saw may be
// called concurrently, look by one goroutine.
type outage struct {
	what string
	// now is a monotonic clock from any origin, above 0.
	now      func() time.Duration
	failed   atomic.Pointer[failure]
	answered atomic.Int64 // when a call last succeeded, in nanoseconds; 0 for never
	told     bool
}

// failure is the last call that failed.
type failure struct {
	at  time.Duration
	err error
}

// calm is how long nothing must have failed before it answers again: with some
// of several servers away, every other call fails.
const calm = 5 * time.Second

func (o *outage) saw(err error) {
	if err != nil {
		o.failed.Store(&failure{o.now(), err})
		return
	}
	o.answered.Store(int64(o.now()))
}

// last is why the latest call failed; nil if it did not.
func (o *outage) last() error {
	if f := o.failed.Load(); f != nil && int64(f.at) >= o.answered.Load() {
		return f.err
	}
	return nil
}

// lasts reports whether nothing answered for d, up to the latest failure.
func (o *outage) lasts(d time.Duration) bool {
	return o.last() != nil && o.now()-time.Duration(o.answered.Load()) >= d
}

// within reports whether a call failed in the last d, even if others did not.
func (o *outage) within(d time.Duration) bool {
	f := o.failed.Load()
	return f != nil && o.now()-f.at <= d
}

// look says what changed. down is whether failures are to be called an outage.
func (o *outage) look(log *slog.Logger, down bool) {
	f := o.failed.Load()
	switch {
	case f == nil:
	case down && !o.told:
		o.told = true
		problem := " does not answer"
		if lease.CodeOf(f.err) == lease.Unauthenticated {
			problem = " refuses the token"
		}
		log.Warn(o.what+problem, "error", f.err)
	case o.told && o.last() == nil && o.now()-f.at >= calm:
		o.told = false
		log.Info(o.what + " answers again")
	}
}

// watched is the allocator as an agent reaches it, with its outages noted.
type watched struct {
	leases   lease.Source
	policies policy.Source
	outage   *outage
}

func (w watched) SyncLeases(ctx context.Context, req lease.SyncRequest) (lease.SyncReply, error) {
	reply, err := w.leases.SyncLeases(ctx, req)
	w.saw(ctx, err)
	return reply, err
}

func (w watched) ListBudgets(ctx context.Context, since uint64) (policy.List, error) {
	list, err := w.policies.ListBudgets(ctx, since)
	w.saw(ctx, err)
	return list, err
}

// saw leaves out what this process itself gave up, as it does when it ends.
func (w watched) saw(ctx context.Context, err error) {
	if !errors.Is(ctx.Err(), context.Canceled) {
		w.outage.saw(err)
	}
}
