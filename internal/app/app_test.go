package app

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/ration-dev/ration/agent"
	ledger "github.com/ration-dev/ration/allocation/memory"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/lease/rpc"
	"github.com/ration-dev/ration/policy"
)

var quiet = slog.New(slog.DiscardHandler)

func bucket(t *testing.T, name string, rate lease.Tokens, burst lease.Tokens) policy.Budget {
	t.Helper()
	b, err := policy.Budget{
		Name: name, Contract: policy.Contract{Rate: lease.Rate{Tokens: rate, Per: time.Second}, Burst: burst},
	}.Normalize(policy.DefaultDeployment())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newDev(t *testing.T, regions []DevRegion, budgets ...policy.Budget) *Dev {
	t.Helper()
	return NewDev(DevOptions{Budgets: budgets, Regions: regions, Host: "127.0.0.1", Log: quiet})
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// A limit of 4 and two regions that all ask at once: 4 are admitted, wherever,
// with nothing left running at the end, and stopping twice does no harm.
func TestDevHoldsALimitAcrossRegions(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	b := bucket(t, "headline", 0, 4)
	d := newDev(t, []DevRegion{{"us", 2 * time.Millisecond}, {"eu", 5 * time.Millisecond}}, b)
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	var admitted atomic.Int64
	var running sync.WaitGroup
	for _, a := range d.Agents() {
		for range 20 {
			running.Go(func() {
				answer, err := a.Check(context.Background(), agent.Check{Budgets: []string{"headline"}, Cost: 1, Deadline: time.Second})
				if err == nil && answer.Outcome == agent.Allowed {
					admitted.Add(1)
				}
			})
		}
	}
	running.Wait()
	if n := admitted.Load(); n == 0 || n > 4 {
		t.Errorf("admitted %d of a limit of 4", n)
	}
	if got := d.meters.read(time.Second)[0]; got.Admitted != lease.Tokens(admitted.Load()) || got.Worst[0].Tokens > 0 {
		t.Errorf("measured %+v, admitted %d", got, admitted.Load())
	}
	for range 2 {
		if err := d.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	}
	state, _, err := d.allocator.opt.Store.View(context.Background(), "", 1)
	if err != nil || state[0].Pools[0].Outstanding != 0 {
		t.Errorf("%v: %d tokens are leased after all agents ended", err, state[0].Pools[0].Outstanding)
	}
}

// A start that fails half-way leaves nothing running.
func TestDevStartFailsWhole(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	first := newDev(t, []DevRegion{{"us", 0}}, bucket(t, "a", 1, 1))
	if err := first.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = first.Stop(context.Background()) }()
	second := newDev(t, []DevRegion{{"us", 0}}, bucket(t, "a", 1, 1))
	second.opt.Regions = append(second.opt.Regions, DevRegion{"eu", 0})
	second.allocator.opt.HTTP = first.allocator.HTTPAddr()
	err := second.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "is in use by another process") {
		t.Errorf("got %v", err)
	}
}

