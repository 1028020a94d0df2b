package main

import (
	"io"
	"math"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"github.com/ration-dev/ration/internal/cli"
	"github.com/ration-dev/ration/sim/batch"
)

// bar shows how far the runs are, on a terminal; elsewhere it does nothing.
type bar struct {
	writer  progress.Writer
	tracker *progress.Tracker
	done    chan struct{}
}

// barParts is how finely the bar moves.
const barParts = 1000

func newBar(w io.Writer, jobs []batch.Job) *bar {
	if !cli.Terminal(w) {
		return &bar{}
	}
	runs := 0
	for _, j := range jobs {
		runs += j.Runs()
	}
	b := &bar{writer: progress.NewWriter(), tracker: &progress.Tracker{Message: "simulating", Total: barParts}, done: make(chan struct{})}
	b.writer.SetOutputWriter(w)
	b.writer.SetUpdateFrequency(200 * time.Millisecond)
	b.writer.SetTrackerLength(30)
	b.writer.Style().Visibility.Value = false
	b.writer.Style().Visibility.ETA = true
	b.writer.AppendTracker(b.tracker)
	go func() {
		defer close(b.done)
		b.writer.Render()
	}()
	return b
}

// update moves the bar to a part of the whole.
func (b *bar) update(_ int, part float64) {
	if b.tracker != nil {
		b.tracker.SetValue(int64(math.Floor(part * (barParts - 1))))
	}
}

// stop ends the bar and waits until it writes no more.
func (b *bar) stop() {
	if b.tracker == nil {
		return
	}
	b.tracker.MarkAsDone()
	b.writer.Stop()
	<-b.done
}
