package sim

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/ration-dev/ration/lease"
)

// Constant is the same rate all the time, from From to Until (0: to the end).
type Constant struct {
	PerSecond   float64
	From, Until time.Duration
}

// Start is Pattern's.
func (c Constant) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		switch {
		case t < c.From:
			return Segment{Until: c.From}
		case c.Until == 0:
			return Segment{PerSecond: c.PerSecond, Until: -1}
		case t < c.Until:
			return Segment{PerSecond: c.PerSecond, Until: c.Until}
		}
		return Segment{Until: -1}
	}
}

// Phase is a rate from a time on.
type Phase struct {
	At        time.Duration
	PerSecond float64
	// AtOnce requests come at At itself, or Everything.
	AtOnce int64
}

// Phases is a rate that changes at given times; 0 before the first. They are
// in order of time. Cycle, if not 0, repeats them.
type Phases struct {
	List  []Phase
	Cycle time.Duration
}

// Start is Pattern's.
func (p Phases) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		round := time.Duration(0)
		if p.Cycle > 0 {
			round = t / p.Cycle * p.Cycle
			t -= round
		}
		next, found := slices.BinarySearchFunc(p.List, t, func(q Phase, t time.Duration) int { return int(q.At - t) })
		s := Segment{Until: -1}
		if p.Cycle > 0 {
			s.Until = round + p.Cycle
		}
		at := next
		if !found {
			at--
		} else {
			s.AtOnce = p.List[at].AtOnce
			next++
		}
		if at >= 0 {
			s.PerSecond = p.List[at].PerSecond
		} else if p.Cycle > 0 && len(p.List) > 0 && round > 0 {
			s.PerSecond = p.List[len(p.List)-1].PerSecond
		}
		if next < len(p.List) && (p.Cycle == 0 || p.List[next].At < p.Cycle) {
			s.Until = round + p.List[next].At
		}
		return s
	}
}

// Bursty is a Markov-modulated Poisson stream: it stays in each state for an
// exponential time with the state's mean, then goes on to the next at random.
type Bursty struct{ States []BurstState }

// BurstState is one state of Bursty.
type BurstState struct {
	PerSecond float64
	Mean      time.Duration
}

// Start is Pattern's.
func (b Bursty) Start(r *rand.Rand) func(time.Duration) Segment {
	state := 0
	first := true
	return func(t time.Duration) Segment {
		if n := len(b.States); !first && n > 1 {
			state = (state + 1 + r.IntN(n-1)) % n
		}
		first = false
		s := b.States[state]
		stay := time.Duration(float64(float64(s.Mean) * r.ExpFloat64())).Truncate(time.Microsecond)
		return Segment{PerSecond: s.PerSecond, Until: t + max(stay, time.Millisecond)}
	}
}

// Diurnal follows the day: Mean times 1 + Swing·sin, with the peak at PeakAt
// of the day, moved by Shift (a time zone). Swing is 0 to 1.
type Diurnal struct {
	Mean   float64
	Swing  float64
	PeakAt time.Duration
	Shift  time.Duration
	// Start of the run within the day.
	Begin time.Duration
}

// Start is Pattern's.
func (d Diurnal) Start(*rand.Rand) func(time.Duration) Segment {
	const day, step = 24 * time.Hour, time.Minute
	return func(t time.Duration) Segment {
		at := t/step*step + step/2 + d.Begin + d.Shift - d.PeakAt
		phase := float64((at%day+day)%day) / float64(day)
		rate := float64(d.Mean * (1 + float64(d.Swing*sine(phase+0.25))))
		return Segment{PerSecond: max(0, rate), Until: (t/step + 1) * step}
	}
}

// Flash is a flash crowd: Base, then within Rise up to Peak, for Hold, and
// back within Fall.
type Flash struct {
	Base, Peak           float64
	At, Rise, Hold, Fall time.Duration
}

// Start is Pattern's.
func (f Flash) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		rise, hold, fall := f.At+f.Rise, f.At+f.Rise+f.Hold, f.At+f.Rise+f.Hold+f.Fall
		ramp := func(from, to float64, start, length time.Duration) Segment {
			step := max(length/50, time.Microsecond)
			i := (t - start) / step
			part := float64(float64(i*step+step/2) / float64(length))
			return Segment{PerSecond: from + float64((to-from)*min(1, part)), Until: min(start+(i+1)*step, start+length)}
		}
		switch {
		case t < f.At:
			return Segment{PerSecond: f.Base, Until: f.At}
		case t < rise:
			return ramp(f.Base, f.Peak, f.At, f.Rise)
		case t < hold:
			return Segment{PerSecond: f.Peak, Until: hold}
		case t < fall:
			return ramp(f.Peak, f.Base, hold, f.Fall)
		}
		return Segment{PerSecond: f.Base, Until: -1}
	}
}

// Hot is one region's part of a total rate of which one region at a time, in
// turn, has Share: the region number Index of Regions. The others have equal
// parts of the rest. Demand moves every Every.
type Hot struct {
	Total          float64
	Share          float64
	Index, Regions int
	Every          time.Duration
}

// Start is Pattern's.
func (h Hot) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		k := t / h.Every
		part := h.Share
		if int(k)%h.Regions != h.Index {
			part = (1 - h.Share) / float64(h.Regions-1)
		}
		return Segment{PerSecond: float64(h.Total * part), Until: (k + 1) * h.Every}
	}
}

