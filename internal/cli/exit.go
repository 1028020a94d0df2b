// Package cli has what both commands share: exit codes, flags with their
// environment twins, output formats, and logs.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/ration-dev/ration/lease"
)

// Exit codes.
const (
	OK          = 0
	CheckFailed = 1 // a check or threshold did not hold
	BadUsage    = 2 // flags, arguments, or input files
	Unavailable = 3 // something needed does not answer
)

// exit is an error with the code that the process ends with.
type exit struct {
	code int
	err  error
}

func (e *exit) Error() string { return e.err.Error() }
func (e *exit) Unwrap() error { return e.err }

// Fail makes err end the process with CheckFailed.
func Fail(err error) error { return with(CheckFailed, err) }

// Failf is Fail with a format.
func Failf(format string, args ...any) error { return Fail(fmt.Errorf(format, args...)) }

// Usagef makes an error that ends the process with BadUsage.
func Usagef(format string, args ...any) error { return with(BadUsage, fmt.Errorf(format, args...)) }

// Unreachable makes err end the process with Unavailable.
func Unreachable(err error) error { return with(Unavailable, err) }

func with(code int, err error) error {
	if err == nil {
		return nil
	}
	return &exit{code, err}
}

// Code is what a process that met err ends with.
func Code(err error) int {
	if err == nil {
		return OK
	}
	if e, ok := errors.AsType[*exit](err); ok {
		return e.code
	}
	switch lease.CodeOf(err) {
	case lease.Unavailable:
		return Unavailable
	case lease.UnknownBudget, lease.Internal, lease.Conflict:
		return CheckFailed
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return Unavailable
	}
	return BadUsage // cobra's own errors are about arguments
}

// Execute runs the command line of cmd, prints the error that comes of it, and
// returns its exit code. What went wrong with flags or arguments points to the
// help of the command that they are for.
func Execute(ctx context.Context, cmd *cobra.Command, w io.Writer) int {
	ran, err := cmd.ExecuteContextC(ctx)
	return report(w, cmd.Name(), ran.CommandPath(), err)
}

func report(w io.Writer, name, path string, err error) int {
	code := Code(err)
	if err == nil {
		return code
	}
	fmt.Fprintf(w, "%s: %v\n", name, err)
	if code == BadUsage && lease.CodeOf(err) == 0 {
		fmt.Fprintf(w, "Run '%s --help' for usage.\n", path)
	}
	return code
}
