package rpc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	rationv1 "github.com/ration-dev/ration/api/ration/v1"
	"github.com/ration-dev/ration/lease"
)

// anyError draws an error as a boundary may see it.
func anyError(t *rapid.T) *lease.Error {
	text := rapid.StringN(0, 40, maxText)
	return &lease.Error{
		Code:       rapid.Custom(func(t *rapid.T) lease.Code { return lease.Code(rapid.IntRange(1, int(lease.Internal)).Draw(t, "code")) }).Draw(t, "code"),
		Field:      text.Draw(t, "field"),
		Reason:     text.Draw(t, "reason"),
		RetryAfter: time.Duration(rapid.Int64Range(0, int64(90*24*time.Hour)).Draw(t, "retry")),
	}
}

// overWire returns the status as another process would see it.
func overWire(t interface{ Fatal(...any) }, err error) error {
	data, failed := proto.Marshal(status.Convert(err).Proto())
	if failed != nil {
		t.Fatal(failed)
	}
	var received spb.Status
	if failed := proto.Unmarshal(data, &received); failed != nil {
		t.Fatal(failed)
	}
	return status.ErrorProto(&received)
}

// Caught: dropping RetryInfo for codes other than Denied; reading the code
// from the status alone, which makes UnknownRegion an UnknownBudget.
func TestErrorsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyError(t)
		var got *lease.Error
		if !errors.As(DecodeError(overWire(t, EncodeError(want))), &got) || *got != *want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
}

func TestItemErrorsSurviveTheWire(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := anyError(t)
		want.RetryAfter = want.RetryAfter.Truncate(time.Microsecond)
		if got := errorFromProto(errorToProto(want)); *got != *want {
			t.Fatalf("got %+v, want %+v", got, want)
		}
	})
	if errorFromProto(errorToProto(nil)) != nil {
		t.Fatal("no error became one")
	}
	for _, code := range []rationv1.Error_Code{-250, 0, 10, 262} {
		if got := errorFromProto(&rationv1.Error{Code: code}); got.Code != lease.Internal {
			t.Errorf("code %d was read as %v", code, got.Code)
		}
	}
}

func TestEachCodeHasItsStatus(t *testing.T) {
	want := map[lease.Code]codes.Code{
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
	for code := lease.Invalid; code <= lease.Internal; code++ {
		if got := status.Code(EncodeError(lease.Errorf(code, "", "x"))); got != want[code] || got == codes.OK {
			t.Errorf("%v: status %v, want %v", code, got, want[code])
		}
		if reasonOf(code) == "" || strings.Contains(reasonOf(code), "_CODE") {
			t.Errorf("%v has no word: %q", code, reasonOf(code))
		}
	}
	if lease.Code(len(statusCodes)).String() != "unknown" {
		t.Error("a code of lease has no status here")
	}
}

func TestOtherErrorsAreEncodedWithoutTheirText(t *testing.T) {
	secret := errors.New("dial postgres://user:secret@db")
	for _, c := range []struct {
		err  error
		code codes.Code
	}{
		{secret, codes.Internal},
		{fmt.Errorf("step: %w", lease.Errorf(lease.Denied, "", "used up")), codes.ResourceExhausted},
		{fmt.Errorf("commit: %w", context.DeadlineExceeded), codes.DeadlineExceeded},
		{context.Canceled, codes.Canceled},
		{&lease.Error{Code: 200, Reason: "odd"}, codes.Internal},
	} {
		got := EncodeError(c.err)
		if status.Code(got) != c.code || strings.Contains(got.Error(), "secret") {
			t.Errorf("%v became %v", c.err, got)
		}
	}
	if EncodeError(nil) != nil || DecodeError(nil) != nil {
		t.Error("no error became one")
	}
}

// A proxy's or gRPC's own RESOURCE_EXHAUSTED (a message too large, a rate
// limit before the allocator) must never be read as a quota denial.
// Caught: reading codes.ResourceExhausted as lease.Denied.
func TestStatusesOfOthersNeverDenyAQuota(t *testing.T) {
	want := map[codes.Code]lease.Code{
		codes.Unauthenticated:  lease.Unauthenticated,
		codes.PermissionDenied: lease.Unauthenticated,
		codes.InvalidArgument:  lease.Invalid,
		codes.OutOfRange:       lease.Invalid,
		codes.Internal:         lease.Internal,
		codes.DataLoss:         lease.Internal,
		codes.Unimplemented:    lease.Internal,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		expected, ok := want[code]
		if !ok {
			expected = lease.Unavailable
		}
		if got := lease.CodeOf(DecodeError(status.Error(code, "someone else"))); got != expected {
			t.Errorf("%v was read as %v, want %v", code, got, expected)
		}
	}
	if got := lease.CodeOf(DecodeError(errors.New("no status"))); got != lease.Unavailable {
		t.Errorf("an error without a status was read as %v", got)
	}
}

func TestErrorTextIsMadeFitToSend(t *testing.T) {
	long := lease.Errorf(lease.Invalid, "budget", "%s", strings.Repeat("é", 5000)+"\xff")
	e := DecodeError(overWire(t, EncodeError(long))).(*lease.Error)
	if e.Code != lease.Invalid || e.Field != "budget" || len(e.Reason) != maxText || strings.Trim(e.Reason, "é") != "" {
		t.Errorf("got %v of %d bytes", e.Code, len(e.Reason))
	}
	broken := DecodeError(overWire(t, EncodeError(lease.Errorf(lease.Invalid, "a\xff", "b\xfe")))).(*lease.Error)
	if broken.Field != "a?" || broken.Reason != "b?" {
		t.Errorf("got %+v", broken)
	}
}
