package http

import (
	"errors"
	"fmt"
	nethttp "net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
)

// asks wraps one member beside a good descriptor.
func asks(member string) string {
	return `{"descriptors":[{"key":"tenant","value":"acme"}],` + member + `}`
}

// refused has bodies that are no check, and the field that has to be named.
var refused = []struct{ body, field string }{
	{``, "body"},
	{`nonsense`, "body"},
	{`[]`, "body"},
	{`"text"`, "body"},
	{`null`, "body"},
	{`{`, "body"},
	{`{}`, "descriptors"},
	{good + `{}`, "body"},
	{good + ` x`, "body"},
	{asks(`"cost":-1`), "cost"},
	{asks(`"cost":-9223372036854775809`), "cost"},
	{asks(`"cost":9007199254740992`), "cost"},
	{asks(`"cost":18446744073709551617`), "cost"},
	{asks(`"cost":1e400`), "cost"},
	{asks(`"cost":1e3`), "cost"},
	{asks(`"cost":1.0`), "cost"},
	{asks(`"cost":0.5`), "cost"},
	{asks(`"cost":NaN`), "cost"},
	{asks(`"cost":Infinity`), "cost"},
	{asks(`"cost":01`), "cost"},
	{asks(`"cost":+1`), "cost"},
	{asks(`"cost":0x1`), "cost"},
	{asks(`"cost":"1"`), "cost"},
	{asks(`"cost":null`), "cost"},
	{asks(`"cost":true`), "cost"},
	{asks(`"cost":[1]`), "cost"},
	{asks(`"cost":{}`), "cost"},
	{asks(`"cost":`), "cost"},
	{asks(`"cost":1,"cost":1`), "cost"},
	{asks(`"cost":1,"c\u006fst":2`), "cost"},
	{asks(`"Cost":1`), "Cost"},
	{asks(`"costs":1`), "costs"},
	{asks(`"":1`), "body"},
	{asks(`"requestId":7`), "requestId"},
	{asks(`"requestId":"` + strings.Repeat("a", 257) + `"`), "requestId"},
	{asks(`"requestId":"` + "\xff" + `"`), "requestId"},
	{asks(`"requestId":"\ud800"`), "requestId"},
	{asks(`"requestId":"\ud800\u0041"`), "requestId"},
	{asks(`"requestId":"\\\udc00"`), "requestId"},
	{asks(`"requestId":"\u00"`), "requestId"},
	{asks(`"requestId":"` + "\n" + `"`), "requestId"},
	{asks(`"deadlineMs":-1`), "deadlineMs"},
	{asks(`"deadlineMs":9223372036855`), "deadlineMs"},
	{asks(`"deadlineMs":1.5`), "deadlineMs"},
	{asks(`"budgets":["b"]`), "budgets"},
	{`{"budgets":"b"}`, "budgets"},
	{`{"budgets":["b",1]}`, "budgets[1]"},
	{`{"budgets":["b",""]}`, "budgets[1]"},
	{`{"budgets":["` + strings.Repeat("é", 129) + `"]}`, "budgets[0]"},
	{`{"budgets":["b",]}`, "budgets[1]"},
	{`{"budgets":["b"`, "budgets"},
	{`{"budgets":["b"}`, "budgets"},
	{`{"descriptors":{}}`, "descriptors"},
	{`{"descriptors":[["k","v"]]}`, "descriptors[0]"},
	{`{"descriptors":[{"key":"k","value":"v"},{"key":"k2"}]}`, "descriptors[1].value"},
	{`{"descriptors":[{"key":"","value":"v"}]}`, "descriptors[0].key"},
	{`{"descriptors":[{"key":"k","value":"` + strings.Repeat("v", 257) + `"}]}`, "descriptors[0].value"},
	{`{"descriptors":[{"key":"k","value":"v","extra":1}]}`, "descriptors[0].extra"},
	{`{"descriptors":[{"key":"k","key":"k","value":"v"}]}`, "descriptors[0].key"},
	{`{"descriptors":[{"key":"k","value":"v"},{"key":"k","value":"w"}]}`, "descriptors[1].key"},
	{`{"descriptors":[` + strings.Repeat(`{"key":"k","value":"v"},`, 64) + `{"key":"k","value":"v"}]}`, "descriptors"},
	{`{"descriptors":` + strings.Repeat("[", 10_000) + `}`, "descriptors[0]"},
	{"\xef\xbb\xbf" + good, "body"},
}

