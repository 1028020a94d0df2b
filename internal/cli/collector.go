package cli

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

// What a server allocates between two garbage collections is garbageTimes what is
// live, at most mostGarbage bytes. The runtime collects whenever what is live has
// doubled, at least 4 MB: a server of few budgets that answers tens of thousands
// of requests a second would collect over a hundred times a second, which takes a
// third of its throughput, and callers wait for it. The more is live, the longer a
// collection takes, and the rarer it has to be for as few to meet one.
const (
	garbageTimes = 16
	mostGarbage  = 256 << 20
)

// TuneCollector lets a server's garbage reach sixteen times what is live, 64 to
// 256 MB, before it is collected. A heap larger than that is collected when it has
// doubled, as usual, and GOMEMLIMIT holds as usual. It changes nothing where GOGC
// is set, and holds for the life of the process.
func TuneCollector() { tune.Do(tuneCollector) }

var tune sync.Once

func tuneCollector() {
	if os.Getenv("GOGC") != "" {
		return
	}
	set := 0
	afterEachCollection(func(live uint64) {
		if p := collectAt(live); p != set { // setting it stops the world
			set = p
			debug.SetGCPercent(p)
		}
	})
}

// collectAt is the growth, in percent of live bytes, at which garbage is as much
// as it may be, or as much as is live: a multiple of a hundred. The runtime takes a
// heap of less than 4 MB for one of 4 MB.
func collectAt(live uint64) int {
	return 100 * int(max(1, min(garbageTimes, mostGarbage/max(1, live))))
}

// afterEachCollection calls do with what the last collection left, stacks
// included: at first with what is known now, then soon after each collection,
// on a goroutine of the runtime's.
func afterEachCollection(do func(live uint64)) {
	left := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/scan/stack:bytes"}, {Name: "/gc/scan/globals:bytes"}}
	var again func(struct{})
	again = func(struct{}) {
		metrics.Read(left)
		live := uint64(0)
		for _, s := range left {
			live += s.Value.Uint64()
		}
		do(live)
		// What nobody refers to is cleaned up by the next collection.
		runtime.AddCleanup(&garbage{}, again, struct{}{})
	}
	again(struct{}{})
}

// garbage has a pointer, since the runtime keeps small objects without any
// together, for as long as one of them lives.
type garbage struct{ _ *garbage }
