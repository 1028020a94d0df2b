package agent

import (
	"context"
	"testing"

	"github.com/ration-dev/ration/lease"
)

// What a decision leaves behind while a flush finds nothing to do is flushed all
// the same, a little later. Seen to catch: quiet budgets that are never looked at.
func TestAFlushMissesNothingForLong(t *testing.T) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 1000, lease.State{})
	ctx, e := context.Background(), b.decider.entry("acme/x")
	b.decider.Flush(ctx, false)
	b.decider.touch(e, b.now)
	b.decider.refresh(e, b.now) // a flush, as the decision begins
	remembering(e).offered = 50
	told := func() lease.Tokens { return b.view("acme/x").Row.DemandTotal }
	b.now += flushEvery
	if b.decider.Flush(ctx, false); told() != 0 {
		t.Fatal("a flush looked at a quiet budget")
	}
	for range flushQuietEvery / flushEvery {
		b.now += flushEvery
		b.decider.Flush(ctx, false)
	}
	if told() != 50 {
		t.Errorf("told of a demand of %d", told())
	}
}
