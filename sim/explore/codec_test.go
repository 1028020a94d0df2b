package explore

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// What the codec leaves out or makes relative has no bearing on what follows:
// along random walks, the world as it came about and the one that was written
// and read go the same way at every step.
//
// Seen to fail when a dead lease's deadline is not kept, and when a share's
// mark is taken for the present.
func TestWhatIsLeftOutMakesNoDifference(t *testing.T) {
	for _, c := range Small() {
		if c.Processes > 1 || c.tracked() {
			continue // which process is which is not kept
		}
		random := rand.New(rand.NewPCG(1, 2))
		for range 60 {
			walk(t, &c, random)
		}
	}
}

func walk(t *testing.T, c *Config, random *rand.Rand) {
	w := newWorker(c, false)
	real := root(c)
	for range 40 {
		state := append([]byte(nil), w.encode(real)...)
		w.decode(state, &w.base)
		// Messages are in the order of their bytes in what was read.
		real.requests = append(real.requests[:0], w.base.requests...)
		real.replies = append(real.replies[:0], w.base.replies...)
		w.list = w.m.actions(&w.base, w.list)
		a := w.list[random.IntN(len(w.list))]
		w.decode(state, &w.to)
		before := w.m.describe(&w.to, a)
		could := w.m.apply(&w.to, a)
		if !could {
			continue // what could not be done may have been begun
		}
		if !w.m.apply(real, a) {
			t.Fatalf("%s: %s: possible only after it was read", c.Name, before)
		}
		kept := append([]byte(nil), w.encode(&w.to)...)
		if !bytes.Equal(kept, w.encode(real)) {
			t.Fatalf("%s: %s makes\n%s of what was read, else\n%s", c.Name, before, w.m.summary(&w.to), w.m.summary(real))
		}
	}
}
