package allocation

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/ration-dev/ration/lease"
)

const clockDrift = 1000

// world is a database with a clock and the ledger's clock row, in true time,
// under replicas whose monotonic clocks are wrong within the drift.
type world struct {
	true     time.Duration
	dbRate   int64         // ppm
	dbStep   time.Duration // sum of the clock's steps
	row      ClockRow
	replicas []*observer
	seen     []observation // of all replicas, in order of true time
}

type observer struct {
	clock   Clock
	rate    int64 // ppm of its monotonic clock
	born    time.Duration
	lastTry time.Duration
	written time.Duration
	mine    []observation
}

type observation struct {
	sent, received, at time.Duration // true time
	now                Now
}

const worldEpoch = lease.Time(1_700_000_000_000_000)

func drifted(d time.Duration, ppm int64) time.Duration {
	return (d + time.Duration(int64(d/time.Microsecond)*ppm/1_000_000)*time.Microsecond).Truncate(time.Microsecond)
}

func (w *world) db() lease.Time {
	return worldEpoch.Add(drifted(w.true, w.dbRate) + w.dbStep)
}

func (o *observer) mono(at time.Duration) time.Duration { return drifted(at-o.born, o.rate) }

// read is what a store does: read, judge, move the shift by compare-and-set
// and read again if need be, and write the governed time once a second. Time
// passes on the way there and back.
func (w *world) read(o *observer, out, back time.Duration) Now {
	for {
		sent := w.true
		w.true += out
		r := ClockReading{Row: w.row, DB: w.db(), Sent: o.mono(sent)}
		at := w.true
		w.true += back
		r.Received = o.mono(w.true)
		next, v := o.clock.Govern(r, clockDrift)
		o.clock = next
		if v.Move {
			if w.row.Shift == r.Row.Shift {
				w.row.Shift = v.Shift
			}
			continue
		}
		o.lastTry = w.true
		ob := observation{sent: sent, received: w.true, at: at, now: v.Now}
		o.mine, w.seen = append(o.mine, ob), append(w.seen, ob)
		if w.row.Governed == 0 || w.true-o.written >= time.Second {
			w.row.Governed = max(w.row.Governed, v.Now.Governed)
			w.row.Raw = max(w.row.Raw, v.Now.Raw)
			o.written = w.true
		}
		return v.Now
	}
}

func (w *world) start(rate int64) *observer {
	o := &observer{rate: rate, born: w.true}
	w.replicas = append(w.replicas, o)
	return o
}

func newWorld(rate int64, replicas ...int64) *world {
	w := &world{dbRate: rate}
	for _, r := range replicas {
		w.read(w.start(r), time.Millisecond, time.Millisecond)
	}
	return w
}

// pass lets d go by while every replica reads each second, as its runner does.
func (w *world) pass(d time.Duration) {
	for end := w.true + d; w.true < end; {
		w.true += min(100*time.Millisecond, end-w.true)
		for _, o := range w.replicas {
			if w.true-o.lastTry >= time.Second {
				w.read(o, time.Millisecond, time.Millisecond)
			}
		}
	}
}

// span is how much governed time the first replica sees go by.
func (w *world) span(f func()) time.Duration {
	o := w.replicas[0]
	before := w.read(o, 0, 0).Governed
	f()
	return w.read(o, 0, 0).Governed.Sub(before)
}

func between(t *testing.T, what string, got, low, high time.Duration) {
	t.Helper()
	if got < low || got > high {
		t.Errorf("%s: governed time went on by %v, want %v to %v", what, got, low, high)
	}
}

func TestAStepOfTheDatabaseClockMintsNothing(t *testing.T) {
	t.Run("forward", func(t *testing.T) {
		w := newWorld(0, 0, 0)
		got := w.span(func() { w.pass(10 * time.Second); w.dbStep += time.Hour; w.pass(10 * time.Second) })
		between(t, "a step forward by an hour", got, 19*time.Second, 20*time.Second+30*time.Millisecond)
	})
	t.Run("backward", func(t *testing.T) {
		w := newWorld(0, 0, 0)
		got := w.span(func() { w.pass(10 * time.Second); w.dbStep -= time.Hour; w.pass(10 * time.Second) })
		between(t, "a step back by an hour", got, 17*time.Second, 20*time.Second+30*time.Millisecond)
	})
	t.Run("back and forth", func(t *testing.T) {
		w := newWorld(0, 0, 0)
		got := w.span(func() {
			w.dbStep -= time.Hour
			w.pass(5 * time.Second)
			w.dbStep += time.Hour
			w.pass(5 * time.Second)
		})
		between(t, "an hour back and forth", got, 7*time.Second, 10*time.Second+30*time.Millisecond)
	})
	t.Run("many small ones", func(t *testing.T) {
		w := newWorld(0, 0)
		began := w.true
		got := w.span(func() {
			for range 1000 {
				w.true += 10 * time.Millisecond
				w.dbStep += time.Millisecond
				w.read(w.replicas[0], time.Millisecond, time.Millisecond)
			}
		})
		// The slack of two readings is 4 ms in all, not 4 ms each.
		passed := w.true - began
		between(t, "a thousand steps of 1 ms", got, passed, passed+20*time.Millisecond)
	})
}