// Caught: encoding/json's own decoding, which takes duplicates, other case,
// and broken Unicode.
func TestBadInputIsRefusedByName(t *testing.T) {
	for _, c := range refused {
		checker := always(agent.Answer{Outcome: agent.Allowed})
		w := post(checker, c.body)
		shown := c.body[:min(len(c.body), 120)]
		if w.Code != nethttp.StatusBadRequest {
			t.Errorf("%q: %d", shown, w.Code)
			continue
		}
		if e := errorOf(t, w); e.Code != "invalid" || e.Field != c.field || e.Reason == "" {
			t.Errorf("%q: want %q, got %+v", shown, c.field, e)
		}
		if checker.last != nil {
			t.Errorf("%q was decided", shown)
		}
	}
}

var accepted = map[string]agent.Check{
	`{"budgets":["b"]}`: {Budgets: []string{"b"}, Cost: 1},
	" {\t\"budgets\" :\n[ \"b\" , \"c\" ] , \"cost\" : 0 } \r\n":       {Budgets: []string{"b", "c"}},
	`{"budgets":["b"],"cost":9007199254740991}`:                        {Budgets: []string{"b"}, Cost: lease.MaxTokens},
	`{"budgets":["\ud83d\ude00\\ud800\u00e9é\ufffd"],"cost":-0}`:       {Budgets: []string{"😀\\ud800éé\ufffd"}},
	`{"budgets":["b"],"descriptors":[],"requestId":"","deadlineMs":0}`: {Budgets: []string{"b"}, Cost: 1},
}

// A cost left out is 1: a peek by accident would let everything pass.
func TestGoodInputIsRead(t *testing.T) {
	for body, want := range accepted {
		got, err := decodeCheck([]byte(body))
		if err != nil || fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
}

// FuzzCheck: whatever is sent, the answer is 200 to a valid check or a typed
// 400, and never a panic.
func FuzzCheck(f *testing.F) {
	for _, c := range refused {
		f.Add([]byte(c.body))
	}
	for body := range accepted {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		checker := always(agent.Answer{Outcome: agent.Allowed})
		h, panics := handler(checker)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(nethttp.MethodPost, Path, strings.NewReader(string(body))))
		if len(body) > MaxBody {
			return
		}
		switch {
		case panics.Load() != 0:
			t.Fatal("it panicked")
		case w.Code == nethttp.StatusOK:
			valid(t, checker.last)
		case w.Code != nethttp.StatusBadRequest || errorOf(t, w).Field == "" || !utf8.Valid(w.Body.Bytes()) || w.Body.Len() > 2048:
			t.Fatalf("%d %q", w.Code, w.Body)
		}
	})
}

func valid(t *testing.T, c *agent.Check) {
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	words := append([]string{c.RequestID}, c.Budgets...)
	for _, d := range c.Descriptors {
		words = append(words, d.Key, d.Value)
	}
	for _, w := range words {
		if !utf8.ValidString(w) {
			t.Fatalf("%q was decided", w)
		}
	}
}

func TestErrorsOfTheDecoderAreTyped(t *testing.T) {
	_, err := decodeCheck([]byte(`{"` + strings.Repeat("x", 60_000) + `":1}`))
	var e *lease.Error
	if !errors.As(err, &e) || len(e.Field) > 300 {
		t.Errorf("got %v", err)
	}
}
