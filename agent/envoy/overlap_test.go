package envoy

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// attentive looks whether a check is the same after it was decided as before.
type attentive struct {
	*live
	changed atomic.Int64
}

func (a *attentive) Check(ctx context.Context, c agent.Check) (agent.Answer, error) {
	write := func() string { return fmt.Sprintf("%q %q %d %v", c.Descriptors, c.Budgets, c.Cost, c.Costs) }
	before := write()
	runtime.Gosched()
	answer, err := a.live.Check(ctx, c)
	runtime.Gosched()
	if write() != before {
		a.changed.Add(1)
	}
	return answer, err
}

// Of calls that overlap each is answered what it asked and charged for that,
// whether it waits for tokens, is left by its caller, or refused meanwhile. Seen
// to catch: a request given back before its check was decided, a reply before it
// was sent.
func TestCallsThatOverlapAreKeptApart(t *testing.T) {
	const callers, calls = 8, 100
	empty := matching(policy.Budget{
		Name: "empty", Strategy: policy.Static, Regions: []policy.Region{{Name: "us", Weight: 1}}, Wait: 20 * time.Millisecond,
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1, Per: time.Hour}, Burst: 1},
	}, "wait", "y")
	budgets := []policy.Budget{empty}
	for i := range callers {
		budgets = append(budgets,
			once(fmt.Sprint("a/", i), 10_000, "caller", fmt.Sprint(i)), once(fmt.Sprint("b/", i), 20_000, "also", fmt.Sprint(i)))
	}
	a := &attentive{live: newLive(t, budgets...)}
	c, _ := serve(t, a)
	ask(t, c, asking(1, descriptor("wait", "y"))) // its only token
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			me, others := fmt.Sprint(i), strings.Repeat("x", 100*i)
			for n := range calls {
				left := uint32(10_000 - 3*(n+1))
				r, err := c.ShouldRateLimit(t.Context(), asking(3,
					descriptor("others", others, "caller", me), descriptor("nothing", me), adding(5, descriptor("also", me))))
				if err != nil {
					t.Error(err)
					return
				}
				var names []string
				for _, s := range r.GetStatuses() {
					names = append(names, s.GetCurrentLimit().GetName())
				}
				want, got := []string{"a/" + me, "", "b/" + me}, r.GetStatuses()[0].GetLimitRemaining()
				if !slices.Equal(names, want) || got != left && got != left-1 { // a call that was left may still hold one
					t.Errorf("%v, want %v and %d left", r, want, left)
				}
				switch n % 20 {
				case 0:
					ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
					_, _ = c.ShouldRateLimit(ctx, asking(1, descriptor("wait", "y", "caller", me), descriptor("caller", "nobody")))
					cancel()
				case 1:
					if _, err := c.ShouldRateLimit(t.Context(), asking(1, descriptor("caller", me), descriptor())); status.Code(err) != codes.InvalidArgument {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	if n := a.changed.Load(); n > 0 {
		t.Errorf("%d checks changed while they were decided", n)
	}
	for i := range callers {
		if x, y := a.left(t, fmt.Sprint("a/", i)), a.left(t, fmt.Sprint("b/", i)); x != 10_000-3*calls || y != 20_000-5*calls {
			t.Errorf("%d and %d left for %d", x, y, i)
		}
	}
}
