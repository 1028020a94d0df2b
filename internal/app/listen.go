package app

import (
	"errors"
	"fmt"
	"net"
	"syscall"
)

// listen opens a TCP address, port 0 for any free one. flag is what the owner
// would change if the port is taken.
func listen(address, flag string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%s is in use by another process: choose another with %s (port 0 takes any free one)", address, flag)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return l, nil
}
