package http

import (
	nethttp "net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/ration-dev/ration/agent"
)

// maxInteger is the largest Integer of a structured header field (RFC 9651);
// a token count above it is reported as it.
const maxInteger = 999_999_999_999_999

// setRateLimit tells the decisive budget's state in RateLimit-Policy and
// RateLimit. A decision without a budget has none to tell.
func setRateLimit(h nethttp.Header, a *agent.Answer) {
	if a.Budget == "" {
		return
	}
	name := headerName(a.Budget)
	policy := httpsfv.NewItem(name)
	policy.Params.Add("q", integer(int64(a.Limit)))
	if a.Window > 0 {
		policy.Params.Add("w", integer(seconds(a.Window)))
	}
	state := httpsfv.NewItem(name)
	state.Params.Add("r", integer(int64(a.Remaining)))
	state.Params.Add("t", integer(seconds(a.ResetAfter)))
	set(h, "RateLimit-Policy", policy)
	set(h, "RateLimit", state)
}

// set leaves the field out if it cannot be written, which headerName and
// integer rule out.
func set(h nethttp.Header, field string, item httpsfv.Item) {
	if value, err := httpsfv.Marshal(httpsfv.List{item}); err == nil {
		h.Set(field, value)
	}
}

func integer(n int64) int64 { return max(0, min(n, maxInteger)) }

// headerName writes a name, which may be any UTF-8, in the ASCII that header
// strings allow: other bytes, and the percent sign, as %XX, so that no two
// names look alike.
func headerName(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < ' ' || c > '~' || c == '%' {
			b.Write([]byte{'%', hex[c>>4], hex[c&15]})
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// setRetryAfter writes whole seconds, rounded up: who comes back then is not
// too early. An error's unknown time is said as one second, the least there is.
func setRetryAfter(h nethttp.Header, d time.Duration) {
	h.Set("Retry-After", strconv.FormatInt(max(1, seconds(d)), 10))
}

// seconds and millis round up, and take a negative duration as none.
func seconds(d time.Duration) int64 { return ceil(d, time.Second) }
func millis(d time.Duration) int64  { return ceil(d, time.Millisecond) }

func ceil(d, unit time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d-1)/unit) + 1
}
