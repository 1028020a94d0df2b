package rpc

import (
	"context"
	"errors"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/durationpb"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

// Domain is the ErrorInfo domain of this project's errors.
const Domain = "ration.dev"

// fieldKey is the ErrorInfo metadata key of lease.Error.Field.
const fieldKey = "field"

// maxText bounds an error's field and reason on the wire, in bytes each. A
// reason may quote what a caller sent.
const maxText = 1024

// statusCodes gives each lease.Code its gRPC code. Several share one; the
// ErrorInfo's reason tells them apart.
var statusCodes = [...]codes.Code{
	lease.Invalid:         codes.InvalidArgument,
	lease.UnknownBudget:   codes.NotFound,
	lease.UnknownRegion:   codes.NotFound,
	lease.Unauthenticated: codes.Unauthenticated,
	lease.Foreign:         codes.PermissionDenied,
	lease.Conflict:        codes.AlreadyExists,
	lease.Denied:          codes.ResourceExhausted,
	lease.Unavailable:     codes.Unavailable,
	lease.Internal:        codes.Internal,
}

// EncodeError turns an error into a gRPC status error that DecodeError turns
// back. The end of a context keeps its own code. Any other error that is no
// lease.Error becomes INTERNAL without its text, which was not written for
// the caller. nil stays nil.
func EncodeError(err error) error {
	if err == nil {
		return nil
	}
	var e *lease.Error
	if !errors.As(err, &e) {
		if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
			return status.FromContextError(err).Err()
		}
		e = lease.Errorf(lease.Internal, "", "internal error")
	}
	if !validCode(e.Code) {
		e = lease.Errorf(lease.Internal, e.Field, "%s", e.Reason)
	}
	field, reason := clip(e.Field), clip(e.Reason)
	info := &errdetails.ErrorInfo{Reason: reasonOf(e.Code), Domain: Domain}
	details := []protoadapt.MessageV1{info}
	if field != "" {
		info.Metadata = map[string]string{fieldKey: field}
	}
	if field != "" && e.Code == lease.Invalid {
		details = append(details, &errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
			{Field: field, Description: reason},
		}})
	}
	if e.RetryAfter > 0 {
		details = append(details, &errdetails.RetryInfo{RetryDelay: durationpb.New(e.RetryAfter)})
	}
	plain := status.New(statusCodes[e.Code], reason)
	full, failed := plain.WithDetails(details...)
	if failed != nil {
		return plain.Err()
	}
	return full.Err()
}

// DecodeError turns the error of a call into a *lease.Error. A status that
// this project's server did not write says something about the connection or
// a proxy, never about a quota: it means Unavailable unless its code says
// that repeating the call is pointless. nil stays nil.
func DecodeError(err error) error {
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	e := &lease.Error{Code: foreignCode(st.Code()), Reason: st.Message()}
	for _, detail := range st.Details() {
		switch d := detail.(type) {
		case *errdetails.ErrorInfo:
			if code, ok := codeOf(d.GetReason()); ok && d.GetDomain() == Domain {
				e.Code, e.Field = code, d.GetMetadata()[fieldKey]
			}
		case *errdetails.RetryInfo:
			e.RetryAfter = max(0, d.GetRetryDelay().AsDuration())
		}
	}
	return e
}

// foreignCode reads a status without our ErrorInfo.
func foreignCode(c codes.Code) lease.Code {
	switch c {
	case codes.Unauthenticated, codes.PermissionDenied:
		return lease.Unauthenticated
	case codes.InvalidArgument, codes.OutOfRange:
		return lease.Invalid
	case codes.Internal, codes.DataLoss, codes.Unimplemented:
		return lease.Internal
	}
	return lease.Unavailable
}

func validCode(c lease.Code) bool { return c >= lease.Invalid && int(c) < len(statusCodes) }

// reasonOf returns a code's word in an ErrorInfo: the name of the value of
// Error.Code without its prefix, as in UNKNOWN_BUDGET.
func reasonOf(c lease.Code) string {
	return strings.TrimPrefix(rationv1.Error_Code(c).String(), "CODE_")
}

func codeOf(reason string) (lease.Code, bool) {
	c := lease.Code(rationv1.Error_Code_value["CODE_"+reason])
	return c, validCode(c)
}

// errorToProto and errorFromProto are the same pair for an item's own error.
// RetryAfter is cut to microseconds.
func errorToProto(e *lease.Error) *rationv1.Error {
	if e == nil {
		return nil
	}
	code := e.Code
	if !validCode(code) {
		code = lease.Internal
	}
	return &rationv1.Error{
		Code:         rationv1.Error_Code(code),
		Field:        clip(e.Field),
		Reason:       clip(e.Reason),
		RetryAfterUs: micros(max(0, e.RetryAfter)),
	}
}

// errorFromProto reads a code that it does not know as Internal: whatever it
// says, it says that the item failed.
func errorFromProto(m *rationv1.Error) *lease.Error {
	if m == nil {
		return nil
	}
	code := lease.Internal
	if c := m.GetCode(); c >= 1 && int(c) < len(statusCodes) {
		code = lease.Code(c)
	}
	us := min(max(0, m.GetRetryAfterUs()), maxMicros)
	return &lease.Error{
		Code: code, Field: m.GetField(), Reason: m.GetReason(),
		RetryAfter: time.Duration(us) * time.Microsecond,
	}
}

// clip makes s fit to be sent: valid UTF-8 of at most maxText bytes.
func clip(s string) string {
	if len(s) > maxText {
		cut := maxText
		for cut > maxText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut]
	}
	return strings.ToValidUTF8(s, "?")
}
