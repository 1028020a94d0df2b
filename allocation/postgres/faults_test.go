package postgres_test

import (
	"context"
	"errors"
	"testing"

	"github.com/ration-dev/ration/allocation"
	"github.com/ration-dev/ration/allocation/postgres"
	"github.com/ration-dev/ration/internal/testpg"
	"github.com/ration-dev/ration/lease"
)

// add is a step that raises one pool by one, and by nothing when its sequence
// is the one that did so before: as a lease request does.
func add(key string, seq uint64, granted *int64) func(allocation.Now, []*allocation.State) error {
	return func(_ allocation.Now, states []*allocation.State) error {
		s := states[0]
		var l *allocation.Lease
		for i := range s.Leases {
			if s.Leases[i].Region == key {
				l = &s.Leases[i]
			}
		}
		if l == nil {
			s.Leases = append(s.Leases, allocation.Lease{Region: key, Kind: 3, Incarnation: "i"})
			l = &s.Leases[len(s.Leases)-1]
		}
		if seq > l.Seq {
			l.Seq = seq
			l.Granted++
			s.Pools[0].Totals.LumpGranted++
		}
		*granted = int64(l.Granted)
		return nil
	}
}

func counted(name string) *allocation.State {
	return &allocation.State{Budget: bucket(name), Pools: []allocation.Pool{{}}}
}

// Seen to catch: a commit that broke answered with success, and one that the
// store repeats by itself as if nothing had been written.
func TestACommitWhoseOutcomeIsLostIsUnknownAndTheRetryGetsTheSame(t *testing.T) {
	proxy := newProxy(t, testpg.Database(t))
	s := open(t, proxy.url(), postgres.Options{})
	put(t, s, counted("a"))
	for i, happens := range []fate{isLost, replyLost} {
		seq, runs := uint64(i+1), 0
		var granted int64
		proxy.atCommit(func() fate { return happens })
		err := s.Update(context.Background(), []string{"a"}, func(n allocation.Now, states []*allocation.State) error {
			runs++
			return add("us", seq, &granted)(n, states)
		})
		if !errors.Is(err, allocation.ErrUnknownCommit) || runs != 1 {
			t.Fatalf("fate %d: %v after %d runs, want ErrUnknownCommit after one", happens, err, runs)
		}
		if err := s.Update(context.Background(), []string{"a"}, add("us", seq, &granted)); err != nil {
			t.Fatal(err)
		}
		if granted != int64(seq) {
			t.Errorf("after the retry of sequence %d, %d are granted", seq, granted)
		}
	}
	if got := s.Stats.UnknownCommits.Load(); got != 2 {
		t.Errorf("%d unknown commits were counted, want 2", got)
	}
}

func TestAConnectionThatBreaksBeforeTheCommitIsRetried(t *testing.T) {
	proxy := newProxy(t, testpg.Database(t))
	s := open(t, proxy.url(), postgres.Options{})
	put(t, s, counted("a"))
	runs := 0
	var granted int64
	err := s.Update(context.Background(), []string{"a"}, func(n allocation.Now, states []*allocation.State) error {
		if runs++; runs == 1 {
			proxy.cutAll()
		}
		return add("us", 1, &granted)(n, states)
	})
	if err != nil || runs != 2 || granted != 1 {
		t.Errorf("Update: %v after %d runs with %d granted, want one grant in the second run", err, runs, granted)
	}
}

// Seen to catch: a commit that runs under the caller's context.
func TestACommitGoesOnWhenTheCallersContextEnds(t *testing.T) {
	proxy := newProxy(t, testpg.Database(t))
	s := open(t, proxy.url(), postgres.Options{})
	put(t, s, counted("a"))
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	proxy.atCommit(func() fate { cancel(); return passes })
	var granted int64
	if err := s.Update(ctx, []string{"a"}, add("us", 1, &granted)); err != nil {
		t.Errorf("Update whose context ended during its commit: %v", err)
	}
}

func TestAnUpdateWhoseContextEndedIsUnavailable(t *testing.T) {
	s := open(t, testpg.Database(t), postgres.Options{})
	put(t, s, counted("a"))
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	err := s.Update(ctx, []string{"a"}, func(allocation.Now, []*allocation.State) error { return nil })
	if lease.CodeOf(err) != lease.Unavailable || !errors.Is(err, context.Canceled) {
		t.Errorf("Update under an ended context: %v", err)
	}
}

// Seen to catch: a sweep that waits for locks.
func TestDuePassesOverWhatIsLocked(t *testing.T) {
	s := open(t, testpg.Database(t), postgres.Options{})
	states := []*allocation.State{counted("a"), counted("b")}
	for _, st := range states {
		st.Leases = []allocation.Lease{{Region: "us", Kind: lease.Lump, Incarnation: "i", Reclaim: 1}}
	}
	put(t, s, states...)
	err := s.Update(context.Background(), []string{"a"}, func(allocation.Now, []*allocation.State) error {
		due, err := s.Due(context.Background(), 10)
		if len(due) != 1 || due[0] != "b" {
			t.Errorf("due while a is locked: %q, %v; want b", due, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