// Moves is Mover's.
func (h Hot) Moves(length time.Duration) []time.Duration {
	var all []time.Duration
	for k := 1; time.Duration(k)*h.Every < length; k++ {
		if k%h.Regions == h.Index {
			all = append(all, time.Duration(k)*h.Every)
		}
	}
	return all
}

// Hoarder looks hungry and dumps: a quiet stream of Quiet per second, and
// everything that the region can spend at First and every Every (0: once).
type Hoarder struct {
	Quiet        float64
	First, Every time.Duration
}

// Start is Pattern's.
func (h Hoarder) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		if t < h.First {
			return Segment{PerSecond: h.Quiet, Until: h.First}
		}
		s := Segment{PerSecond: h.Quiet, Until: -1}
		since := t - h.First
		if h.Every > 0 {
			s.Until = h.First + (since/h.Every+1)*h.Every
			since %= h.Every
		}
		if since == 0 {
			s.AtOnce = Everything
		}
		return s
	}
}

// Lurker waits for the worst moment: it looks every Look, and when all regions
// together hold at least Part of the limit, it spends everything that its own
// region has. One in each region makes them spend at one instant. Then it is
// quiet for Rest.
type Lurker struct {
	Quiet      float64
	Look, Rest time.Duration
	Part       float64
}

// Start is Pattern's.
func (l Lurker) Start(*rand.Rand) func(time.Duration) Segment {
	return func(t time.Duration) Segment {
		return Segment{PerSecond: l.Quiet, Until: (t/l.Look + 1) * l.Look}
	}
}

// Watch is Watcher's.
func (l Lurker) Watch(t time.Duration, held []lease.Tokens, limit lease.Tokens) int64 {
	if l.Rest > 0 && t%(l.Rest+l.Look) < l.Rest {
		return 0
	}
	var sum lease.Tokens
	for _, n := range held {
		sum += n
	}
	if float64(sum) < float64(l.Part*float64(limit)) {
		return 0
	}
	return Everything
}

// Bin is a count of requests in a span of time.
type Bin struct {
	At    time.Duration
	Count float64
}

// Replay is a recorded load: bins in order of time, each lasting until the
// next, the last as long as the one before. Shift moves it (another time
// zone), around its own length if Cycle is set; Scale multiplies it (0: 1);
// Faster plays it so many times faster (0: 1), with as many requests.
type Replay struct {
	Bins   []Bin
	Shift  time.Duration
	Scale  float64
	Faster float64
	Cycle  bool
}

// length is the trace's own.
func (p Replay) length() time.Duration {
	n := len(p.Bins)
	if n < 2 {
		return time.Minute
	}
	return p.Bins[n-1].At + (p.Bins[n-1].At - p.Bins[n-2].At) - p.Bins[0].At
}

// Start is Pattern's.
func (p Replay) Start(*rand.Rand) func(time.Duration) Segment {
	scale, faster := p.Scale, p.Faster
	if scale == 0 {
		scale = 1
	}
	if faster == 0 {
		faster = 1
	}
	length := p.length()
	return func(t time.Duration) Segment {
		if len(p.Bins) == 0 {
			return Segment{Until: -1}
		}
		at := time.Duration(float64(float64(t)*faster)) + p.Shift
		if p.Cycle {
			at = (at%length + length) % length
		}
		wait := func(d time.Duration) time.Duration {
			return t + max(roundUp(time.Duration(float64(d)/faster)), time.Microsecond)
		}
		at += p.Bins[0].At
		if at < p.Bins[0].At {
			return Segment{Until: wait(p.Bins[0].At - at)}
		}
		i, found := slices.BinarySearchFunc(p.Bins, at, func(b Bin, t time.Duration) int { return int(b.At - t) })
		if !found {
			i--
		}
		end := p.Bins[0].At + length
		if i+1 < len(p.Bins) {
			end = p.Bins[i+1].At
		}
		if at >= end {
			return Segment{Until: -1}
		}
		span := (end - p.Bins[i].At).Seconds()
		return Segment{PerSecond: float64(float64(p.Bins[i].Count*scale)/span) * faster, Until: wait(end - at)}
	}
}

// Sum is several patterns at once.
type Sum []Pattern

// Start is Pattern's.
func (s Sum) Start(r *rand.Rand) func(time.Duration) Segment {
	parts := make([]func(time.Duration) Segment, len(s))
	now := make([]Segment, len(s))
	for i := range s {
		parts[i] = s[i].Start(rand.New(rand.NewPCG(r.Uint64(), uint64(i))))
	}
	return func(t time.Duration) Segment {
		sum := Segment{Until: -1}
		for i := range parts {
			if now[i].Until >= 0 && now[i].Until <= t {
				now[i] = parts[i](t)
			} else {
				now[i].AtOnce = 0
			}
			sum.PerSecond += now[i].PerSecond
			switch {
			case now[i].AtOnce == Everything || sum.AtOnce == Everything:
				sum.AtOnce = Everything
			default:
				sum.AtOnce += now[i].AtOnce
			}
			if u := now[i].Until; u >= 0 && (sum.Until < 0 || u < sum.Until) {
				sum.Until = u
			}
		}
		return sum
	}
}
