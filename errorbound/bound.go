package errorbound

import (
	"math/big"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Name identifies a Cause.
type Name string

// The causes of over-admission.
const (
	Float          Name = "float"
	Drift          Name = "clock drift"
	LedgerStep     Name = "step of the ledger's clock"
	StoreStep      Name = "step of a store's clock"
	Rounding       Name = "rounding of minting"
	Independence   Name = "independent regions"
	LimitCut       Name = "limit that was cut"
	LocalStores    Name = "local allowance in stores"
	LocalProcesses Name = "local allowance in processes"
	Suspension     Name = "suspended processes"
	StaleStore     Name = "store that comes back old"
	RegrantedShare Name = "regranted shares"
	LedgerLoss     Name = "ledger that loses commits"
	Crash          Name = "crashed holder"
	Duplicate      Name = "repeated messages"
	LateReport     Name = "late reports"
	WindowEdge     Name = "edge of a quota's window"
)

// Input is one number that a cause was computed from.
type Input struct {
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value" yaml:"value"`
}

// Cause is one named part of a bound.
type Cause struct {
	Name Name `json:"name" yaml:"name"`
	// Tokens is at most what the cause can add within the window, rounded up.
	Tokens lease.Tokens `json:"tokens" yaml:"tokens"`
	// Formula has the numbers filled in; empty where Tokens is always 0.
	Formula string  `json:"formula,omitempty" yaml:"formula,omitempty"`
	Inputs  []Input `json:"inputs,omitempty" yaml:"inputs,omitempty"`
	// Zero says why the cause is 0 or, where it is not, what makes it so.
	Zero string `json:"zero" yaml:"zero"`
	// Assumption is what the number rests on beside the inputs; may be empty.
	Assumption string `json:"assumption,omitempty" yaml:"assumption,omitempty"`
}

// Bound is the most that a budget admits above its contract within any
// window of one length.
type Bound struct {
	// Window is the length; 0 for a quota, whose window is its calendar's.
	Window time.Duration `json:"window" yaml:"window"`
	// Contract is what may be admitted within it: burst + rate·W rounded down,
	// or N.
	Contract lease.Tokens `json:"contract" yaml:"contract"`
	// Causes has every cause that the product can have, those that are 0 too.
	Causes []Cause `json:"causes" yaml:"causes"`
	// Total is their sum.
	Total lease.Tokens `json:"total" yaml:"total"`
}

// Of returns the tokens of a cause.
func (b Bound) Of(name Name) lease.Tokens {
	for _, c := range b.Causes {
		if c.Name == name {
			return c.Tokens
		}
	}
	return 0
}

// Over bounds the over-admission of a normalized budget within any window of
// length w; for a quota, within one window of its calendar, whatever w is. An
// error is a *lease.Error that names a field of d, or "window".
func Over(b policy.Budget, d Deployment, w time.Duration) (Bound, error) {
	m, err := check(b, d, w)
	if err != nil {
		return Bound{}, err
	}
	return bound(m, m, m.noCut()), nil
}

func check(b policy.Budget, d Deployment, w time.Duration) (*model, error) {
	d = d.withDefaults()
	if err := d.Validate(); err != nil {
		return nil, err
	}
	if b.Contract.IsQuota() {
		w = 0
	} else if err := checkTime("window", w, time.Microsecond); err != nil {
		return nil, err
	}
	return newModel(b, d, w), nil
}

// bound sums the causes: the contract's own by m, what may go wrong by risk.
// The two differ only while a limit is being cut.
func bound(m, risk *model, cut Cause) Bound {
	b := Bound{Window: m.window, Contract: floor(sum(whole(m.burst), minted(m.rate, m.window)))}
	b.Causes = []Cause{
		m.float(), cut, m.independence(), risk.drift(), risk.rounding(), risk.ledgerStep(), risk.storeStep(),
		risk.localStores(), risk.localProcesses(), risk.suspension(), risk.staleStore(), risk.regranted(), risk.ledgerLoss(),
	}
	b.Causes = append(b.Causes, m.never()...)
	if m.quota {
		b.Causes = append(b.Causes, risk.windowEdge())
	}
	b.Total = total(b.Causes)
	return b
}

func total(causes []Cause) lease.Tokens {
	all := new(big.Int)
	for _, c := range causes {
		all.Add(all, big.NewInt(int64(c.Tokens)))
	}
	return saturated(all)
}
