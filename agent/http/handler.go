package http

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	nethttp "net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// Path is where the handler is mounted.
const Path = "/v1/limits:check"

// MaxBody bounds a request's body, in bytes; the largest valid one with
// plain text is about 35 KiB.
const MaxBody = 64 << 10

// Checker decides. An error is final and about the request, or says that no
// decision could be made; a denial is an Answer. Safe for concurrent use.
type Checker interface {
	Check(ctx context.Context, check agent.Check) (agent.Answer, error)
}

// Handler answers checks. Safe for concurrent use.
type Handler struct {
	checker Checker
	invalid *atomic.Int64
	panics  *atomic.Int64
	log     *slog.Logger
}

// New makes a handler that counts in invalid what it refuses as malformed
// before the checker sees it, and panics in panics.
func New(checker Checker, invalid, panics *atomic.Int64, log *slog.Logger) *Handler {
	return &Handler{checker: checker, invalid: invalid, panics: panics, log: log}
}

// ServeHTTP implements net/http.Handler. It writes only once it knows the
// whole answer.
func (h *Handler) ServeHTTP(w nethttp.ResponseWriter, r *nethttp.Request) {
	defer h.recover(w, r)
	check, status, refused := read(w, r)
	if refused != nil {
		h.invalid.Add(1)
		writeError(w, status, refused)
		return
	}
	answer, err := h.checker.Check(r.Context(), check)
	if err != nil {
		e := typed(err)
		writeError(w, statusOf(e.Code), e)
		return
	}
	writeAnswer(w, &answer)
}

// recover turns a panic into a 500. ErrAbortHandler is net/http's own.
func (h *Handler) recover(w nethttp.ResponseWriter, r *nethttp.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == nethttp.ErrAbortHandler { //nolint:errorlint // net/http compares it so
		panic(cause)
	}
	h.panics.Add(1)
	h.log.Error("a handler panicked", "path", r.URL.Path, "cause", cause, "stack", string(debug.Stack()))
	writeError(w, nethttp.StatusInternalServerError, typed(nil))
}

// read returns the check that r asks for, or the status and error to answer.
func read(w nethttp.ResponseWriter, r *nethttp.Request) (agent.Check, int, *lease.Error) {
	if r.Method != nethttp.MethodPost {
		w.Header().Set("Allow", nethttp.MethodPost)
		return agent.Check{}, nethttp.StatusMethodNotAllowed, lease.Errorf(lease.Invalid, "method", "must be POST")
	}
	if err := jsonOnly(r.Header); err != nil {
		return agent.Check{}, nethttp.StatusUnsupportedMediaType, err
	}
	body, err := io.ReadAll(nethttp.MaxBytesReader(w, r.Body, MaxBody))
	var large *nethttp.MaxBytesError
	if errors.As(err, &large) {
		return agent.Check{}, nethttp.StatusRequestEntityTooLarge, lease.Errorf(lease.Invalid, "body", "larger than %d bytes", MaxBody)
	}
	if err != nil {
		return agent.Check{}, nethttp.StatusBadRequest, lease.Errorf(lease.Invalid, "body", "could not be read to its end")
	}
	check, err := decodeCheck(body)
	if err == nil {
		err = check.Validate()
	}
	if err != nil {
		e := typed(err)
		return agent.Check{}, statusOf(e.Code), e
	}
	return check, 0, nil
}

// jsonOnly refuses what is declared as something else than plain JSON. A
// request that declares nothing is taken at its word when it parses.
func jsonOnly(h nethttp.Header) *lease.Error {
	if encoding := h.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return lease.Errorf(lease.Invalid, "Content-Encoding", "send the body as it is")
	}
	declared := h.Get("Content-Type")
	if declared == "" {
		return nil
	}
	kind, params, err := mime.ParseMediaType(declared)
	charset, named := params["charset"]
	if err != nil || kind != "application/json" || named && !strings.EqualFold(charset, "utf-8") {
		return lease.Errorf(lease.Invalid, "Content-Type", "must be application/json in UTF-8")
	}
	return nil
}

