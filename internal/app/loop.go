package app

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"runtime/debug"
	"sync/atomic"
	"time"
)

// every calls do at once and then about once per period, a tenth earlier or
// later, so that replicas do not act in step, until ctx ends. A panic is
// counted and logged, and the loop goes on.
func every(ctx context.Context, period time.Duration, panics *atomic.Int64, log *slog.Logger, do func(context.Context)) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		guarded(ctx, panics, log, do)
		timer.Reset(period - period/10 + rand.N(period/5+1))
	}
}

func guarded(ctx context.Context, panics *atomic.Int64, log *slog.Logger, do func(context.Context)) {
	defer func() {
		if v := recover(); v != nil {
			panics.Add(1)
			log.Error("a background step panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	do(ctx)
}
