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

// Wallets returns the wallets of the budgets that the region uses, sorted by
// name; nil when ctx ends or the Runner does. For metrics and displays.
func (r *Runner) Wallets(ctx context.Context) []Wallet {
	answer := make(chan []Wallet, 1)
	select {
	case r.asks <- func(k *Keeper) { answer <- k.wallets() }:
		return <-answer
	case <-r.done:
	case <-ctx.Done():
	}
	return nil
}

func (k *Keeper) wallets() []Wallet {
	var all []Wallet
	for name, w := range k.wards {
		one := Wallet{Budget: name}
		held := false
		for kind := range one.Live {
			if w.livesUntil[kind] > k.now {
				one.Live[kind], one.Alive[kind], held = w.held[kind], true, true
			}
		}
		if held {
			all = append(all, one)
		}
	}
	slices.SortFunc(all, func(a, b Wallet) int { return strings.Compare(a.Budget, b.Budget) })
	return all
}
