package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/policy"
)

// spent is what a region spends of a lump between two of its Syncs.
const spent lease.Tokens = 100

// ledgerBudget is a dynamic budget that never runs dry under the load below:
// every request that is processed moves tokens.
func ledgerBudget(i int, regions []string) policy.Budget {
	b := policy.Budget{
		Name:     fmt.Sprintf("acme/%06d", i),
		Match:    map[string]string{"tenant": "acme", "endpoint": fmt.Sprint(i)},
		Contract: policy.Contract{Rate: lease.Rate{Tokens: 1e9, Per: time.Second}, Burst: 1e7},
		Strategy: policy.Dynamic,
		// Leases outlive the turns of the yardstick.
		TTL: time.Hour,
	}
	for _, r := range regions {
		b.Regions = append(b.Regions, policy.Region{Name: r, Weight: 1})
	}
	return b
}

func regionNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("region-%02d", i)
	}
	return names
}

// apply puts n budgets in force.
func apply(tb testing.TB, a *allocation.Allocator, n int, regions []string) {
	tb.Helper()
	const page = 1000
	for from := 0; from < n; from += page {
		var list []policy.Budget
		for i := from; i < min(n, from+page); i++ {
			list = append(list, ledgerBudget(i, regions))
		}
		if _, err := a.Apply(context.Background(), list); err != nil {
			tb.Fatal(err)
		}
	}
}

// lump is a region's side of one budget's lump: it spends what it was granted
// and asks for more, as its agents would.
type lump struct {
	budget string
	nonce  lease.Incarnation

	mu  sync.Mutex
	seq uint64
	// used, returned and granted are as known to the region; processed has what
	// was granted in all after each sequence that the ledger has processed.
	used, returned, granted lease.Tokens
	processed               []lease.State
}

// next is the region's next request: all but a reserve of what it was granted
// last is used, and it wants as much again.
func (l *lump) next() lease.Item {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seq++
	if hold := l.granted - l.used - l.returned; hold > 0 {
		l.used += min(hold, spent)
	}
	return lease.Item{
		Budget: l.budget, Demand: float64(spent), DemandTotal: l.used, RTT: 20 * time.Millisecond,
		Leases: []lease.Report{{
			Kind: lease.Lump, Incarnation: l.nonce, Seq: l.seq, Used: l.used, Returned: l.returned, Want: 10 * spent,
		}},
	}
}

