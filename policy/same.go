package policy

import "reflect"

// Same reports whether two normalized budgets say the same, whatever their
// versions.
func (b Budget) Same(o Budget) bool {
	b.Version, o.Version = 0, 0
	return reflect.DeepEqual(b, o)
}