func TestAReplicaThatStartsGoesOnFromTheStoredTime(t *testing.T) {
	w := newWorld(0, 0)
	stored := w.row.Governed
	w.true += time.Hour
	now := w.read(w.start(0), time.Millisecond, time.Millisecond)
	if got := now.Governed.Sub(stored); got > 5*time.Millisecond {
		t.Errorf("after an hour's pause governed time went on by %v, want the readings' own time", got)
	}
	if got := now.Raw.Sub(worldEpoch); got < time.Hour {
		t.Errorf("raw time is %v after the start, want the database's hour", got)
	}
}

func TestAReplicaThatStartsBesideOthersCostsNothing(t *testing.T) {
	w := newWorld(0, 0)
	w.pass(time.Minute)
	w.read(w.start(0), time.Millisecond, time.Millisecond)
	if w.row.Shift != 0 {
		t.Errorf("the shift is %v, want 0", w.row.Shift)
	}
}

func TestASuspendedReplicaDoesNotHoldTheOthersBack(t *testing.T) {
	w := newWorld(0, 0, 0)
	slept := w.replicas[1]
	w.replicas = w.replicas[:1]
	w.pass(time.Minute)
	slept.born += time.Minute // its monotonic clock stood still
	w.read(slept, time.Millisecond, time.Millisecond)
	if w.row.Shift > 1200*time.Millisecond {
		t.Errorf("the shift is %v, want at most the age of the stored time", w.row.Shift)
	}
}

// Seen to catch: a ceiling that is never enforced, an anchor that every
// reading replaces, a governed time without a floor.
func TestGovernedTimeOfOneReplicaUnderRandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := randomSchedule(t, 1, func(w *world) { checkReplica(t, w.replicas[0]) })
		if len(w.seen) == 0 {
			t.Fatal("nothing was read")
		}
	})
}

// Seen to catch: a starter that believes any reading.
func TestGovernedTimeOfTwoReplicasUnderRandomSchedules(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, restarts := randomSchedule(t, 2, func(*world) {})
		checkTogether(t, w, restarts)
	})
}

// randomSchedule runs replicas under a database clock that steps at random.
// Where there are several, they are replaced now and then.
func randomSchedule(t *rapid.T, replicas int, check func(*world)) (w *world, restarts int) {
	ppm := rapid.Int64Range(-400, 400)
	w = newWorld(ppm.Draw(t, "dbRate"), rapid.SliceOfN(ppm, replicas, replicas).Draw(t, "rates")...)
	one := func() int { return rapid.IntRange(0, replicas-1).Draw(t, "replica") }
	ms := func(label string, low, high int64) time.Duration {
		return time.Duration(rapid.Int64Range(low, high).Draw(t, label)) * time.Millisecond
	}
	steps := 0
	for range rapid.IntRange(1, 40).Draw(t, "events") {
		switch rapid.IntRange(0, 9).Draw(t, "event") {
		case 0:
			w.dbStep += ms("step", -20_000, 20_000)
			steps++
		case 1:
			w.dbStep += ms("smallStep", -20, 20)
			steps++
		case 2:
			if replicas > 1 {
				i := one()
				w.replicas = append(w.replicas[:i:i], w.replicas[i+1:]...)
				w.read(w.start(ppm.Draw(t, "rate")), time.Millisecond, time.Millisecond)
				restarts++
			}
		case 3, 4:
			w.pass(ms("pass", 1, 5_000))
		default:
			w.true += ms("gap", 0, 300)
			w.read(w.replicas[one()], ms("out", 0, 50), ms("back", 0, 50))
			w.pass(0)
		}
		if steps == 0 && w.row.Shift != 0 {
			t.Fatalf("the shift is %v although the clock never stepped", w.row.Shift)
		}
		check(w)
	}
	return w, restarts
}

// checkReplica holds the promise of Clock's comment, its drift widened by that
// of the replica's own monotonic clock, and that nothing decreases.
func checkReplica(t *rapid.T, o *observer) {
	last := o.mine[len(o.mine)-1]
	for _, early := range o.mine {
		got := last.now.Governed.Sub(early.now.Governed)
		if limit := drifted(last.received-early.sent, 2*clockDrift) + 10*time.Microsecond; got > limit {
			t.Fatalf("one replica saw %v go by in at most %v", got, limit)
		}
		if got < 0 || last.now.Raw < early.now.Raw {
			t.Fatalf("time decreased for one replica: %+v after %+v", last.now, early.now)
		}
	}
}

// checkTogether bounds what any window of true time gains and loses across
// replicas: by the gap between two readings of one replica, plus the starters'
// slack.
func checkTogether(t *rapid.T, w *world, restarts int) {
	const gap = 1500 * time.Millisecond
	slack := gap + time.Duration(restarts)*clockFresh
	for i, early := range w.seen {
		for _, late := range w.seen[i:] {
			got := late.now.Governed.Sub(early.now.Governed)
			if limit := drifted(late.received-early.sent, 2*clockDrift) + slack; got > limit {
				t.Fatalf("the replicas saw %v go by in at most %v", got, limit)
			}
			if got < -slack {
				t.Fatalf("governed time decreased by %v from one replica to another", -got)
			}
		}
	}
}