// hear takes over an answer. What stands above what the ledger lets the region
// keep goes back with the next request.
func (l *lump) hear(asked lease.Item, reply lease.ItemReply) error {
	if reply.Err != nil {
		return reply.Err
	}
	st := reply.Leases[0]
	switch st.Status {
	case lease.Active:
	case lease.NotPlanned: // until the others have returned what is too much
		return nil
	default:
		return fmt.Errorf("%s: the lump has ended", l.budget)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if st.Seq == asked.Leases[0].Seq {
		l.processed = append(l.processed, lease.State{Seq: st.Seq, Granted: st.Granted})
	}
	l.granted = max(l.granted, st.Granted)
	if hold := l.granted - l.used - l.returned; hold > st.Keep {
		l.returned += hold - st.Keep
	}
	return nil
}

// grants counts the requests that were processed since the last call and
// moved tokens into the lump, and forgets them.
func (l *lump) grants(before lease.Tokens) (n int, after lease.Tokens) {
	slices.SortFunc(l.processed, func(a, b lease.State) int { return int(int64(a.Seq - b.Seq)) })
	for _, st := range l.processed {
		if st.Granted > before {
			n, before = n+1, st.Granted
		}
	}
	l.processed = l.processed[:0]
	return n, before
}

// ledgerRegion is one region and its lumps of all budgets.
type ledgerRegion struct {
	name  string
	lumps []*lump
}

func newLedgerRegion(name string, budgets int) *ledgerRegion {
	r := &ledgerRegion{name: name}
	for i := range budgets {
		r.lumps = append(r.lumps, &lump{
			budget: fmt.Sprintf("acme/%06d", i),
			nonce:  lease.Incarnation(fmt.Sprintf("%s-%016x", name, rand.Uint64())),
		})
	}
	return r
}

// sync sends one request for some of the region's lumps and hears the answer.
func (r *ledgerRegion) sync(source lease.Source, lumps []*lump) error {
	req := lease.SyncRequest{Region: r.name, Items: make([]lease.Item, len(lumps))}
	for i, l := range lumps {
		req.Items[i] = l.next()
	}
	reply, err := source.SyncLeases(context.Background(), req)
	if err != nil {
		return err
	}
	for i, l := range lumps {
		if err := l.hear(req.Items[i], reply.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// ledgerLoad is many regions' agents, each with some requests under way at any
// time, each request for a batch of budgets.
type ledgerLoad struct {
	source  lease.Source
	regions []*ledgerRegion
	callers []*ledgerCaller
	before  map[*lump]lease.Tokens
}

// newLedgerLoad has callers requests of each region under way, each about a
// batch of budgets. Regions begin at places of their own, since nothing brings
// different regions' requests for a budget together but chance.
func newLedgerLoad(source lease.Source, regions []string, budgets, callers, batch int) *ledgerLoad {
	l := &ledgerLoad{source: source, before: make(map[*lump]lease.Tokens)}
	for k, name := range regions {
		r := newLedgerRegion(name, budgets)
		l.regions = append(l.regions, r)
		for i := range callers {
			c := newLedgerCaller(r, i, callers, batch)
			c.at = k * len(c.lumps) / len(regions) / batch * batch
			l.callers = append(l.callers, c)
		}
	}
	return l
}

// run drives the load for a while and returns the grants per second.
func (l *ledgerLoad) run(tb testing.TB, d time.Duration) float64 {
	tb.Helper()
	began := time.Now()
	drive(tb, l.source, l.callers, func(*ledgerCaller) bool { return time.Since(began) < d })
	return float64(l.grants()) / time.Since(began).Seconds()
}

// settle goes over all budgets until each region holds its part: whoever asks
// first is given what the others' are, and returns it when it asks again. So
// that this is soon done, more requests are under way than in the load.
func (l *ledgerLoad) settle(tb testing.TB) {
	tb.Helper()
	var callers []*ledgerCaller
	for _, r := range l.regions {
		batch := min(500, len(r.lumps))
		n := min(4, len(r.lumps)/batch)
		for i := range n {
			callers = append(callers, newLedgerCaller(r, i, n, batch))
		}
	}
	for round := range 3 {
		drive(tb, l.source, callers, func(c *ledgerCaller) bool { return c.seen < (round+1)*len(c.lumps) })
	}
	l.grants()
}

// drive lets all callers go on while more says so.
func drive(tb testing.TB, source lease.Source, callers []*ledgerCaller, more func(*ledgerCaller) bool) {
	tb.Helper()
	var running sync.WaitGroup
	errs := make(chan error, len(callers))
	for _, c := range callers {
		running.Go(func() {
			var err error
			for err == nil && more(c) {
				err = c.next(source)
			}
			errs <- err
		})
	}
	running.Wait()
	close(errs)
	for err := range errs {
		if err != nil {
			tb.Fatal(err)
		}
	}
}

// ledgerCaller goes over its part of a region's budgets again and again.
type ledgerCaller struct {
	region *ledgerRegion
	lumps  []*lump
	batch  int
	// at is the place in lumps that is next; seen is how many it has synced.
	at, seen int
}

// newLedgerCaller is the i-th caller of a region. Where there are fewer budgets
// than callers, callers share them, and a budget's sequences follow one another
// without waiting for answers.
func newLedgerCaller(r *ledgerRegion, i, callers, batch int) *ledgerCaller {
	part := max(batch, len(r.lumps)/callers)
	from := i * part % len(r.lumps)
	return &ledgerCaller{region: r, lumps: r.lumps[from:min(len(r.lumps), from+part)], batch: batch}
}

// next sends one request.
func (c *ledgerCaller) next(source lease.Source) error {
	to := min(len(c.lumps), c.at+c.batch)
	err := c.region.sync(source, c.lumps[c.at:to])
	c.seen += to - c.at
	c.at = to % len(c.lumps)
	return err
}

func (l *ledgerLoad) grants() int {
	sum := 0
	for _, r := range l.regions {
		for _, lump := range r.lumps {
			n, after := lump.grants(l.before[lump])
			l.before[lump] = after
			sum += n
		}
	}
	return sum
}
