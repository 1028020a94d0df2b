package file

import (
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// document is the form that Write gives to budgets.
type document struct {
	Budgets []budget `yaml:"budgets" json:"budgets"`
}

type budget struct {
	Name          string            `yaml:"name" json:"name"`
	Match         map[string]string `yaml:"match,omitempty,flow" json:"match,omitempty"`
	Limit         limit             `yaml:"limit,flow" json:"limit"`
	Strategy      string            `yaml:"strategy" json:"strategy"`
	OverAdmission *overAdmission    `yaml:"over_admission,omitempty,flow" json:"over_admission,omitempty"`
	Regions       map[string]region `yaml:"regions,omitempty" json:"regions,omitempty"`
	Lease         lifetimes         `yaml:"lease,flow" json:"lease"`
	OnFailure     failure           `yaml:"on_failure,flow" json:"on_failure"`
	OnStoreLoss   string            `yaml:"on_store_loss" json:"on_store_loss"`
	Wait          string            `yaml:"wait,omitempty" json:"wait,omitempty"`
}

type limit struct {
	Rate  string        `yaml:"rate,omitempty" json:"rate,omitempty"`
	Burst *lease.Tokens `yaml:"burst,omitempty" json:"burst,omitempty"`
	Quota *lease.Tokens `yaml:"quota,omitempty" json:"quota,omitempty"`
	Per   string        `yaml:"per,omitempty" json:"per,omitempty"`
	Zone  string        `yaml:"zone,omitempty" json:"zone,omitempty"`
}

type overAdmission struct {
	Tokens  lease.Tokens `yaml:"tokens,omitempty" json:"tokens,omitempty"`
	Percent percent      `yaml:"percent,omitempty" json:"percent,omitempty"`
	Within  string       `yaml:"within,omitempty" json:"within,omitempty"`
}

type region struct {
	Weight  int64    `yaml:"weight,omitempty" json:"weight,omitempty"`
	Floor   string   `yaml:"floor,omitempty" json:"floor,omitempty"`
	Reserve *reserve `yaml:"reserve,omitempty,flow" json:"reserve,omitempty"`
}

type reserve struct {
	Rate  string       `yaml:"rate" json:"rate"`
	Burst lease.Tokens `yaml:"burst" json:"burst"`
}

type lifetimes struct {
	TTL      string `yaml:"ttl" json:"ttl"`
	ShareTTL string `yaml:"share_ttl" json:"share_ttl"`
}

type failure struct {
	Mode  string       `yaml:"mode" json:"mode"`
	Rate  string       `yaml:"rate,omitempty" json:"rate,omitempty"`
	Burst lease.Tokens `yaml:"burst,omitempty" json:"burst,omitempty"`
}

// percent is thousandths of a percent, written as a plain number.
type percent int64

// MarshalYAML implements yaml.Marshaler.
func (p percent) MarshalYAML() (any, error) {
	return &yaml.Node{Kind: yaml.ScalarNode, Value: policy.FormatPercent(int64(p))}, nil
}

// MarshalJSON implements json.Marshaler.
func (p percent) MarshalJSON() ([]byte, error) { return []byte(policy.FormatPercent(int64(p))), nil }

// Form returns a normalized budget as Write writes it, to be marshalled as
// JSON or YAML.
func Form(b policy.Budget) any { return written(b) }

// Write writes normalized budgets so that Parse reads the same back, with
// every default spelled out.
func Write(w io.Writer, budgets []policy.Budget) error {
	doc := document{Budgets: make([]budget, len(budgets))}
	for i, b := range budgets {
		doc.Budgets[i] = written(b)
	}
	out, err := yaml.Dump(doc, yaml.WithLineWidth(-1))
	if err != nil {
		return err
	}
	_, err = w.Write(out)
	return err
}

func written(b policy.Budget) budget {
	out := budget{
		Name: b.Name, Match: b.Match, Limit: writtenLimit(b.Contract), Strategy: string(b.Strategy),
		OverAdmission: writtenOver(b.OverAdmission),
		Lease:         lifetimes{policy.FormatDuration(b.TTL), policy.FormatDuration(b.ShareTTL)},
		OnFailure:     failure{Mode: string(b.OnFailure.Mode), Rate: writtenRate(b.OnFailure.Rate), Burst: b.OnFailure.Burst},
		OnStoreLoss:   string(b.OnStoreLoss),
	}
	if b.Wait > 0 {
		out.Wait = policy.FormatDuration(b.Wait)
	}
	for _, r := range b.Regions {
		if out.Regions == nil {
			out.Regions = map[string]region{}
		}
		one := region{Weight: r.Weight, Floor: writtenRate(r.Floor)}
		if r.Reserve != (policy.Reserve{}) {
			one.Reserve = &reserve{policy.FormatRate(r.Reserve.Rate), r.Reserve.Burst}
		}
		out.Regions[r.Name] = one
	}
	return out
}

func writtenLimit(c policy.Contract) limit {
	if c.IsQuota() {
		return limit{Quota: &c.Quota.N, Per: string(c.Quota.Per), Zone: c.Quota.Zone}
	}
	return limit{Rate: policy.FormatRate(c.Rate), Burst: &c.Burst}
}

func writtenOver(o policy.OverAdmission) *overAdmission {
	if o == (policy.OverAdmission{}) {
		return nil
	}
	out := &overAdmission{Tokens: o.Tokens}
	if o.Within > 0 {
		out.Percent = percent(o.MilliPercent)
		out.Within = policy.FormatDuration(o.Within)
	}
	return out
}

func writtenRate(r lease.Rate) string {
	if r.Zero() {
		return ""
	}
	return policy.FormatRate(r)
}

// Limit writes a contract on one line, for tables.
func Limit(c policy.Contract) string {
	if c.IsQuota() {
		return fmt.Sprintf("%d per %s %s", c.Quota.N, c.Quota.Per, c.Quota.Zone)
	}
	return fmt.Sprintf("%s burst %d", policy.FormatRate(c.Rate), c.Burst)
}
