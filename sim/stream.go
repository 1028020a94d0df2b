package sim

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/ration-dev/ration/lease"
)

// stream is one budget's arrivals of one workload, or those of all its
// budgets at once.
type stream struct {
	w      *world
	spec   *Workload
	region *region
	// names and budgets are asked by every request.
	names   []string
	budgets []*budget
	weight  float64
	segment func(time.Duration) Segment
	watch   Watcher
	arrive  *rand.Rand
	costs   *rand.Rand

	now Segment
	// from is when the segment began to count, or the time up to which bulk
	// arrivals were drawn; carry is what even arrivals leave over.
	from  time.Duration
	carry float64
	// part is the part of a microsecond by which the next arrival was early.
	part float64
	// fraction is the part of AtOnce that this stream's weight leaves over.
	fraction float64
}

// never is after every run.
const never = time.Duration(math.MaxInt64)

// newStreams makes the streams of a workload, one per budget unless all are
// asked at once.
func newStreams(w *world, i int) []*stream {
	spec := &w.o.Workloads[i]
	name := spec.Name
	var all []*stream
	if spec.All || len(spec.Budgets) == 1 {
		all = append(all, newStream(w, spec, name, spec.Budgets, 1))
		return all
	}
	sum := 0.0
	weights := make([]float64, len(spec.Budgets))
	for k := range weights {
		weights[k] = exp(-float64(spec.Zipf * ln(float64(k+1))))
		sum += weights[k]
	}
	for k, b := range spec.Budgets {
		all = append(all, newStream(w, spec, name+"/"+b, []string{b}, weights[k]/sum))
	}
	return all
}

func newStream(w *world, spec *Workload, name string, budgets []string, weight float64) *stream {
	s := &stream{
		w: w, spec: spec, region: w.regionNamed(spec.Region), names: budgets, weight: weight,
		arrive: source(w.o.Seed, "arrive/"+name), costs: source(w.o.Seed, "cost/"+name),
	}
	for _, b := range budgets {
		s.budgets = append(s.budgets, w.budgetNamed(b))
	}
	// Streams of one workload share its course: bursts come to all at once.
	s.segment = spec.Pattern.Start(source(w.o.Seed, "pattern/"+spec.Name))
	s.watch, _ = spec.Pattern.(Watcher)
	return s
}

// begin puts the stream's first event into the heap.
func (s *stream) begin() {
	s.enter(0)
	if s.w.o.Bulk > 0 {
		s.w.at(s.w.o.Bulk, (*bulkStep)(s))
		return
	}
	s.resume(s.gap())
}

// gap draws the way to the next arrival, in mean distances.
func (s *stream) gap() float64 {
	if s.spec.Even {
		return 1
	}
	return s.arrive.ExpFloat64()
}

// enter begins the segment at t, and lets come what comes at once.
func (s *stream) enter(t time.Duration) {
	s.now, s.from = s.segment(t), t
	if s.now.Until < 0 {
		s.now.Until = never
	}
	s.now.Until = max(s.now.Until, t+time.Microsecond)
	s.burst(s.now.AtOnce)
	if s.watch != nil {
		s.burst(s.watch.Watch(t, s.w.held(s.budgets[0]), s.budgets[0].limit()))
	}
}

// burst lets n requests come now.
func (s *stream) burst(n int64) {
	if n == Everything {
		n = s.everything()
	} else if n > 0 && s.weight < 1 {
		share := float64(float64(n)*s.weight) + s.fraction
		n = int64(math.Floor(share))
		s.fraction = share - float64(n)
	}
	if n <= 0 {
		return
	}
	if s.w.o.Bulk > 0 || n > 1000 {
		s.many(n)
		return
	}
	for range n {
		s.request(1, s.cost())
	}
}

// everything is how many requests the region can admit now, and one more.
func (s *stream) everything() int64 {
	held := s.w.held(s.budgets[0])[s.region.index]
	cost := max(1, s.cost())
	return int64(held/cost) + 1
}

func (s *stream) rate() float64 { return float64(s.now.PerSecond * s.weight) }

// segmentStart is the beginning of a segment; carry holds what is left of the
// way to the next arrival.
type segmentStart stream

func (e *segmentStart) fire() {
	s := (*stream)(e)
	left := s.carry
	s.enter(s.w.now)
	s.resume(left)
}

// resume goes on towards the next arrival with so much of its way left.
func (s *stream) resume(left float64) {
	rate, t := s.rate(), s.w.now
	span := math.Inf(1)
	if s.now.Until != never {
		span = (s.now.Until - t).Seconds()
	}
	if rate > 0 && float64(rate*span) >= left && left/rate < 1e9 {
		// What is left over of a microsecond is not lost, or rates would sag.
		us := float64(left/rate*1e6) + s.part
		s.part = us - math.Floor(us)
		if due := t + time.Duration(us)*time.Microsecond; due < s.now.Until {
			s.w.at(due, (*arrival)(s))
			return
		}
	}
	if s.now.Until == never {
		return
	}
	s.carry = max(0, left-float64(rate*span))
	s.w.at(s.now.Until, (*segmentStart)(s))
}

// arrival is one request.
type arrival stream

func (e *arrival) fire() {
	s := (*stream)(e)
	s.request(1, s.cost())
	s.resume(s.gap())
}

// bulkStep decides what came since the last step.
type bulkStep stream

func (e *bulkStep) fire() {
	s := (*stream)(e)
	mean := 0.0
	t := s.w.now - s.w.o.Bulk
	for t < s.w.now {
		end := min(s.now.Until, s.w.now)
		mean += float64(s.rate() * (end - t).Seconds())
		t = end
		if t >= s.now.Until && t <= s.w.now {
			s.enter(t)
		}
	}
	n := int64(0)
	if s.spec.Even {
		n = int64(math.Floor(mean + s.carry))
		s.carry += mean - float64(n)
	} else {
		n = poisson(s.arrive, mean)
	}
	if n > 0 {
		s.many(n)
	}
	s.w.after(s.w.o.Bulk, e)
}

// many lets n requests come at once, as few groups of equal cost.
func (s *stream) many(n int64) {
	c := &s.spec.Cost
	if len(c.Choices) == 0 && c.Median == 0 {
		s.request(n, s.cost())
		return
	}
	// Up to 64 costs are drawn; each stands for an equal part of the rest.
	draws := min(n, 64)
	for i := range draws {
		s.request((n*(i+1))/draws-(n*i)/draws, s.cost())
	}
}

// cost draws one request's cost.
func (s *stream) cost() lease.Tokens {
	c := &s.spec.Cost
	switch {
	case len(c.Choices) > 0:
		return c.choose(s.costs)
	case c.Median > 0:
		n := float64(float64(c.Median) * exp(float64(c.Sigma*s.costs.NormFloat64())))
		return max(1, min(lease.Tokens(math.Floor(n+0.5)), max(c.Most, 1)))
	}
	return max(1, c.Fixed)
}

func (c *Cost) choose(r *rand.Rand) lease.Tokens {
	var sum int64
	for _, k := range c.Choices {
		sum += k.Weight
	}
	at := r.Int64N(max(1, sum))
	for _, k := range c.Choices {
		if at -= k.Weight; at < 0 {
			return k.Cost
		}
	}
	return 1
}
