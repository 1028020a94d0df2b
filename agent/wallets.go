package agent

import (
	"context"
	"slices"
	"strings"

	"github.com/ration-dev/ration/lease"
)

// Wallet is what a process knows of the region's wallet for one budget, as of
// its last look at the row; processes that do not lead look less often.
type Wallet struct {
	Budget string
	// Live has, per kind, the tokens that could be taken; Alive says which
	// leases could be spent.
	Live  [lease.Kinds]lease.Tokens
	Alive [lease.Kinds]bool
}

// Wallets returns the wallets of the budgets that the region uses: the first most of
// them by name, sorted, and the sum of all others, without a name. ok is false, and
// the rest empty, when ctx or the Runner ended first. For metrics and displays.
func (r *Runner) Wallets(ctx context.Context, most int) (first []Wallet, others Wallet, ok bool) {
	answer := make(chan struct{})
	ask := func(k *Keeper) {
		first, others = k.wallets(most)
		close(answer)
	}
	select {
	case r.asks <- ask:
		<-answer
		return first, others, true
	case <-r.done:
	case <-ctx.Done():
	}
	return nil, Wallet{}, false
}

// wallets does not sort very many names to find the first few: each that comes
// behind the first so many yet is summed at once.
func (k *Keeper) wallets(most int) (first []Wallet, others Wallet) {
	last := "" // none behind this name is among the first
	keepFirst := func() {
		slices.SortFunc(first, func(a, b Wallet) int { return strings.Compare(a.Budget, b.Budget) })
		if len(first) <= most {
			return
		}
		for i := range first[most:] {
			others.Add(&first[most+i])
		}
		last, first = first[most].Budget, first[:most]
	}
	for name, w := range k.wards {
		one := Wallet{Budget: name}
		for kind := range one.Live {
			if w.livesUntil[kind] > k.now {
				one.Live[kind], one.Alive[kind] = w.held[kind], true
			}
		}
		switch {
		case one.Alive == [lease.Kinds]bool{}:
		case last != "" && name > last:
			others.Add(&one)
		default:
			if first = append(first, one); len(first) == 2*most+1 {
				keepFirst()
			}
		}
	}
	keepFirst()
	return first, others
}

// Add adds what o has to w.
func (w *Wallet) Add(o *Wallet) {
	for kind := range w.Live {
		w.Live[kind] += o.Live[kind]
		w.Alive[kind] = w.Alive[kind] || o.Alive[kind]
	}
}
