package redis

import (
	"errors"
	"time"

	"github.com/ration-dev/ration/lease"
	"github.com/ration-dev/ration/regionstore"
)

// reply reads a script's flat answer in its order. The first value of another
// type than asked for sets err; what is read after it is zero.
type reply struct {
	replid string
	vals   []any
	at     int
	err    error
}

// failedStep is what stands for the length of a step's answer that failed, before
// its error.
const failedStep = -1

// step reads the answer of one step of a run of several: its length, and as many
// values.
func (r *reply) step() (*reply, error) {
	n := r.num()
	switch {
	case r.err != nil:
		return nil, r.err
	case n == failedStep:
		text := r.str()
		if r.err != nil {
			return nil, r.err
		}
		return nil, translate(errors.New(text))
	case n < 0 || n > int64(len(r.vals)-r.at):
		r.fail(n)
		return nil, r.err
	}
	from := r.at
	r.at += int(n)
	return &reply{replid: r.replid, vals: r.vals[from:r.at]}, nil
}

func (r *reply) more() bool { return r.err == nil && r.at < len(r.vals) }

func (r *reply) next() any {
	if !r.more() {
		r.fail(nil)
		return nil
	}
	v := r.vals[r.at]
	r.at++
	return v
}

func (r *reply) fail(v any) {
	if r.err == nil {
		r.err = lease.Errorf(lease.Internal, "", "a script's answer has %T at %d of %d", v, r.at, len(r.vals))
	}
}

func (r *reply) str() string {
	v := r.next()
	s, ok := v.(string)
	if !ok {
		r.fail(v)
	}
	return s
}

func (r *reply) num() int64 {
	v := r.next()
	n, ok := v.(int64)
	if !ok {
		r.fail(v)
	}
	return n
}

func (r *reply) bool() bool           { return r.num() != 0 }
func (r *reply) tokens() lease.Tokens { return lease.Tokens(r.num()) }
func (r *reply) time() lease.Time     { return lease.Time(r.num()) }

func (r *reply) duration() time.Duration { return time.Duration(r.num()) * time.Microsecond }

func (r *reply) rate() lease.Rate {
	return lease.Rate{Tokens: r.tokens(), Per: r.duration()}
}

// micros is a duration in whole microseconds, as scripts count.
func micros(d time.Duration) int64 { return int64(d / time.Microsecond) }

// arguments collects a script's arguments. Numbers are held to what a double
// has exactly, so that an absurd one cannot turn into its neighbour.
type arguments []any

func (a *arguments) num(n int64) {
	const limit = int64(lease.MaxTokens)
	*a = append(*a, max(-limit, min(n, limit)))
}

func (a *arguments) str(s string)             { *a = append(*a, s) }
func (a *arguments) id(n uint64)              { a.num(int64(min(n, uint64(lease.MaxTokens)))) }
func (a *arguments) tokens(t lease.Tokens)    { a.num(int64(t)) }
func (a *arguments) now(n regionstore.Now)    { a.num(int64(n.NotAfter)) }
func (a *arguments) duration(d time.Duration) { a.num(micros(d)) }

func (a *arguments) rate(r lease.Rate) {
	a.tokens(r.Tokens)
	a.duration(r.Per)
}

func (a *arguments) bool(b bool) {
	if b {
		a.num(1)
	} else {
		a.num(0)
	}
}

func (r *reply) outcome() regionstore.Outcome { return regionstore.Outcome(r.num()) }

// view reads what push_view and push_missing in view.lua wrote.
func (r *reply) view() regionstore.View {
	v := regionstore.View{Replid: r.replid, Outcome: r.outcome(), Time: r.time()}
	if v.Outcome == regionstore.Missing || r.err != nil {
		return v
	}
	v.Row = regionstore.Row{Replid: r.replid, DemandTotal: r.tokens(), Local: r.local()}
	for i := range v.Row.Leases {
		v.Row.Leases[i], v.Live[i], v.Remains[i] = r.lease(lease.Kind(i + 1))
	}
	return v
}

func (r *reply) local() regionstore.Local {
	return regionstore.Local{
		Nonce: r.str(), Rate: r.rate(), Burst: r.tokens(),
		Balance: r.tokens(), Carry: r.num(), Mark: r.time(), Total: r.tokens(),
	}
}

// lease reads what push_lease in view.lua wrote.
func (r *reply) lease(kind lease.Kind) (l regionstore.Lease, live lease.Tokens, remains time.Duration) {
	if !r.bool() {
		l = regionstore.Lease{Incarnation: lease.Incarnation(r.str()), Lost: lease.Incarnation(r.str()), Mark: r.time()}
		return l, 0, 0
	}
	l = regionstore.Lease{
		Incarnation: lease.Incarnation(r.str()), Lost: lease.Incarnation(r.str()),
		Pending: r.bool(), Closed: r.bool(), Ended: r.bool(),
		Seq: uint64(r.num()), Anchor: r.time(), Deadline: r.time(),
		Granted: r.tokens(), Used: r.tokens(), Returned: r.tokens(), Mark: r.time(),
		Cur: r.generation(), Prev: r.generation(),
		X: r.rate(), Beta: r.tokens(), Balance: r.tokens(), Carry: r.num(),
	}
	live, remains = r.tokens(), r.duration()
	l.Sent = r.report(kind, l.Incarnation)
	return l, live, remains
}

func (r *reply) generation() regionstore.Generation {
	return regionstore.Generation{ID: uint64(r.num()), Tokens: r.tokens(), Opened: r.time(), Until: r.time()}
}

// report reads what was sent last; a zero sequence is none, and stands alone.
func (r *reply) report(kind lease.Kind, inc lease.Incarnation) lease.Report {
	seq := uint64(r.num())
	if seq == 0 {
		return lease.Report{}
	}
	return lease.Report{
		Kind: kind, Incarnation: inc, Seq: seq, Used: r.tokens(), Returned: r.tokens(),
		X: r.rate(), Beta: r.tokens(), Prefetched: r.tokens(), Closed: r.bool(),
		Want: r.tokens(), Regrant: lease.Incarnation(r.str()), Granted: r.tokens(),
	}
}

func (r *reply) takeResult() regionstore.TakeResult {
	t := regionstore.TakeResult{Outcome: r.outcome(), Time: r.time()}
	if t.Outcome == regionstore.Missing {
		return t
	}
	t.Live, t.Shares, t.Beta, t.X = r.tokens(), r.tokens(), r.tokens(), r.rate()
	t.MintIn, t.Lease, t.Pending = r.duration(), r.duration(), r.bool()
	return t
}

func (r *reply) part() regionstore.Part {
	return regionstore.Part{
		Kind: lease.Kind(r.num()), Incarnation: lease.Incarnation(r.str()),
		Generation: uint64(r.num()), Tokens: r.tokens(), Remains: r.duration(),
	}
}
