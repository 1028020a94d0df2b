package errorbound

import (
	"math/big"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Promise is what a budget's file says about over-admission.
type Promise struct {
	// Window is what it is said of: the file's own, where it has one, else the
	// one asked about.
	Window time.Duration `json:"window" yaml:"window"`
	// Tokens may be admitted above the contract within it.
	Tokens lease.Tokens `json:"tokens" yaml:"tokens"`
}

// Verdict is a budget's bound beside its promise.
type Verdict struct {
	Bound   Bound   `json:"bound" yaml:"bound"`
	Promise Promise `json:"promise" yaml:"promise"`
	// Kept is set when the bound is within the promise.
	Kept bool `json:"kept" yaml:"kept"`
	// Beyond names, largest first, what stands in the way of a promise that is
	// not kept.
	Beyond []Name `json:"beyond,omitempty" yaml:"beyond,omitempty"`
}

// Judge bounds a normalized budget within the window its file speaks of, or w
// where it names none, and says whether the file's promise is kept.
//
// A percentage within a window is a promise of everything that may happen
// there. A number of tokens stands beside what the file itself says: the
// strategy, the local allowance, and the drift and rounding that every bucket
// has; what faults of the deployment add to that breaks it.
func Judge(b policy.Budget, d Deployment, w time.Duration) (Verdict, error) {
	if within := b.OverAdmission.Within; within > 0 {
		w = within
	}
	m, err := check(b, d, w)
	if err != nil {
		return Verdict{}, err
	}
	v := Verdict{Bound: bound(m, m, m.noCut())}
	v.Promise = m.promise(v.Bound)
	v.Kept = v.Bound.Total <= v.Promise.Tokens
	if !v.Kept {
		v.Beyond = m.beyond(v.Bound)
	}
	return v, nil
}

func (m *model) promise(b Bound) Promise {
	if o := m.budget.OverAdmission; o.Within > 0 {
		return Promise{o.Within, floor(part(o.MilliPercent, m.burst, m.rate, o.Within))}
	}
	stated := []Cause{{Tokens: m.statedLocally()}}
	for _, c := range b.Causes {
		switch c.Name {
		case Float, Independence, Drift, Rounding:
			stated = append(stated, c)
		}
	}
	return Promise{m.window, total(stated)}
}

// part is a percentage of a contract within a window.
func part(milliPercent int64, burst lease.Tokens, rate lease.Rate, w time.Duration) *big.Rat {
	return new(big.Rat).Mul(sum(whole(burst), minted(rate, w)), big.NewRat(milliPercent, 100_000))
}

// statedLocally is the local allowance as the file has it: one bucket in each
// region.
func (m *model) statedLocally() lease.Tokens {
	plain := policy.Deployment{Clocks: m.deploy.Clocks}
	stores, _ := m.budget.LocalSurcharge(plain, m.regions, m.localWindow())
	return stores
}

// beyond names the causes that a promise does not cover, or, of a percentage,
// all that make it up.
func (m *model) beyond(b Bound) []Name {
	var causes []Cause
	for _, c := range b.Causes {
		if m.budget.OverAdmission.Within == 0 {
			switch c.Name {
			case Float, Independence, Drift, Rounding:
				continue
			case LocalStores:
				c.Tokens -= m.statedLocally()
			}
		}
		if c.Tokens > 0 {
			causes = append(causes, c)
		}
	}
	return names(largestFirst(causes))
}
