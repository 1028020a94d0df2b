package agent

import (
	"slices"

	"github.com/ration-dev/ration/lease"
)

// The bounds of a Check.
const (
	MaxDescriptors = 64
	MaxWord        = 256 // bytes of a key, value, name or request id
)

// Validate reports the first field of c that is out of bounds, as a
// *lease.Error with code Invalid.
func (c *Check) Validate() error {
	if err := c.validateTargets(); err != nil {
		return err
	}
	switch {
	case c.Cost < 0:
		return lease.Errorf(lease.Invalid, "cost", "%d is negative", c.Cost)
	case c.Cost > lease.MaxTokens:
		return lease.Errorf(lease.Invalid, "cost", "above %d", lease.MaxTokens)
	case len(c.RequestID) > MaxWord:
		return lease.Errorf(lease.Invalid, "request_id", "longer than %d bytes", MaxWord)
	case c.Deadline < 0:
		return lease.Errorf(lease.Invalid, "deadline", "%v is negative", c.Deadline)
	case len(c.Costs) > 0:
		return c.validateCosts()
	}
	return nil
}

func (c *Check) validateCosts() error {
	if len(c.Costs) != len(c.Budgets) || c.RequestID != "" {
		return lease.Errorf(lease.Invalid, "costs", "give one for each budget by name, and no request id")
	}
	for i, cost := range c.Costs {
		if cost <= 0 {
			return lease.Errorf(lease.Invalid, field("costs", i, ""), "%d is not above 0", cost)
		}
		if slices.Contains(c.Budgets[:i], c.Budgets[i]) {
			return lease.Errorf(lease.Invalid, field("budgets", i, ""), "given twice, with a cost each")
		}
	}
	if c.Cost != slices.Max(c.Costs) {
		return lease.Errorf(lease.Invalid, "cost", "must be the largest of costs")
	}
	return nil
}

func (c *Check) validateTargets() error {
	switch {
	case len(c.Descriptors) == 0 && len(c.Budgets) == 0:
		return lease.Errorf(lease.Invalid, "descriptors", "none given, and no budget by name either")
	case len(c.Descriptors) > 0 && len(c.Budgets) > 0:
		return lease.Errorf(lease.Invalid, "budgets", "give descriptors or names of budgets, not both")
	case len(c.Descriptors) > MaxDescriptors:
		return lease.Errorf(lease.Invalid, "descriptors", "more than %d", MaxDescriptors)
	case len(c.Budgets) > MaxDescriptors:
		return lease.Errorf(lease.Invalid, "budgets", "more than %d", MaxDescriptors)
	}
	for i, name := range c.Budgets {
		if !wordOK(name) {
			return lease.Errorf(lease.Invalid, field("budgets", i, ""), "must be 1 to %d bytes", MaxWord)
		}
	}
	for i := range c.Descriptors {
		if err := c.validateDescriptor(i); err != nil {
			return err
		}
	}
	return nil
}

// validateDescriptor allows the same pair twice, which changes nothing, and
// refuses one key with two values, which would have two meanings.
func (c *Check) validateDescriptor(i int) error {
	d := c.Descriptors[i]
	if !wordOK(d.Key) {
		return lease.Errorf(lease.Invalid, field("descriptors", i, "key"), "must be 1 to %d bytes", MaxWord)
	}
	if !wordOK(d.Value) {
		return lease.Errorf(lease.Invalid, field("descriptors", i, "value"), "must be 1 to %d bytes", MaxWord)
	}
	for _, earlier := range c.Descriptors[:i] {
		if earlier.Key == d.Key && earlier.Value != d.Value {
			return lease.Errorf(lease.Invalid, field("descriptors", i, "key"), "given twice with different values")
		}
	}
	return nil
}

func wordOK(s string) bool { return len(s) >= 1 && len(s) <= MaxWord }
