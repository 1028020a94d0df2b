package cli

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"
)

func TestALargeHeapIsCollectedAsUsual(t *testing.T) {
	for live, want := range map[uint64]int{
		math.MaxUint64: 100, 1 << 30: 100, mostGarbage: 100, mostGarbage/2 + 1: 100, mostGarbage / 2: 200, mostGarbage / 16: 1600,
		1: 1600, 0: 1600,
	} {
		if got := collectAt(live); got != want {
			t.Errorf("%d bytes live: at %d %%, want %d", live, got, want)
		}
	}
}

// Seen to catch: no tuning at all, and a percentage in proportion to a heap of
// less than 4 MB, which puts the next collection off for gigabytes.
func TestLittleGarbageIsNotCollected(t *testing.T) {
	t.Setenv("GOGC", "")
	before := debug.SetGCPercent(100)
	defer debug.SetGCPercent(before)
	const leastGarbage = garbageTimes * 4 << 20
	tuneCollector()
	for range 3 {
		settle(t)
		if n := collections(allocate(leastGarbage / 4)); n > 0 {
			t.Errorf("%d collections of a quarter of what garbage may be", n)
		}
		// What is allocated while a collection marks counts as live, and so the next
		// may be put off as far as it ever is. One begins before all garbage is there
		// that may be: by a twentieth, or by more on a busy machine.
		if n := collections(allocate(4 * mostGarbage)); n < 2 || n > 2*4*mostGarbage/leastGarbage {
			t.Errorf("%d collections of four times what garbage may be", n)
		}
	}
}

// settle collects until the heap counts as small: what is allocated while a
// collection marks counts as live, and is looked at again after the next one.
func settle(t *testing.T) {
	percent := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	for range 1000 {
		runtime.GC()
		time.Sleep(time.Millisecond)
		if metrics.Read(percent); percent[0].Value.Uint64() >= 1000 {
			return
		}
	}
	t.Fatalf("a small heap is collected at %d %%", percent[0].Value.Uint64())
}

func collections(do func()) uint32 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.NumGC - before.NumGC
}

var sink []byte

func allocate(n int) func() {
	return func() {
		for ; n > 0; n -= 4096 {
			sink = make([]byte, 4096)
		}
	}
}
