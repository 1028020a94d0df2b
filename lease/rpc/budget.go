package rpc

import (
	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// The words of a budget in the order of their enum values; "" is what its
// owner did not write.
var (
	strategies   = []policy.Strategy{"", policy.Static, policy.Independent, policy.Dynamic}
	periods      = []policy.Period{"", policy.Hour, policy.Day, policy.Week, policy.Month, policy.Year}
	failureModes = []policy.FailureMode{"", policy.Deny, policy.AllowLocal}
	storeLosses  = []policy.OnStoreLoss{"", policy.Regrant, policy.Wait}
)

// encoder remembers the first word that has no number.
type encoder struct{ err *lease.Error }

// number returns the place of word in words. An unknown word is an error:
// sending it as "unspecified" would make another budget of it.
func number[W ~string](e *encoder, words []W, word W, budget string) int32 {
	for i, w := range words {
		if w == word {
			return int32(i)
		}
	}
	if e.err == nil {
		e.err = lease.Errorf(lease.Internal, "", "budget %q has the unknown word %q", budget, string(word))
	}
	return 0
}

type enum interface {
	~int32
	String() string
}

// word returns the word with the number of value.
func word[W ~string, E enum](d *decoder, words []W, value E, name string, i int) W {
	if value < 0 || int(value) >= len(words) {
		d.refuse(unknown(value), name, i)
		return ""
	}
	return words[value]
}

func listToProto(list policy.List) (*rationv1.ListBudgetsResponse, error) {
	var e encoder
	m := &rationv1.ListBudgetsResponse{
		Version: list.Version,
		Full:    list.Full,
		Budgets: make([]*rationv1.Budget, len(list.Budgets)),
	}
	for i := range list.Budgets {
		m.Budgets[i] = e.budget(&list.Budgets[i])
	}
	if e.err != nil {
		return nil, e.err
	}
	return m, nil
}

func (e *encoder) budget(b *policy.Budget) *rationv1.Budget {
	m := &rationv1.Budget{
		Name:        b.Name,
		Match:       b.Match,
		Contract:    e.contract(b),
		Strategy:    rationv1.Strategy(number(e, strategies, b.Strategy, b.Name)),
		Float:       int64(b.Float),
		Regions:     make([]*rationv1.BudgetRegion, len(b.Regions)),
		TtlUs:       micros(b.TTL),
		ShareTtlUs:  micros(b.ShareTTL),
		OnStoreLoss: rationv1.OnStoreLoss(number(e, storeLosses, b.OnStoreLoss, b.Name)),
		WaitUs:      micros(b.Wait),
		Version:     b.Version,
		Deleted:     b.Deleted,
		OverAdmission: &rationv1.OverAdmission{
			Tokens:       int64(b.OverAdmission.Tokens),
			MilliPercent: b.OverAdmission.MilliPercent,
			WithinUs:     micros(b.OverAdmission.Within),
		},
		OnFailure: &rationv1.Failure{
			Mode:  rationv1.Failure_Mode(number(e, failureModes, b.OnFailure.Mode, b.Name)),
			Rate:  rateToProto(b.OnFailure.Rate),
			Burst: int64(b.OnFailure.Burst),
		},
	}
	for i := range b.Regions {
		m.Regions[i] = regionToProto(&b.Regions[i])
	}
	return m
}

func (e *encoder) contract(b *policy.Budget) *rationv1.Contract {
	c := b.Contract
	m := &rationv1.Contract{Rate: rateToProto(c.Rate), Burst: int64(c.Burst)}
	if c.Quota != (policy.Quota{}) {
		m.Quota = &rationv1.Quota{
			N:    int64(c.Quota.N),
			Per:  rationv1.Period(number(e, periods, c.Quota.Per, b.Name)),
			Zone: c.Quota.Zone,
		}
	}
	return m
}

func regionToProto(r *policy.Region) *rationv1.BudgetRegion {
	m := &rationv1.BudgetRegion{Name: r.Name, Weight: r.Weight, Floor: rateToProto(r.Floor)}
	if r.Reserve != (policy.Reserve{}) {
		m.Reserve = &rationv1.Reserve{Rate: rateToProto(r.Reserve.Rate), Burst: int64(r.Reserve.Burst)}
	}
	return m
}

// listFromProto refuses the whole list for one budget that it cannot read: an
// agent that went on without it would take its requests for unlimited ones.
// The agent keeps the list that it has.
func listFromProto(m *rationv1.ListBudgetsResponse) (policy.List, error) {
	var d decoder
	list := policy.List{Version: m.GetVersion(), Full: m.GetFull()}
	for i, budget := range m.GetBudgets() {
		list.Budgets = append(list.Budgets, d.budget(budget, i))
	}
	if d.err != nil {
		return policy.List{}, d.err
	}
	return list, nil
}

func (d *decoder) budget(m *rationv1.Budget, i int) policy.Budget {
	within := m.GetOverAdmission()
	failure := m.GetOnFailure()
	b := policy.Budget{
		Name:     m.GetName(),
		Match:    m.GetMatch(),
		Contract: d.contract(m.GetContract(), i),
		Strategy: word(d, strategies, m.GetStrategy(), "budgets[%d].strategy", i),
		Float:    lease.Tokens(m.GetFloat()),
		OverAdmission: policy.OverAdmission{
			Tokens:       lease.Tokens(within.GetTokens()),
			MilliPercent: within.GetMilliPercent(),
			Within:       d.duration(within.GetWithinUs(), "budgets[%d].over_admission.within_us", i),
		},
		TTL:      d.duration(m.GetTtlUs(), "budgets[%d].ttl_us", i),
		ShareTTL: d.duration(m.GetShareTtlUs(), "budgets[%d].share_ttl_us", i),
		OnFailure: policy.Failure{
			Mode:  word(d, failureModes, failure.GetMode(), "budgets[%d].on_failure.mode", i),
			Rate:  d.rate(failure.GetRate(), "budgets[%d].on_failure.rate", i),
			Burst: lease.Tokens(failure.GetBurst()),
		},
		OnStoreLoss: word(d, storeLosses, m.GetOnStoreLoss(), "budgets[%d].on_store_loss", i),
		Wait:        d.duration(m.GetWaitUs(), "budgets[%d].wait_us", i),
		Version:     m.GetVersion(),
		Deleted:     m.GetDeleted(),
	}
	for j, region := range m.GetRegions() {
		b.Regions = append(b.Regions, d.region(region, i, j))
	}
	return b
}

func (d *decoder) contract(m *rationv1.Contract, i int) policy.Contract {
	return policy.Contract{
		Rate:  d.rate(m.GetRate(), "budgets[%d].contract.rate", i),
		Burst: lease.Tokens(m.GetBurst()),
		Quota: policy.Quota{
			N:    lease.Tokens(m.GetQuota().GetN()),
			Per:  word(d, periods, m.GetQuota().GetPer(), "budgets[%d].contract.quota.per", i),
			Zone: m.GetQuota().GetZone(),
		},
	}
}

func (d *decoder) region(m *rationv1.BudgetRegion, i, j int) policy.Region {
	return policy.Region{
		Name:   m.GetName(),
		Weight: m.GetWeight(),
		Floor:  d.rate(m.GetFloor(), "budgets[%d].regions[%d].floor", i, j),
		Reserve: policy.Reserve{
			Rate:  d.rate(m.GetReserve().GetRate(), "budgets[%d].regions[%d].reserve.rate", i, j),
			Burst: lease.Tokens(m.GetReserve().GetBurst()),
		},
	}
}
