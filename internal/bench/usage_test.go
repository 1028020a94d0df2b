package bench

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"
)

// usage sums up the processor time of processes while something runs. Where the
// system does not tell, it has nothing to say.
type usage struct {
	of     []watched
	used   []time.Duration
	length time.Duration
}

// watched is a process and what it is called.
type watched struct {
	name string
	pid  int
}

func newUsage(of []watched) *usage { return &usage{of: of, used: make([]time.Duration, len(of))} }

func (u *usage) during(do func()) {
	before, start := u.now(), time.Now()
	do()
	u.length += time.Since(start)
	for i, t := range u.now() {
		u.used[i] += t - before[i]
	}
}

func (u *usage) now() []time.Duration {
	all := make([]time.Duration, len(u.of))
	for i, w := range u.of {
		all[i], _ = processorTime(w.pid)
	}
	return all
}

// String has the shares of all cores, of those that computed at all.
func (u *usage) String() string {
	all := u.length * time.Duration(runtime.NumCPU())
	var parts []string
	for i, w := range u.of {
		if u.used[i] > 0 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", w.name, 100*float64(u.used[i])/float64(all)))
		}
	}
	if parts == nil {
		return "nothing known"
	}
	return fmt.Sprintf("%s of %d cores", strings.Join(parts, ", "), runtime.NumCPU())
}

// kernelTick is the unit of what /proc tells.
const kernelTick = 10 * time.Millisecond

// processorTime is what a process has computed for, to two ticks.
func processorTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command's name, in parentheses, may have spaces.
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	var ticks int
	for _, field := range fields[11:13] { // user and system
		n, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		ticks += n
	}
	return time.Duration(ticks) * kernelTick, nil
}

func TestProcessorTimeIsWhatTheKernelCounts(t *testing.T) {
	for processCPU(t) < 0.1 { // seconds, of this process
		runtime.GC()
	}
	least := processCPU(t)
	got, err := processorTime(os.Getpid())
	if most := processCPU(t); err != nil || got.Seconds() < least-2*kernelTick.Seconds() || got.Seconds() > most {
		t.Errorf("%v, %v: want %v s to %v s", got, err, least, most)
	}
}
