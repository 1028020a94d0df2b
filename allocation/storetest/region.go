package storetest

import (
	"time"

	"github.com/ration-dev/ration/lease"
)

// region is a small model of a region: its store with one wallet per kind,
// and one process that prefetches. It keeps every rule that the ledger relies
// on, and none that it does not. Its clock drifts within the declared bound
// and has stepped back once by at most the declared step.
type region struct {
	name    string
	ppm     int64
	back    time.Duration
	wallets [lease.Kinds]*wallet
	// lost are wallets of earlier lives of the store: nothing of them can be
	// spent but what the process had prefetched.
	lost []*wallet
	// local is the cumulative count of admissions without a lease.
	local lease.Tokens
}

// wallet is one lease in the region.
type wallet struct {
	kind    lease.Kind
	inc     lease.Incarnation
	seq     uint64
	pending bool
	sent    lease.Report
	// anchor, deadline and mark are on the region's clock.
	anchor, deadline, mark lease.Time
	closed, ended, void    bool
	// holder is what the ledger said stands in a share's way.
	holder lease.Incarnation

	granted, used, returned lease.Tokens
	x                       lease.Rate
	beta, balance           lease.Tokens
	carry                   int64
	// prefetched tokens are in the process until then.
	prefetched lease.Tokens
	until      lease.Time
}

// now returns the region's clock when the ledger's shows t.
func (r *region) now(start, t lease.Time, back bool) lease.Time {
	true_ := t - start
	now := start + true_ + true_*lease.Time(r.ppm)/1_000_000
	if back {
		now = now.Add(-r.back)
	}
	return now
}

// live is what the store would hand out.
func (w *wallet) live(now lease.Time) lease.Tokens {
	if w.closed || w.void || w.ended || now >= w.deadline {
		return 0
	}
	if w.kind == lease.Lump {
		return w.granted - w.used - w.returned - w.prefetched
	}
	return w.balance
}

// spendable is invariant 10's left side: all that can still be spent.
func (w *wallet) spendable(now lease.Time) lease.Tokens { return w.live(now) + w.prefetched }

// pass lets time pass: shares mint, prefetched tokens age out.
func (w *wallet) pass(now lease.Time) {
	if w.prefetched > 0 && now >= w.until {
		if w.kind == lease.Lump {
			w.used += w.prefetched
		}
		w.prefetched = 0
	}
	if !w.kind.IsShare() || now <= w.mark {
		return
	}
	if w.closed || w.void || now >= w.deadline {
		w.balance, w.mark = w.atClose(), now
		return
	}
	n, carry := w.x.Mint(now.Sub(w.mark), w.carry)
	w.mark, w.carry = now, carry
	if w.balance+n > w.beta-w.prefetched {
		n, w.carry = max(0, w.beta-w.prefetched-w.balance), 0
	}
	w.balance += n
}

// atClose is the balance that a dead share may still return once.
func (w *wallet) atClose() lease.Tokens {
	if w.closed || w.void {
		return 0
	}
	return w.balance
}

// take moves n live tokens into the process.
func (w *wallet) take(n lease.Tokens, now lease.Time) lease.Tokens {
	n = min(n, w.live(now))
	if w.kind.IsShare() {
		n = min(n, lease.PrefetchLimit(w.beta)-w.prefetched)
	}
	if n <= 0 {
		return 0
	}
	if w.kind.IsShare() {
		w.balance -= n
	}
	if w.prefetched == 0 {
		w.until = min(w.deadline, now.Add(lease.LongestProcessDeadline))
	}
	w.prefetched += n
	return n
}

// use spends n prefetched tokens.
func (w *wallet) use(n lease.Tokens) lease.Tokens {
	n = min(n, w.prefetched)
	w.prefetched -= n
	w.used += n
	return n
}

// giveBack returns n prefetched tokens to the wallet, or, once it is closed,
// out of it.
func (w *wallet) giveBack(n lease.Tokens) {
	n = min(n, w.prefetched)
	w.prefetched -= n
	switch {
	case w.void:
	case w.kind.IsShare() && !w.closed:
		w.balance = min(w.balance+n, w.beta-w.prefetched)
	case w.kind == lease.Lump && w.closed:
		w.returned += n
	}
}

// spend admits n tokens straight from the store.
func (w *wallet) spend(n lease.Tokens, now lease.Time) lease.Tokens {
	n = min(n, w.live(now))
	if n <= 0 {
		return 0
	}
	w.used += n
	if w.kind.IsShare() {
		w.balance -= n
	}
	return n
}

// close fences the lease and takes its balance out. The balance of a dead one
// comes out as well.
func (w *wallet) close() {
	if w.closed || w.void || w.ended || w.deadline == 0 {
		return
	}
	if w.kind == lease.Lump {
		w.returned = w.granted - w.used - w.prefetched
	} else {
		w.returned += w.balance
		w.balance = 0
	}
	w.closed = true
}

// giveUp takes n live lump tokens out, to be reported as returned.
func (w *wallet) giveUp(n lease.Tokens, now lease.Time) {
	if w.kind == lease.Lump {
		w.returned += max(0, min(n, w.live(now)))
	}
}

// lower cuts a share at once.
func (w *wallet) lower(x, beta lease.Tokens) {
	w.x.Tokens = min(w.x.Tokens, x)
	w.beta = max(min(w.beta, beta), min(w.beta, 4*w.prefetched))
	w.balance = min(w.balance, w.beta-w.prefetched)
}

// begin writes the next sequence.
func (w *wallet) begin(want lease.Tokens, now lease.Time) {
	w.seq++
	w.pending, w.anchor = true, now
	w.sent = lease.Report{
		Kind: w.kind, Incarnation: w.inc, Seq: w.seq,
		Used: w.used, Returned: w.returned, Prefetched: w.prefetched, Closed: w.closed,
	}
	if w.kind.IsShare() {
		w.sent.X, w.sent.Beta, w.sent.Granted, w.sent.Regrant = w.x, w.beta, w.granted, w.holder
	} else {
		w.sent.Want = want
	}
}

// install applies an answer, if it is one to the pending sequence.
func (w *wallet) install(st lease.State, now lease.Time) {
	if w.void || st.Incarnation != w.inc || !w.pending || st.Seq != w.seq {
		return
	}
	w.pending = false
	deadline := w.anchor.Add(st.TTL)
	switch {
	case st.Status == lease.Ended:
		w.ended = true
		return
	case st.Status == lease.NotPlanned:
		w.holder = st.Holder
		return
	case w.closed || now >= deadline || w.deadline != 0 && now >= w.deadline:
		return
	}
	if w.deadline == 0 {
		w.mark = now
	}
	w.deadline, w.holder = deadline, ""
	given := st.Granted - w.granted
	w.granted = st.Granted
	if !w.kind.IsShare() {
		return
	}
	if w.x.Per != st.X.Per {
		w.carry = 0
	}
	w.x = st.X
	w.beta = max(st.Beta, min(w.beta, 4*w.prefetched))
	w.balance = max(0, min(w.balance+given, w.beta-w.prefetched))
}
