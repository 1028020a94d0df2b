package lease

import (
	"errors"
	"fmt"
	"time"
)

// Code classifies an Error. The rpc package maps each to one gRPC status and
// back.
type Code uint8

const (
	// Invalid means a field is out of bounds; final.
	Invalid Code = iota + 1
	// UnknownBudget means no such budget exists; final until one is applied.
	UnknownBudget
	// UnknownRegion means the budget or the deployment does not serve the
	// region; final.
	UnknownRegion
	// Unauthenticated means the credential names no region; final.
	Unauthenticated
	// Foreign means an incarnation belongs to another region or kind; final.
	Foreign
	// Conflict means a request id was used before with other content; final.
	Conflict
	// Denied means the quota is used up; RetryAfter says when to come back.
	Denied
	// Unavailable means no decision could be made, or that an outcome is
	// unknown; the same request may be sent again.
	Unavailable
	// Internal means a bug: a handler panicked or an invariant did not hold.
	Internal
)

func (c Code) String() string {
	switch c {
	case Invalid:
		return "invalid"
	case UnknownBudget:
		return "unknown_budget"
	case UnknownRegion:
		return "unknown_region"
	case Unauthenticated:
		return "unauthenticated"
	case Foreign:
		return "foreign_incarnation"
	case Conflict:
		return "request_id_conflict"
	case Denied:
		return "denied"
	case Unavailable:
		return "unavailable"
	case Internal:
		return "internal"
	}
	return "unknown"
}

// Error is the one error type that crosses a boundary.
type Error struct {
	Code Code
	// Field is the path of the offending field, as in "items[3].demand"; empty
	// when no single field is at fault.
	Field string
	// Reason is a sentence for people.
	Reason string
	// RetryAfter is when trying again makes sense; 0 for "do not" or unknown.
	RetryAfter time.Duration
}

func (e *Error) Error() string {
	if e.Field == "" {
		return fmt.Sprintf("%s: %s", e.Code, e.Reason)
	}
	return fmt.Sprintf("%s: %s: %s", e.Code, e.Field, e.Reason)
}

// Errorf makes an Error; field may be empty.
func Errorf(code Code, field, format string, args ...any) *Error {
	return &Error{Code: code, Field: field, Reason: fmt.Sprintf(format, args...)}
}

// CodeOf returns the code of the first Error in err's chain, or 0.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return 0
}
