package load

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"sync"
	"time"
)

// Unary is a unary call over gRPC that is made again and again.
type Unary struct {
	// Method is its full name, as in "/package.Service/Method".
	Method string
	// Request is the message of the n-th call, from 0.
	Request func(n int) []byte
	// Accept fails a call whose answer is not what it should be. It is called from
	// several goroutines, and must not keep the answer.
	Accept func(answer []byte) error
}

const (
	// wireTick is how often calls that are due are written, those of one tick to
	// one connection.
	wireTick = 250 * time.Microsecond
	// wireGrace is how long answers are waited for once all calls are written.
	wireGrace = 5 * time.Second
)

// OpenWire is Open for the gRPC server on the other end of conns, at little cost
// to the caller: it writes and reads HTTP/2 frames, and has no goroutine, context
// or timer and next to no garbage for each call. Where callers and server share
// few cores, a client takes half of them, and how long calls wait for that is not
// the server's doing. A call ends with its status. OpenWire closes conns; calls
// without an answer by then count as failed, and their latency is not known.
func OpenWire(conns []net.Conn, call Unary, rate float64, length time.Duration) Result {
	// A processor more, as the goroutine that naps does not let go of its own.
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1 + runtime.GOMAXPROCS(0)))
	return openWire(conns, call, rate, length, nap)
}

func openWire(conns []net.Conn, call Unary, rate float64, length time.Duration, nap func(time.Duration)) Result {
	total := max(1, int(rate*length.Seconds()))
	w := &wire{left: total, done: make(chan struct{})}
	w.latency.h = newHistogram()
	all := make([]*wireConn, len(conns))
	var reading sync.WaitGroup
	for i, c := range conns {
		all[i] = newWireConn(c, call)
		reading.Go(func() { w.fail(all[i].read(w.ended)) })
	}
	start := time.Now()
	due := func(n int) time.Time { return start.Add(time.Duration(float64(n) / rate * float64(time.Second))) }
	for n, tick := 0, 0; n < total; tick++ {
		until := min(total, 1+int(time.Since(start).Seconds()*rate))
		all[tick%len(all)].write(n, until, due)
		n = until
		nap(wireTick)
	}
	select {
	case <-w.done:
	case <-time.After(wireGrace):
	}
	r := Result{Calls: int64(total), Length: time.Since(start)}
	for _, c := range conns {
		_ = c.Close()
	}
	reading.Wait()
	r.Failed, r.Err, r.latency = w.failed+int64(w.left), w.err, w.latency.h
	if w.left > 0 {
		r.Err = errors.Join(w.err, fmt.Errorf("%d calls without an answer", w.left))
	}
	return r
}

// wire is what connections share.
type wire struct {
	latency histogram

	mu     sync.Mutex // guards what follows
	left   int        // calls that have not ended
	failed int64
	err    error
	done   chan struct{} // closed when none is left
}

// ended books a call.
func (w *wire) ended(took time.Duration, err error) {
	w.latency.record(took)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.failed++
		w.err = err
	}
	if w.left--; w.left == 0 {
		close(w.done)
	}
}

// fail notes why a connection is not read any more.
func (w *wire) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.left > 0 && w.err == nil {
		w.err = err
	}
}
