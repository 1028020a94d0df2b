package app

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/ration-dev/ration/agent"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// explained is an agent.Explanation as JSON. Times are milliseconds, null
// where nothing is.
type explained struct {
	Budget        string           `json:"budget"`
	PolicyVersion uint64           `json:"policyVersion"`
	Wallet        bool             `json:"wallet"`
	Leases        []explainedLease `json:"leases"`
	Process       lease.Tokens     `json:"processTokens"`
	DemandTotal   lease.Tokens     `json:"demandTotal"`
	Rate          float64          `json:"demandPerSecond"`
	Refused       string           `json:"ledgerRefused,omitempty"`
	RefusedForMs  int64            `json:"ledgerRefusedForMs,omitempty"`
	RetryAfterMs  int64            `json:"retryAfterMs,omitempty"`
	Final         string           `json:"notServed,omitempty"`
	Unreachable   bool             `json:"allocatorUnreachable"`
	DeniedCost    lease.Tokens     `json:"deniedFromMemoryCost,omitempty"`
	LastDenial    string           `json:"lastDenial,omitempty"`
	LocalStore    lease.Tokens     `json:"localTokensStore"`
	LocalProcess  lease.Tokens     `json:"localTokensProcess"`
	Waiters       int              `json:"waiters"`
	StoreError    string           `json:"storeError,omitempty"`
}

type explainedLease struct {
	Kind       string       `json:"kind"`
	Sequence   uint64       `json:"sequence"`
	Pending    bool         `json:"pending"`
	Closed     bool         `json:"closed"`
	Ended      bool         `json:"ended"`
	Live       lease.Tokens `json:"live"`
	Prefetched lease.Tokens `json:"prefetched"`
	Granted    lease.Tokens `json:"granted"`
	Used       lease.Tokens `json:"used"`
	Returned   lease.Tokens `json:"returned"`
	Rate       string       `json:"rate,omitempty"`
	Beta       lease.Tokens `json:"beta,omitempty"`
	RemainsMs  int64        `json:"remainsMs"`
}

// explainHandler answers GET ?budget=NAME with where the budget's tokens are,
// as this agent sees it: why a check was denied.
func explainHandler(r *agent.Runner) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		name := req.URL.Query().Get("budget")
		if name == "" {
			http.Error(w, "name a budget: "+req.URL.Path+"?budget=tenant/route_class", http.StatusBadRequest)
			return
		}
		x, err := r.Explain(req.Context(), name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusNotFound)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		_ = e.Encode(explain(x)) // an error is the caller's connection
	}
}

func explain(x agent.Explanation) explained {
	out := explained{
		Budget: x.Budget, PolicyVersion: x.Version, Wallet: x.Row, Leases: []explainedLease{},
		Process: x.Process, DemandTotal: x.DemandTotal, Rate: x.Rate, Unreachable: x.Unreachable,
		DeniedCost: x.DeniedCost, LastDenial: x.LastDenial.Reason,
		LocalStore: x.LocalStore, LocalProcess: x.LocalProcess, Waiters: x.Waiters,
	}
	if x.Refused != lease.Enough {
		out.Refused, out.RefusedForMs, out.RetryAfterMs = x.Refused.String(), wholeMillis(x.RefusedFor), wholeMillis(x.RetryAfter)
	}
	if x.Final != 0 {
		out.Final = x.Final.String()
	}
	if x.Err != nil {
		out.StoreError = x.Err.Error()
	}
	for _, l := range x.Leases {
		if l.Incarnation == "" {
			continue
		}
		one := explainedLease{
			Kind: l.Kind.String(), Sequence: l.Seq, Pending: l.Pending, Closed: l.Closed, Ended: l.Ended,
			Live: l.Live, Prefetched: l.Prefetched, Granted: l.Granted, Used: l.Used, Returned: l.Returned,
			Beta: l.Beta, RemainsMs: max(0, wholeMillis(l.Remains)),
		}
		if l.Kind.IsShare() && !l.X.Zero() {
			one.Rate = policy.FormatRate(l.X)
		}
		out.Leases = append(out.Leases, one)
	}
	return out
}

func wholeMillis(d time.Duration) int64 { return d.Milliseconds() }
