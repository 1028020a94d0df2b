//go:build unix

package load

import (
	"time"

	"golang.org/x/sys/unix"
)

// nap is time.Sleep for less than a millisecond, which the runtime rounds up to one
// where nothing else is to be done.
func nap(d time.Duration) {
	t := unix.NsecToTimeval(int64(d))
	_, _ = unix.Select(0, nil, nil, nil, &t) // one that is cut short is a short nap
}
