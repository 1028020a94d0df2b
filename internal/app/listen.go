package app

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// busy is an address that another process listens on. flag is what its owner
// would change.
type busy struct{ address, flag string }

func (b *busy) Error() string {
	return fmt.Sprintf("%s is in use by another process: choose another with %s (port 0 takes any free one)", b.address, b.flag)
}

// listen opens a TCP address, port 0 for any free one. flag is what
// names it on the command line.
func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, &busy{address, flag}
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return l, nil
}