// typed returns the lease.Error in err, or an Internal one without err's
// text, which was not written for the caller. An ended context is no bug.
func typed(err error) *lease.Error {
	var e *lease.Error
	switch {
	case errors.As(err, &e):
		return e
	case errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled):
		return lease.Errorf(lease.Unavailable, "", "no decision in time")
	}
	return lease.Errorf(lease.Internal, "", "internal error")
}

func statusOf(code lease.Code) int {
	switch code {
	case lease.Invalid, lease.UnknownBudget, lease.UnknownRegion, lease.Foreign:
		return nethttp.StatusBadRequest
	case lease.Unauthenticated:
		return nethttp.StatusUnauthorized
	case lease.Conflict:
		return nethttp.StatusConflict
	case lease.Denied:
		return nethttp.StatusTooManyRequests
	case lease.Unavailable:
		return nethttp.StatusServiceUnavailable
	}
	return nethttp.StatusInternalServerError
}

// answerBody is a decision in JSON.
type answerBody struct {
	Allowed       bool   `json:"allowed"`
	Limit         int64  `json:"limit"`
	Remaining     int64  `json:"remaining"`
	RetryAfterMs  int64  `json:"retryAfterMs"`
	ResetAfterMs  int64  `json:"resetAfterMs"`
	PolicyVersion string `json:"policyVersion"`
	Reason        string `json:"reason"`
	// Error is set where no decision could be made, so that every status but
	// 200 and 429 has one.
	Error *errorBody `json:"error,omitempty"`
}

type errorBody struct {
	Code   string `json:"code"`
	Field  string `json:"field"`
	Reason string `json:"reason"`
}

func writeAnswer(w nethttp.ResponseWriter, a *agent.Answer) {
	retry := a.ComeBack()
	body := answerBody{
		Allowed:      a.Outcome == agent.Allowed,
		Limit:        int64(a.Limit),
		Remaining:    int64(a.Remaining),
		RetryAfterMs: millis(retry),
		ResetAfterMs: millis(a.ResetAfter),
		Reason:       a.Reason,
	}
	if a.Budget != "" {
		body.PolicyVersion = fmt.Sprintf("%s@%d", policy.RouteClass(a.Budget), a.Version)
	}
	switch a.Outcome {
	case agent.Allowed:
		setRateLimit(w.Header(), a)
		write(w, nethttp.StatusOK, body)
	case agent.Denied:
		setRateLimit(w.Header(), a)
		if retry > 0 {
			setRetryAfter(w.Header(), retry)
		}
		write(w, nethttp.StatusTooManyRequests, body)
	case agent.Unavailable:
		setRetryAfter(w.Header(), retry)
		body.Error = &errorBody{Code: lease.Unavailable.String(), Reason: "no decision could be made: " + a.Reason}
		write(w, nethttp.StatusServiceUnavailable, body)
	default:
		writeError(w, nethttp.StatusInternalServerError, typed(nil))
	}
}

func writeError(w nethttp.ResponseWriter, status int, e *lease.Error) {
	if e.RetryAfter > 0 || status == nethttp.StatusServiceUnavailable || status == nethttp.StatusTooManyRequests {
		setRetryAfter(w.Header(), e.RetryAfter)
	}
	write(w, status, struct {
		Error errorBody `json:"error"`
	}{errorBody{Code: e.Code.String(), Field: fieldName(e.Field), Reason: e.Reason}})
}

// fieldName gives the core's field names as they are written in JSON.
func fieldName(field string) string {
	switch field {
	case "request_id":
		return "requestId"
	case "deadline":
		return "deadlineMs"
	}
	return field
}

// write sends body. That the caller may have gone is no error of ours.
func write(w nethttp.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(body)
}
