package agent

import (
	"fmt"
	"testing"
	"time"

	"github.com/ration-dev/ration/lease"
)

// drain admits from a budget until it has nothing left.
func (b *bench) drain(budget string) (n lease.Tokens) {
	for b.decide(Check{Budgets: []string{budget}, Cost: 1, Deadline: time.Nanosecond}).Outcome == Allowed {
		n++
	}
	return n
}

// A step of the store's clock that one row's call meets mints nothing for the
// other rows either (invariant 6): what the process knows of that clock is
// worth nothing from then on. Seen to catch: taking the stepped time as seen
// for every row.
func TestAStepSeenByOneRowMintsNothingForOthers(t *testing.T) {
	b := newBench(t, lumps("acme/x"), lumps("acme/y"))
	for _, name := range []string{"acme/x", "acme/y"} {
		b.grant(name, 0, lease.State{X: perSecond(100), Beta: 1000})
		b.drain(name)
	}
	b.now += time.Second
	b.skew += 10 * time.Second
	b.drain("acme/x")
	if n := b.drain("acme/y"); n > 101 {
		t.Errorf("%d admitted where a second minted 100", n)
	}
	b.now += time.Second
	for _, name := range []string{"acme/x", "acme/y"} {
		if n := b.drain(name); n < 99 || n > 101 {
			t.Errorf("%s: %d admitted of the 100 of the second after the step", name, n)
		}
	}
}

// A row's first call shows the store's clock as it stands; what it has stepped
// by since other rows were seen mints nothing for those. Seen to catch: taking
// a first call's time as seen for every row.
func TestAFirstCallPassesNoStepOn(t *testing.T) {
	const rows = 10
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 0, lease.State{X: perSecond(100), Beta: 1000})
	b.drain("acme/x")
	list := []string{"acme/x"}
	for i := range rows {
		list = append(list, fmt.Sprint("acme/new", i))
	}
	b.list(list...)
	var admitted lease.Tokens
	for _, name := range list[1:] {
		b.now += 100 * time.Millisecond
		b.skew += 40 * time.Millisecond
		b.grant(name, 0, lease.State{X: perSecond(100), Beta: 1000})
		b.drain(name)
		admitted += b.drain("acme/x")
	}
	if admitted > rows*10+1 {
		t.Errorf("%d admitted where time minted %d", admitted, rows*10)
	}
}

// A repeated request is answered as it was, and what the store said back then
// is not taken for the present. Seen to catch: booking a kept answer's time,
// which lost what every share of the region had not yet minted.
func TestARepetitionLosesNoTime(t *testing.T) {
	b := newBench(t, lumps("acme/x"))
	b.grant("acme/x", 0, lease.State{X: perSecond(100), Beta: 1000, Granted: 1})
	c := Check{Budgets: []string{"acme/x"}, Cost: 1, RequestID: "r"}
	for range 2 {
		if a := b.decide(c); a.Outcome != Allowed {
			t.Fatalf("%+v", a)
		}
		b.now += 5 * time.Second
	}
	if n := b.drain("acme/x"); n < 990 || n > 1000 {
		t.Errorf("%d admitted of the 1000 of ten seconds", n)
	}
}
