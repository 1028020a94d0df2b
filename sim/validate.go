package sim

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// FieldError says which field of Options is wrong, and why.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

func fieldError(field, format string, args ...any) error {
	return &FieldError{Field: field, Reason: fmt.Sprintf(format, args...)}
}

// The bounds of a run: what must fit into memory.
const (
	MaxLength  = 400 * 24 * time.Hour
	MaxRegions = 64
	MaxAgents  = 64 // per region
	MaxBudgets = 20_000
	MaxPoints  = 20_000
	// maxCells bounds all series of a run together.
	maxCells = 20_000_000
)

// Validate names the first field that a run cannot be made of, as a
// *FieldError. Run does the same.
func (o Options) Validate() error { return o.validate() }

func (o *Options) validate() error {
	for _, check := range [...]func() error{
		o.validateSizes, o.validateTopology, o.validateBudgets, o.validateWorkloads, o.validateFaults, o.validateStrategy,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) validateSizes() error {
	switch {
	case o.Length <= 0 || o.Length > MaxLength:
		return fieldError("length", "is %v, must be above 0 and at most %v", o.Length, MaxLength)
	case o.Bulk < 0 || o.Bulk > o.Length || o.Bulk%time.Microsecond != 0:
		return fieldError("bulk", "is %v, must be whole microseconds from 0 to the length", o.Bulk)
	case o.Points < 0 || o.Points > MaxPoints:
		return fieldError("points", "is %d, must be 0 to %d", o.Points, MaxPoints)
	case o.Points*len(o.Budgets)*(4+6*len(o.Topology.Regions)) > maxCells:
		return fieldError("points", "of %d for each of %d budgets in %d regions are too many for memory", o.Points, len(o.Budgets), len(o.Topology.Regions))
	case o.Warmup < 0 || o.Warmup >= o.Length:
		return fieldError("warmup", "is %v, must be 0 to less than the length", o.Warmup)
	case o.SyncEvery < 0:
		return fieldError("sync_every", "is negative")
	}
	for i, w := range o.Windows {
		if w < time.Microsecond || w > MaxLength {
			return fieldError(fmt.Sprintf("windows[%d]", i), "is %v, must be 1us to %v", w, MaxLength)
		}
	}
	return nil
}

func (o *Options) validateTopology() error {
	t := &o.Topology
	if n := len(t.Regions); n < 1 || n > MaxRegions {
		return fieldError("regions", "are %d, must be 1 to %d", n, MaxRegions)
	}
	for i := range t.Regions {
		r := &t.Regions[i]
		field := fmt.Sprintf("regions[%d] (%s)", i, r.Name)
		switch {
		case r.Name == "":
			return fieldError(field, "has no name")
		case slices.ContainsFunc(t.Regions[:i], func(q Region) bool { return q.Name == r.Name }):
			return fieldError(field, "is named twice")
		case r.Agents < 0 || r.Agents > MaxAgents:
			return fieldError(field+".agents", "is %d, must be 1 to %d", r.Agents, MaxAgents)
		}
		for _, l := range [...]Link{r.Up, r.Down} {
			if err := l.validate(field); err != nil {
				return err
			}
		}
		for _, c := range [...]Clock{r.Store, r.Agent} {
			if err := checkDrift(field, c.DriftPPM); err != nil {
				return err
			}
		}
	}
	if t.Ledger.Allocators < 0 || t.Ledger.Allocators > MaxAgents {
		return fieldError("ledger.allocators", "is %d, must be 1 to %d", t.Ledger.Allocators, MaxAgents)
	}
	for _, c := range [...]Clock{t.Ledger.Database, t.Ledger.Allocator} {
		if err := checkDrift("ledger", c.DriftPPM); err != nil {
			return err
		}
	}
	return nil
}

func checkDrift(field string, ppm int64) error {
	if ppm < -900_000 || ppm > 900_000 {
		return fieldError(field, "has a clock drift of %d ppm, must be -900000 to 900000", ppm)
	}
	return nil
}

func (l Link) validate(field string) error {
	d := l.Delay
	switch {
	case min(d.Base, d.Uniform, d.Exponential, d.Lognormal, l.ReorderBy) < 0:
		return fieldError(field, "has a link with a negative delay")
	case max(d.Base, d.Uniform, d.Exponential, d.Lognormal, l.ReorderBy) > time.Hour:
		return fieldError(field, "has a link with a delay above 1h")
	case !(d.Sigma >= 0 && d.Sigma <= 5):
		return fieldError(field, "has a link with a sigma of %v, must be 0 to 5", d.Sigma)
	}
	for _, p := range [...]float64{l.Loss, l.Duplicate, l.Reorder} {
		if !(p >= 0 && p <= 1) {
			return fieldError(field, "has a link with a probability of %v, must be 0 to 1", p)
		}
	}
	return nil
}

func (o *Options) validateBudgets() error {
	if n := len(o.Budgets); n < 1 || n > MaxBudgets {
		return fieldError("budgets", "are %d, must be 1 to %d", n, MaxBudgets)
	}
	names := map[string]bool{}
	for i, b := range o.Budgets {
		if names[b.Name] {
			return fieldError(fmt.Sprintf("budgets[%d] (%s)", i, b.Name), "is named twice")
		}
		names[b.Name] = true
		if err := o.knownRegions(i); err != nil {
			return err
		}
	}
	for i, c := range o.Changes {
		field := fmt.Sprintf("changes[%d]", i)
		if c.At < 0 || c.At > o.Length {
			return fieldError(field+".at", "is %v, must be 0 to the length", c.At)
		}
		for _, b := range c.Apply {
			if !names[b.Name] {
				return fieldError(field, "applies %q, which is not among the budgets", b.Name)
			}
		}
		for _, n := range c.Delete {
			if !names[n] {
				return fieldError(field, "deletes %q, which is not among the budgets", n)
			}
		}
	}
	return nil
}

func (o *Options) knownRegions(i int) error {
	for _, r := range o.Budgets[i].Regions {
		if !o.hasRegion(r.Name) {
			return fieldError(fmt.Sprintf("budgets[%d] (%s)", i, o.Budgets[i].Name), "names region %q, which the topology does not have", r.Name)
		}
	}
	return nil
}

func (o *Options) hasRegion(name string) bool {
	return slices.ContainsFunc(o.Topology.Regions, func(r Region) bool { return r.Name == name })
}

func (o *Options) validateWorkloads() error {
	names := map[string]bool{}
	for i := range o.Workloads {
		s := &o.Workloads[i]
		field := fmt.Sprintf("workloads[%d]", i)
		switch {
		case s.Name != "" && names[s.Name]:
			return fieldError(field+".name", "%q is used twice", s.Name)
		case !o.hasRegion(s.Region):
			return fieldError(field+".region", "%q is not in the topology", s.Region)
		case s.Pattern == nil:
			return fieldError(field+".pattern", "is missing")
		case len(s.Budgets) == 0:
			return fieldError(field+".budgets", "are missing")
		case !(s.Zipf >= 0 && s.Zipf <= 5):
			return fieldError(field+".zipf", "is %v, must be 0 to 5", s.Zipf)
		case s.Deadline < 0:
			return fieldError(field+".deadline", "is negative")
		}
		names[s.Name] = true
		for _, b := range s.Budgets {
			if !o.hasBudget(b) {
				return fieldError(field+".budgets", "has %q, which is not among the budgets", b)
			}
		}
		if err := s.Cost.validate(field + ".cost"); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) hasBudget(name string) bool {
	for i := range o.Budgets {
		if o.Budgets[i].Name == name {
			return true
		}
	}
	return false
}

const maxCost = 1 << 40

func (c *Cost) validate(field string) error {
	switch {
	case c.Fixed < 0 || c.Median < 0 || c.Most < 0 || max(c.Fixed, c.Median, c.Most) > maxCost:
		return fieldError(field, "must be 0 to %d", int64(maxCost))
	case !(c.Sigma >= 0 && c.Sigma <= 5):
		return fieldError(field+".sigma", "is %v, must be 0 to 5", c.Sigma)
	}
	for i, k := range c.Choices {
		if k.Cost < 1 || k.Cost > maxCost || k.Weight < 0 || k.Weight > math.MaxInt32 {
			return fieldError(fmt.Sprintf("%s.choices[%d]", field, i), "needs a cost from 1 and a weight from 0")
		}
	}
	return nil
}

func (o *Options) validateFaults() error {
	for i := range o.Faults {
		f := &o.Faults[i]
		field := fmt.Sprintf("faults[%d] (%s)", i, f.Kind)
		switch {
		case !slices.Contains(Kinds(), f.Kind):
			return fieldError(field, "is no kind of fault")
		case f.At < 0 || f.For < 0 || f.Lag < 0 || f.Isolated < 0:
			return fieldError(field, "has a negative time")
		case f.Region != "" && !o.hasRegion(f.Region):
			return fieldError(field+".region", "%q is not in the topology", f.Region)
		case f.Allocator >= max(1, o.Topology.Ledger.Allocators):
			return fieldError(field+".allocator", "%d is not there", f.Allocator)
		case !(f.Probability >= 0 && f.Probability <= 1):
			return fieldError(field+".probability", "is %v, must be 0 to 1", f.Probability)
		}
		if err := f.Link.validate(field); err != nil {
			return err
		}
		if err := checkDrift(field, f.PPM); err != nil {
			return err
		}
	}
	return nil
}

func (o *Options) validateStrategy() error {
	switch o.Strategy {
	case AsWritten, Static, Independent, Dynamic, Central, CountLocally:
		return nil
	}
	return fieldError("strategy", "is %q, must be static, independent, dynamic, central or count_locally", o.Strategy)
}