// The text of an agent's and an allocator's metrics.
func TestMetrics(t *testing.T) {
	d := newDev(t, []DevRegion{{"us", 0}}, bucket(t, "acme/search", 0, 3))
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Stop(context.Background()) }()
	for range 5 {
		if _, err := d.Agents()[0].Check(t.Context(), agent.Check{Budgets: []string{"acme/search"}, Cost: 1}); err != nil {
			t.Fatal(err)
		}
	}
	d.allocator.tick(t.Context())
	if err := d.allocator.pools.look(t.Context(), d.allocator.opt.Store); err != nil {
		t.Fatal(err)
	}
	const wallet = `ration_wallet_tokens{budget="acme/search",lease="lump"} 0`
	text := ""
	for range 1000 { // until the wallet is looked at again
		if strings.Contains(text, wallet) {
			break
		}
		time.Sleep(5 * time.Millisecond)
		_, text = get(t, "http://"+d.Agents()[0].HTTPAddr()+"/metrics")
	}
	for _, want := range []string{
		wallet,
		`ration_decisions_total{mode="memory",outcome="denied"}`,
		`ration_decisions_total{mode="store",outcome="allowed"}`,
		`ration_decision_duration_seconds_count{outcome="allowed"} 3`,
		`ration_decision_duration_seconds_bucket{outcome="allowed",le="+Inf"} 3`,
		`ration_store_duration_seconds_count{result="ok",step="take"}`,
		`ration_sync_items_total{result="active"}`,
		`ration_sync_duration_seconds_count{result="ok"}`,
		`ration_incarnation_changes_total{what="opened"} 1`,
		"ration_sequences_resumed_total 0", "ration_local_tokens_total{where=\"store\"} 0", "ration_panics_total 0",
		"ration_build_info{go_version=",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the agent's metrics lack %s", want)
		}
	}
	for query, want := range map[string]string{"acme/search": `"live": 0`, "nope": "no budget named", "": "name a budget"} {
		if _, answer := get(t, "http://"+d.Agents()[0].HTTPAddr()+"/debug/budgets?budget="+query); !strings.Contains(answer, want) {
			t.Errorf("explaining %s: %s", query, answer)
		}
	}
	_, text = get(t, "http://"+d.allocator.HTTPAddr()+"/metrics")
	for _, want := range []string{
		`ration_ledger_items_total{result="ok"}`, `ration_ledger_items_total{result="unknown_budget"} 0`,
		`ration_pool_available_tokens{budget="acme/search"} 0`,
		`ration_pool_outstanding_tokens{budget="acme/search"}`,
		`ration_pool_debt_tokens{budget="acme/search"} 0`,
		"ration_leases_expired_total 0", "ration_leases_written_off_tokens_total 0", "ration_ledger_unknown_commits_total 0",
		"ration_clock_offset_seconds 0", "ration_panics_total 0", `ration_sync_duration_seconds_count{result="ok"}`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the allocator's metrics lack %s", want)
		}
	}
}

// drained is an allocator over a ledger that can be made to fail.
func drained(t *testing.T, drain Drain) *Allocator {
	t.Helper()
	a := NewAllocator(AllocatorOptions{
		Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Listen: "127.0.0.1:0", HTTP: "127.0.0.1:0",
		Drain: drain, Log: quiet,
	})
	if err := a.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	return a
}

// While it drains, an allocator still answers, and says 503.
func TestDrainSaysSoFirst(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	defer http.DefaultClient.CloseIdleConnections()
	a := drained(t, Drain{Pause: 300 * time.Millisecond})
	a.tick(t.Context())
	if status, _ := get(t, "http://"+a.HTTPAddr()+"/readyz"); status != http.StatusOK {
		t.Errorf("ready: %d", status)
	}
	done := make(chan error, 1)
	go func() { done <- a.Stop(context.Background()) }()
	for !a.draining.Load() {
		time.Sleep(time.Millisecond)
	}
	if status, body := get(t, "http://"+a.HTTPAddr()+"/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "draining") {
		t.Errorf("draining: %d %s", status, body)
	}
	if status, _ := get(t, "http://"+a.HTTPAddr()+"/healthz"); status != http.StatusOK {
		t.Errorf("draining, healthz: %d", status)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A ledger that does not answer takes the readiness away, and gives it back.
func TestReadinessFollowsTheLedger(t *testing.T) {
	a := NewAllocator(AllocatorOptions{Store: ledger.New(wallClock), Credentials: rpc.Insecure{}, Log: quiet})
	if err := a.Ready(); !errors.Is(err, errLedger) {
		t.Errorf("before the first look: %v", err)
	}
	a.seen.Store(int64(time.Since(a.begun)))
	if err := a.Ready(); err != nil {
		t.Errorf("after a look: %v", err)
	}
}

// A panic in a background step is counted, and the next round runs.
func TestBackgroundPanics(t *testing.T) {
	var panics atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	rounds := 0
	every(ctx, time.Millisecond, &panics, quiet, func(context.Context) {
		if rounds++; rounds == 3 {
			cancel()
		}
		panic("on purpose")
	})
	if panics.Load() != 3 {
		t.Errorf("%d panics counted in %d rounds", panics.Load(), rounds)
	}
}

// The stack ends everything, last first, whatever fails, and only once.
func TestStack(t *testing.T) {
	var s stack
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		s.push(name, func(context.Context) error {
			order = append(order, name)
			if name == "b" {
				return errors.New("stuck")
			}
			return nil
		})
	}
	err := s.close(t.Context())
	if err == nil || err.Error() != "stopping b: stuck" || strings.Join(order, "") != "cba" {
		t.Errorf("%v, in the order %v", err, order)
	}
	if err := s.close(t.Context()); err != nil || len(order) != 3 {
		t.Errorf("a second time: %v, %v", err, order)
	}
}
