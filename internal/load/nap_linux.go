package load

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// nap is time.Sleep for less than a millisecond, which the runtime rounds up to one
// where nothing else is to be done. The runtime does not know that this sleeps, and
// so does not give what ran it to another thread, each time: that took a quarter of
// what all calls cost their callers.
func nap(d time.Duration) {
	t := unix.NsecToTimespec(int64(d))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0) // one that is cut short is a short nap
}
