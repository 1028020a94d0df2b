package sim

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"time"
)

// source makes the generator of one component, from the run's seed and the
// component's name alone, so that one component's draws never shift another's.
func source(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	h.Write([]byte(name))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// exp is e^x with every operation rounded, so that all machines agree: the
// library's uses what the processor offers.
func exp(x float64) float64 {
	if x < -700 {
		return 0
	}
	x = min(x, 700)
	n := math.Floor(float64(x/math.Ln2) + 0.5)
	r := x - float64(n*math.Ln2)
	sum, term := 1.0, 1.0
	for i := 1; i < 20; i++ {
		term = float64(float64(term*r) / float64(i))
		sum = float64(sum + term)
	}
	return math.Ldexp(sum, int(n))
}

// ln is the natural logarithm of x >= 1, rounded as exp is: Newton's method.
func ln(x float64) float64 {
	_, e := math.Frexp(x)
	y := float64(float64(e) * math.Ln2)
	for range 60 {
		next := float64(y-1) + float64(x*exp(-y))
		if next == y {
			break
		}
		y = next
	}
	return y
}

// sine is the sine of a full turn times x, for x in [0, 1], rounded in every
// operation.
func sine(x float64) float64 {
	x -= math.Floor(x)
	sign := 1.0
	if x >= 0.5 {
		x, sign = x-0.5, -1
	}
	if x > 0.25 {
		x = 0.5 - x
	}
	a := float64(x * (2 * math.Pi))
	square := float64(a * a)
	sum, term := a, a
	for i := 3; i < 20; i += 2 {
		term = float64(float64(-term*square) / float64(i*(i-1)))
		sum = float64(sum + term)
	}
	return float64(sign * sum)
}

// poisson draws a count with this mean: exactly up to 30, above by the normal
// distribution, whose skew no longer shows in sums.
func poisson(r *rand.Rand, mean float64) int64 {
	switch {
	case !(mean > 0):
		return 0
	case mean <= 30:
		n := int64(0)
		for left := mean - r.ExpFloat64(); left > 0; left -= r.ExpFloat64() {
			n++
		}
		return n
	}
	return max(0, int64(math.Floor(mean+float64(math.Sqrt(mean)*r.NormFloat64())+0.5)))
}

// draw returns a delay of the distribution, in whole microseconds.
func (d Delay) draw(r *rand.Rand) time.Duration {
	sum := d.Base
	if d.Uniform > 0 {
		sum += time.Duration(r.Int64N(int64(d.Uniform)))
	}
	if d.Exponential > 0 {
		sum += time.Duration(float64(float64(d.Exponential) * r.ExpFloat64()))
	}
	if d.Lognormal > 0 {
		sum += time.Duration(float64(float64(d.Lognormal) * exp(float64(d.Sigma*r.NormFloat64()))))
	}
	return sum.Truncate(time.Microsecond)
}

// chance is true with probability p.
func chance(r *rand.Rand, p float64) bool { return p > 0 && (p >= 1 || r.Float64() < p) }
