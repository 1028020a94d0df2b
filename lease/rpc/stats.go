package rpc

import (
	"sync/atomic"

	"github.com/ration-dev/ration/lease"
)

// Stats counts what a server did since it started. The zero value is ready;
// all methods of its fields are safe for concurrent use.
type Stats struct {
	// Syncs and Lists count calls, whatever came of them.
	Syncs, Lists atomic.Int64
	// Items counts answered sync items by their error's code; Items[0] has
	// those without one. Items of failed calls are not in it.
	Items [lease.Internal + 1]atomic.Int64
	// Unauthenticated counts calls without a good credential.
	Unauthenticated atomic.Int64
	// Panics counts handlers that panicked.
	Panics atomic.Int64
}

func (s *Stats) item(err *lease.Error) {
	switch {
	case err == nil:
		s.Items[0].Add(1)
	case validCode(err.Code):
		s.Items[err.Code].Add(1)
	default:
		s.Items[lease.Internal].Add(1)
	}
}
