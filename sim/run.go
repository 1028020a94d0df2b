package sim

import "context"

// Run simulates and measures. The error is about Options, as a *FieldError;
// what goes wrong within the run stands in the Result. When ctx ends, the
// Result has what was finished.
func Run(ctx context.Context, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	w, err := newWorld(o)
	if err != nil {
		return nil, err
	}
	w.run(ctx)
	return w.result(), nil
}
