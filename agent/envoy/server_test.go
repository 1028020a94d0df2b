package envoy

import (
	"context"
	"strings"
	"testing"
	"time"

	commonv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	ratelimitv3 "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	leaserpc "github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

const (
	ok   = ratelimitv3.RateLimitResponse_OK
	over = ratelimitv3.RateLimitResponse_OVER_LIMIT
)

// verdict writes a reply's codes, the overall one first, as "+" and "-".
func verdict(r *ratelimitv3.RateLimitResponse) string {
	sign := map[ratelimitv3.RateLimitResponse_Code]string{ok: "+", over: "-"}
	out := sign[r.GetOverallCode()]
	for _, s := range r.GetStatuses() {
		out += sign[s.GetCode()]
	}
	return out
}

func ask(t *testing.T, c ratelimitv3.RateLimitServiceClient, m *ratelimitv3.RateLimitRequest) *ratelimitv3.RateLimitResponse {
	t.Helper()
	r, err := c.ShouldRateLimit(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// All budgets of a request are charged or none, each once, and every
// descriptor has its own status. Seen to catch: a descriptor decided by itself,
// which charges the first when the second is refused.
func TestDescriptorsAreDecidedAllOrNone(t *testing.T) {
	l := newLive(t, once("a/tenant", 10, "tenant", "a"), once("a/path", 4, "tenant", "a", "path", "/x"), once("b/other", 5, "tenant", "b"))
	c, _ := serve(t, l)
	both := asking(2, descriptor("tenant", "a"), descriptor("path", "/x", "tenant", "a"), descriptor("tenant", "z"))
	for i, want := range []string{"++++", "++++", "-+-+", "-+-+"} {
		if got := verdict(ask(t, c, both)); got != want {
			t.Errorf("request %d: %s, want %s", i, got, want)
		}
	}
	if x, y := l.left(t, "a/tenant"), l.left(t, "a/path"); x != 6 || y != 0 {
		t.Errorf("%d and %d left, want 6 and 0", x, y)
	}
	if got := verdict(ask(t, c, asking(0, descriptor("tenant", "a")))); got != "++" || l.left(t, "a/tenant") != 5 {
		t.Errorf("%s, %d left: no hits_addend adds 1", got, l.left(t, "a/tenant"))
	}
}

func TestStatusesSayWhatIsLeft(t *testing.T) {
	quota := matching(policy.Budget{Name: "a/q", Contract: policy.Contract{Quota: policy.Quota{N: 50, Per: policy.Month, Zone: "UTC"}}, Wait: 300 * time.Millisecond}, "kind", "q")
	l := newLive(t, once("a/all", 100, "domain", "edge"), once("a/few", 10, "kind", "few"), quota)
	c, _ := serve(t, l)
	r := ask(t, c, asking(3, descriptor("kind", "few"), descriptor("kind", "q")))
	few, q := r.GetStatuses()[0], r.GetStatuses()[1]
	if x := few.GetCurrentLimit(); x.GetName() != "a/few" || x.GetRequestsPerUnit() != 1 || x.GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_HOUR {
		t.Errorf("the first limit: %v", x)
	}
	if few.GetLimitRemaining() != 7 || few.GetDurationUntilReset().AsDuration() <= 2*time.Hour {
		t.Errorf("the first status: %v", few)
	}
	if x := q.GetCurrentLimit(); x.GetName() != "a/q" || x.GetRequestsPerUnit() != 50 || x.GetUnit() != ratelimitv3.RateLimitResponse_RateLimit_MONTH {
		t.Errorf("the second limit: %v", x)
	}
	if q.GetLimitRemaining() > 47 || q.GetDurationUntilReset().AsDuration() > 31*24*time.Hour {
		t.Errorf("the second status: %v", q)
	}
	if len(r.GetResponseHeadersToAdd()) != 0 {
		t.Errorf("headers on what passed: %v", r.GetResponseHeadersToAdd())
	}
}

// A descriptor that charges nothing says what is left of the least of its own
// budgets, of which another descriptor may charge some. Seen to catch: the
// charged one taken for it.
func TestStatusOfWhatIsOnlyLookedAt(t *testing.T) {
	l := newLive(t, once("a/all", 100, "domain", "edge"), once("a/few", 10, "k", "few"))
	c, _ := serve(t, l)
	asked := asking(1, descriptor("k", "other"), adding(0, descriptor("k", "few")))
	ask(t, c, asked)
	few := ask(t, c, asked).GetStatuses()[1]
	if few.GetCurrentLimit().GetName() != "a/few" || few.GetLimitRemaining() != 10 {
		t.Errorf("%v, want all 10 of a/few", few)
	}
}

// A descriptor's own hits_addend goes before the request's; 0 charges nothing
// and asks whether anything is left; a budget met twice is charged the most.
// Seen to catch: charges made before what is only looked at was.
func TestHitsOfEachDescriptor(t *testing.T) {
	l := newLive(t, once("a/x", 100, "k", "x"), once("a/y", 100, "k", "y"), once("a/z", 1, "k", "z"))
	c, _ := serve(t, l)
	left := func() (out [3]lease.Tokens) {
		for i, name := range []string{"a/x", "a/y", "a/z"} {
			out[i] = l.left(t, name)
		}
		return out
	}
	steps := []struct {
		what    string
		asked   *ratelimitv3.RateLimitRequest
		verdict string
		left    [3]lease.Tokens
	}{
		{"its own", asking(5, adding(30, descriptor("k", "x")), descriptor("k", "y")), "+++", [3]lease.Tokens{70, 95, 1}},
		{"the most", asking(1, adding(2, descriptor("k", "x")), adding(9, descriptor("k", "x", "more", "1"))), "+++", [3]lease.Tokens{61, 95, 1}},
		{"only looked at", asking(1, adding(0, descriptor("k", "z"))), "++", [3]lease.Tokens{61, 95, 1}},
		{"one looked at", asking(1, adding(0, descriptor("k", "z")), descriptor("k", "y")), "+++", [3]lease.Tokens{61, 94, 1}},
		{"used up", asking(1, descriptor("k", "z")), "++", [3]lease.Tokens{61, 94, 0}},
		{"one looked at, empty", asking(1, descriptor("k", "y"), adding(0, descriptor("k", "z"))), "-+-", [3]lease.Tokens{61, 94, 0}},
	}
	for _, s := range steps {
		if got := verdict(ask(t, c, s.asked)); got != s.verdict {
			t.Errorf("%s: %s, want %s", s.what, got, s.verdict)
		}
		if got := left(); got != s.left {
			t.Errorf("%s: %v left, want %v", s.what, got, s.left)
		}
	}
}

// The domain is one of the pairs, and nobody but Envoy's configuration says
// what it is. What no budget can match is no error, as a client may send it.
func TestPairsOfADescriptor(t *testing.T) {
	long := strings.Repeat("x", agent.MaxWord+1)
	for name, c := range map[string]struct {
		descriptor *commonv3.RateLimitDescriptor
		matches    bool
	}{
		"in any order, with more":  {descriptor("more", "1", "k", "v"), true},
		"another value":            {descriptor("k", "w"), false},
		"a domain of its own":      {descriptor("k", "v", "domain", "other"), true},
		"another pair of that key": {descriptor("k", "w", "k", "v"), true},
		"an empty value":           {descriptor("k", "v", "agent", ""), true},
		"a long value":             {descriptor("k", "v", "path", long), true},
		"a long key":               {descriptor("k", "v", long, "v"), true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLive(t, once("a/here", 1, "k", "v", "domain", "edge"), once("a/there", 1, "k", "v", "domain", "other"))
			client, _ := serve(t, l)
			r := ask(t, client, asking(1, c.descriptor))
			if got := r.GetStatuses()[0].GetCurrentLimit().GetName(); (got == "a/here") != c.matches || !c.matches && got != "" {
				t.Errorf("matched %q", got)
			}
			if l.left(t, "a/there") != 1 {
				t.Error("another domain's budget was charged")
			}
		})
	}
}

func TestDenialsSayWhenToComeBack(t *testing.T) {
	l := newLive(t, once("a/x", 2, "k", "x"))
	c, _ := serve(t, l)
	ask(t, c, asking(2, descriptor("k", "x")))
	headers := ask(t, c, asking(1, descriptor("k", "x"))).GetResponseHeadersToAdd()
	if len(headers) != 1 || headers[0].GetKey() != "retry-after" || len(headers[0].GetValue()) < 1 {
		t.Errorf("headers %v", headers)
	}
	if r := ask(t, c, asking(3, descriptor("k", "x"))); verdict(r) != "--" || len(r.GetResponseHeadersToAdd()) != 0 {
		t.Errorf("what never passes: %v", r)
	}
}

func TestMalformedRequestsAreTyped(t *testing.T) {
	l := newLive(t, once("a/x", 2, "k", "x"))
	c, invalid := serve(t, l)
	good := descriptor("k", "x")
	many := make([]*commonv3.RateLimitDescriptor, agent.MaxDescriptors+1)
	for i := range many {
		many[i] = good
	}
	refund := descriptor("k", "x")
	refund.IsNegativeHits = true
	cases := map[string]*ratelimitv3.RateLimitRequest{
		"domain":                          {Descriptors: []*commonv3.RateLimitDescriptor{good}},
		"descriptors":                     {Domain: "edge"},
		"descriptors[1].entries":          asking(1, good, descriptor()),
		"descriptors[0].entries":          asking(1, descriptor(strings.Split(strings.Repeat("k,v,", maxEntries+1), ",")[:2*maxEntries+2]...)),
		"descriptors[0].hits_addend":      asking(1, adding(1<<63, descriptor("k", "x"))),
		"descriptors[0].is_negative_hits": asking(1, refund),
	}
	for field, m := range cases {
		_, err := c.ShouldRateLimit(t.Context(), m)
		e, _ := leaserpc.DecodeError(err).(*lease.Error)
		if status.Code(err) != codes.InvalidArgument || e.Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if _, err := c.ShouldRateLimit(t.Context(), asking(1, many...)); status.Code(err) != codes.InvalidArgument {
		t.Errorf("too many descriptors: %v", err)
	}
	if n := invalid.Load(); n != int64(len(cases))+1 {
		t.Errorf("%d counted", n)
	}
	if l.left(t, "a/x") != 2 {
		t.Error("a malformed request was charged")
	}
}

// closed is an agent that does not decide.
type closed struct{ *live }

func (closed) Check(context.Context, agent.Check) (agent.Answer, error) {
	return agent.Answer{Outcome: agent.Unavailable, Reason: "no_lease"}, nil
}

func TestNoDecisionIsUnavailable(t *testing.T) {
	l := newLive(t, once("a/x", 2, "k", "x"))
	c, _ := serve(t, closed{l})
	for _, d := range []*commonv3.RateLimitDescriptor{descriptor("k", "x"), descriptor("k", "unknown")} {
		_, err := c.ShouldRateLimit(t.Context(), asking(1, d))
		e, _ := leaserpc.DecodeError(err).(*lease.Error)
		if status.Code(err) != codes.Unavailable || e.Code != lease.Unavailable || e.RetryAfter != 100*time.Millisecond {
			t.Errorf("%v", err)
		}
	}
}

// vanishing deletes a budget between its match and its charge.
type vanishing struct {
	*live
	deleted bool
}

func (v *vanishing) Check(ctx context.Context, c agent.Check) (agent.Answer, error) {
	if !v.deleted {
		v.deleted = true
		return agent.Answer{}, lease.Errorf(lease.UnknownBudget, "budgets[0]", "no budget")
	}
	return v.live.Check(ctx, c)
}

func TestABudgetThatVanishesIsMatchedAgain(t *testing.T) {
	l := newLive(t, once("a/x", 2, "k", "x"))
	c, _ := serve(t, &vanishing{live: l})
	if got := verdict(ask(t, c, asking(1, descriptor("k", "x")))); got != "++" || l.left(t, "a/x") != 1 {
		t.Errorf("%s, %d left", got, l.left(t, "a/x"))
	}
}
