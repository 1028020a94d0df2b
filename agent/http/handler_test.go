package http

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"maps"
	nethttp "net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// fakeChecker answers with its function and remembers the last check.
type fakeChecker struct {
	answer func(agent.Check) (agent.Answer, error)
	last   *agent.Check
}

func (f *fakeChecker) Check(_ context.Context, c agent.Check) (agent.Answer, error) {
	f.last = &c
	return f.answer(c)
}

func always(a agent.Answer) *fakeChecker {
	return &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { return a, nil }}
}

func failing(err error) *fakeChecker {
	return &fakeChecker{answer: func(agent.Check) (agent.Answer, error) { return agent.Answer{}, err }}
}

func handler(checker Checker) (*Handler, *atomic.Int64) {
	panics := new(atomic.Int64)
	return New(checker, new(atomic.Int64), panics, slog.New(slog.NewTextHandler(io.Discard, nil))), panics
}

func post(checker Checker, body string) *httptest.ResponseRecorder {
	h, _ := handler(checker)
	r := httptest.NewRequest(nethttp.MethodPost, Path, strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const good = `{"descriptors":[{"key":"tenant","value":"acme"}],"cost":1}`

func TestADecisionHasTheDocumentedForm(t *testing.T) {
	checker := always(agent.Answer{
		Outcome: agent.Allowed, Budget: "acme/<search>", Version: 4, Limit: 2000, Remaining: 1999,
		ResetAfter: 1500*time.Microsecond + 1, Window: 2 * time.Second, Reason: "ok",
	})
	w := post(checker, `{"descriptors":[{"key":"tenant","value":"acme"},{"key":"endpoint","value":"search"}],"cost":3,"requestId":"r1","deadlineMs":5}`)
	wantBody := `{"allowed":true,"limit":2000,"remaining":1999,"retryAfterMs":0,"resetAfterMs":2,"policyVersion":"<search>@4","reason":"ok"}` + "\n"
	if w.Code != nethttp.StatusOK || w.Body.String() != wantBody {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	want := agent.Check{
		Descriptors: []agent.Descriptor{{Key: "tenant", Value: "acme"}, {Key: "endpoint", Value: "search"}},
		Cost:        3, RequestID: "r1", Deadline: 5 * time.Millisecond,
	}
	if !reflect.DeepEqual(*checker.last, want) {
		t.Errorf("asked %+v", *checker.last)
	}
	headers(t, w, map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store",
		"Ratelimit-Policy": `"acme/<search>";q=2000;w=2`, "Ratelimit": `"acme/<search>";r=1999;t=1`,
	})
}

func headers(t *testing.T, w *httptest.ResponseRecorder, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for name, values := range w.Result().Header {
		got[name] = strings.Join(values, " & ")
	}
	if !maps.Equal(got, want) {
		t.Errorf("headers %q\nwant    %q", got, want)
	}
}

// Caught: rounding down, which sends the caller back too early.
func TestADenialSaysWhenToComeBack(t *testing.T) {
	w := post(always(agent.Answer{
		Outcome: agent.Denied, Budget: "b", Version: 1, Limit: 5, RetryAfter: 2001 * time.Millisecond,
		ResetAfter: 9 * time.Second, Reason: "pool_empty",
	}), good)
	if want := `{"allowed":false,"limit":5,"remaining":0,"retryAfterMs":2001,"resetAfterMs":9000,"policyVersion":"b@1","reason":"pool_empty"}` + "\n"; w.Code != nethttp.StatusTooManyRequests || w.Body.String() != want {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	headers(t, w, map[string]string{
		"Content-Type": "application/json", "Cache-Control": "no-store", "Retry-After": "3",
		"Ratelimit-Policy": `"b";q=5`, "Ratelimit": `"b";r=0;t=9`,
	})
}

// The header is the body's milliseconds in seconds, rounded up, so that who
// reads the one waits no less than who reads the other meant. Seen to catch: a
// body that says 0 beside a header that says 1.
func TestBodyAndHeaderAgreeOnWhenToComeBack(t *testing.T) {
	for _, c := range []struct {
		answer agent.Answer
		ms     int64
		header string
	}{
		{agent.Answer{Outcome: agent.Allowed}, 0, ""},
		{agent.Answer{Outcome: agent.Denied}, 100, "1"},
		{agent.Answer{Outcome: agent.Denied, RetryAfter: 2 * time.Millisecond}, 2, "1"},
		{agent.Answer{Outcome: agent.Denied, RetryAfter: 1001 * time.Millisecond}, 1001, "2"},
		{agent.Answer{Outcome: agent.Denied, Never: true}, 0, ""},
		{agent.Answer{Outcome: agent.Unavailable}, 100, "1"},
		{agent.Answer{Outcome: agent.Unavailable, RetryAfter: 3 * time.Second}, 3000, "3"},
	} {
		w := post(always(c.answer), good)
		var body answerBody
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil {
			t.Fatal(err)
		}
		if header := w.Header().Get("Retry-After"); body.RetryAfterMs != c.ms || header != c.header {
			t.Errorf("%+v: %d ms and %q, want %d and %q", c.answer, body.RetryAfterMs, header, c.ms, c.header)
		}
	}
}

func TestNeverHasNoRetryTime(t *testing.T) {
	w := post(always(agent.Answer{Outcome: agent.Denied, Budget: "b", Never: true, Reason: "never"}), good)
	if _, told := w.Header()["Retry-After"]; told || w.Code != nethttp.StatusTooManyRequests || !strings.Contains(w.Body.String(), `"reason":"never"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
}

func TestNoDecisionIsA503(t *testing.T) {
	for name, checker := range map[string]*fakeChecker{
		"answer":  always(agent.Answer{Outcome: agent.Unavailable, Budget: "b", RetryAfter: 1200 * time.Millisecond, Reason: "no_lease"}),
		"error":   failing(&lease.Error{Code: lease.Unavailable, Reason: "x", RetryAfter: 1200 * time.Millisecond}),
		"context": failing(context.DeadlineExceeded),
	} {
		w := post(checker, good)
		if w.Code != nethttp.StatusServiceUnavailable || errorOf(t, w).Code != "unavailable" {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if want := map[string]string{"answer": "2", "error": "2", "context": "1"}[name]; w.Header().Get("Retry-After") != want {
			t.Errorf("%s: Retry-After %q", name, w.Header().Get("Retry-After"))
		}
		if w.Header().Get("RateLimit") != "" {
			t.Errorf("%s: tells a rate limit", name)
		}
	}
}

func errorOf(t *testing.T, w *httptest.ResponseRecorder) errorBody {
	t.Helper()
	var body struct{ Error *errorBody }
	if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.Error == nil {
		t.Fatalf("%d without an error: %q, %v", w.Code, w.Body, err)
	}
	return *body.Error
}

func TestErrorsKeepTheirCodeAndField(t *testing.T) {
	for code, status := range map[lease.Code]int{
		lease.Invalid: 400, lease.UnknownBudget: 400, lease.UnknownRegion: 400, lease.Foreign: 400,
		lease.Unauthenticated: 401, lease.Conflict: 409, lease.Denied: 429, lease.Unavailable: 503, lease.Internal: 500,
	} {
		w := post(failing(lease.Errorf(code, "request_id", "why")), good)
		if got, want := errorOf(t, w), (errorBody{code.String(), "requestId", "why"}); w.Code != status || got != want {
			t.Errorf("%v: %d %+v", code, w.Code, got)
		}
	}
	w := post(failing(errors.New("redis://:secret@host")), good)
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || errorOf(t, w).Code != "internal" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w = post(always(agent.Answer{}), good); w.Code != 500 {
		t.Errorf("an answer without an outcome: %d", w.Code)
	}
}

func TestAPanicIsA500AndACounter(t *testing.T) {
	h, panics := handler(&fakeChecker{answer: func(agent.Check) (agent.Answer, error) { panic("secret") }})
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(nethttp.MethodPost, Path, strings.NewReader(good)))
	if w.Code != 500 || strings.Contains(w.Body.String(), "secret") || errorOf(t, w).Code != "internal" || panics.Load() != 1 {
		t.Errorf("%d %s, %d panics", w.Code, w.Body, panics.Load())
	}
}

func TestWhatIsNoCheckIsRefusedByItsStatus(t *testing.T) {
	request := func(method, body string, header ...string) *nethttp.Request {
		r := httptest.NewRequest(method, Path, strings.NewReader(body))
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return r
	}
	const kind = "Content-Type"
	for name, c := range map[string]struct {
		r      *nethttp.Request
		status int
	}{
		"get":            {request("GET", ""), 405},
		"put":            {request("PUT", good), 405},
		"form":           {request("POST", good, kind, "application/x-www-form-urlencoded"), 415},
		"odd type":       {request("POST", good, kind, ";;"), 415},
		"latin1":         {request("POST", good, kind, "application/json; charset=latin1"), 415},
		"gzip":           {request("POST", good, kind, "application/json", "Content-Encoding", "gzip"), 415},
		"utf-8":          {request("POST", good, kind, "application/json; charset=UTF-8"), 200},
		"nothing said":   {request("POST", good), 200},
		"as it is":       {request("POST", good, "Content-Encoding", "identity"), 200},
		"too large":      {request("POST", good+strings.Repeat(" ", MaxBody)), 413},
		"just not large": {request("POST", good+strings.Repeat(" ", MaxBody-len(good))), 200},
		"broken off":     {httptest.NewRequest(nethttp.MethodPost, Path, io.MultiReader(strings.NewReader("{"), brokenReader{})), 400},
	} {
		h, _ := handler(always(agent.Answer{Outcome: agent.Allowed}))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, c.r)
		if w.Code != c.status {
			t.Errorf("%s: %d, want %d", name, w.Code, c.status)
		}
		if w.Code != 200 && errorOf(t, w).Code != "invalid" {
			t.Errorf("%s: %s", name, w.Body)
		}
		if counted := h.invalid.Load(); counted != 0 != (w.Code != 200) {
			t.Errorf("%s: %d, and %d counted as malformed", name, w.Code, counted)
		}
		if w.Code == 405 && w.Header().Get("Allow") != "POST" {
			t.Errorf("%s: no Allow", name)
		}
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// Names that no header could hold reach it escaped, and no two alike.
// Caught: the name written as it is, which loses both headers.
func TestAnyNameFitsTheHeaders(t *testing.T) {
	names := []string{"é", "%C3%A9", "a\"b\\c", "line\r\nInjected: 1", "\x00\x7f", strings.Repeat("世", 85), " ", `";r=9`}
	seen := map[string]bool{}
	for _, name := range names {
		w := post(always(agent.Answer{
			Outcome: agent.Allowed, Budget: name, Limit: lease.MaxTokens, Remaining: lease.MaxTokens,
			ResetAfter: 1<<63 - 1, Window: 1<<63 - 1,
		}), good)
		for _, field := range []string{"RateLimit", "RateLimit-Policy"} {
			list, err := httpsfv.UnmarshalList(w.Header()[nethttp.CanonicalHeaderKey(field)])
			if err != nil || len(list) != 1 {
				t.Fatalf("%q: %s %q: %v", name, field, w.Header(), err)
			}
			item := list[0].(httpsfv.Item)
			if n := len(item.Params.Names()); n != 2 {
				t.Errorf("%q: %d parameters", name, n)
			}
			if field == "RateLimit" {
				if text := item.Value.(string); seen[text] {
					t.Errorf("%q looks like another name: %q", name, text)
				} else {
					seen[text] = true
				}
			}
		}
		var body answerBody
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || body.PolicyVersion != name+"@0" {
			t.Errorf("%q: %s, %v", name, w.Body, err)
		}
	}
	w := post(always(agent.Answer{Outcome: agent.Allowed, Reason: "no_budget_matched"}), good)
	if slices.Contains(slices.Collect(maps.Keys(w.Header())), "Ratelimit") || !strings.Contains(w.Body.String(), `"policyVersion":""`) {
		t.Errorf("nothing matched: %v %s", w.Header(), w.Body)
	}
}

func TestDurationsRoundUp(t *testing.T) {
	for d, want := range map[time.Duration]int64{-time.Hour: 0, 0: 0, 1: 1, time.Second: 1, time.Second + 1: 2, 1<<63 - 1: 9223372037} {
		if got := seconds(d); got != want {
			t.Errorf("%v is %d s", d, got)
		}
	}
}
