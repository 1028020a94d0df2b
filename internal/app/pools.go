package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
)

// poolSample is what the metrics say about one budget's pool, a quota's
// current window's.
type poolSample struct {
	budget                          string
	available, outstanding, debt, x float64
	local                           float64
}

// pools keeps the last look at the ledger's pools, at most maxBudgetLabels and
// one for all others, so that a scrape costs the database nothing.
type pools struct {
	last atomic.Pointer[[]poolSample]
	now  atomic.Pointer[allocation.Now]
}

// maxPoolPages bounds one look at the ledger, which rests for poolPause between two
// pages: nobody waits for it, and others want the ledger meanwhile.
const (
	maxPoolPages = 40
	poolPage     = 250
	poolPause    = 50 * time.Millisecond
)

// look reads the ledger's pools, the first maxPoolPages pages by name.
func (p *pools) look(ctx context.Context, store allocation.Store) error {
	var samples []poolSample
	other := poolSample{budget: otherBudgets}
	after := ""
	for page := range maxPoolPages {
		if page > 0 {
			if err := sleep(ctx, poolPause); err != nil {
				return err
			}
		}
		states, now, err := store.View(ctx, after, poolPage)
		if err != nil {
			return err
		}
		p.now.Store(&now)
		for i := range states {
			after = states[i].Budget.Name
			s := sampleOf(&states[i])
			if len(samples) < maxBudgetLabels && s.budget != otherBudgets {
				samples = append(samples, s)
			} else {
				other.add(s)
			}
		}
		if len(states) < poolPage {
			break
		}
	}
	if other != (poolSample{budget: otherBudgets}) {
		samples = append(samples, other)
	}
	p.last.Store(&samples)
	return nil
}

func (p *poolSample) add(o poolSample) {
	p.available += o.available
	p.outstanding += o.outstanding
	p.debt += o.debt
	p.x += o.x
	p.local += o.local
}

func sampleOf(s *allocation.State) poolSample {
	out := poolSample{budget: s.Budget.Name}
	if len(s.Pools) == 0 {
		return out
	}
	current := &s.Pools[len(s.Pools)-1]
	out.available = float64(max(current.Available, 0))
	out.outstanding = float64(current.Outstanding)
	out.debt = float64(max(-current.Available, 0))
	out.x = lease.Rate{Tokens: current.X, Per: current.Rate.Per}.PerSecond()
	for i := range s.Pools {
		out.local += float64(s.Pools[i].Totals.Debt)
	}
	return out
}

// each calls emit with one number of every sample.
func (p *pools) each(emit func(float64, ...string), value func(poolSample) float64) {
	samples := p.last.Load()
	if samples == nil {
		return
	}
	for _, s := range *samples {
		emit(value(s), s.budget)
	}
}

// offset is how far the governed clock is behind the database's, in seconds.
func (p *pools) offset() float64 {
	now := p.now.Load()
	if now == nil {
		return 0
	}
	return now.Raw.Sub(now.Governed).Seconds()
}
