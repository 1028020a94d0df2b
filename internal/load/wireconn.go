package load

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// wireConn is one connection to a gRPC server, on which calls are written without
// waiting for the answers of others.
type wireConn struct {
	net.Conn
	call Unary

	mu       sync.Mutex   // guards what follows
	out      bytes.Buffer // what is written next
	frames   *http2.Framer
	headers  *hpack.Encoder
	block    bytes.Buffer // of the headers of a call
	data     []byte       // of its message
	lastID   uint32
	underway map[uint32]wireCall
}

// wireCall is a call that has not ended: err is what it fails with should its
// status be OK now.
type wireCall struct {
	due time.Time
	err error
}

var errNoAnswer = errors.New("an answer without a message")

const (
	// room is what the server may write: more than answers to a run. What the
	// server has room for is not heeded: gRPC's takes what comes.
	room = 1 << 30
	// envelope stands before each gRPC message: whether it is compressed, and
	// its length.
	envelope = 5
)

func newWireConn(c net.Conn, call Unary) *wireConn {
	w := &wireConn{Conn: c, call: call, underway: map[uint32]wireCall{}}
	w.frames = http2.NewFramer(&w.out, nil)
	w.headers = hpack.NewEncoder(&w.block)
	// Nothing fails that is written to memory.
	w.out.WriteString(http2.ClientPreface)
	_ = w.frames.WriteSettings()
	_ = w.frames.WriteWindowUpdate(0, room)
	return w
}

// write writes the calls with these numbers.
func (w *wireConn) write(from, until int, due func(n int) time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for n := from; n < until; n++ {
		w.request(w.call.Request(n), due(n))
	}
	w.flush()
}

func (w *wireConn) request(message []byte, due time.Time) {
	if w.lastID++; w.lastID > 1 {
		w.lastID++ // a client's are odd
	}
	w.underway[w.lastID] = wireCall{due: due, err: errNoAnswer}
	w.block.Reset()
	for _, f := range [...]hpack.HeaderField{
		{Name: ":method", Value: "POST"},
		{Name: ":scheme", Value: "http"},
		{Name: ":path", Value: w.call.Method},
		{Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"},
		{Name: "te", Value: "trailers"},
	} {
		_ = w.headers.WriteField(f)
	}
	_ = w.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: w.lastID, BlockFragment: w.block.Bytes(), EndHeaders: true})
	w.data = binary.BigEndian.AppendUint32(append(w.data[:0], 0), uint32(len(message)))
	w.data = append(w.data, message...)
	_ = w.frames.WriteData(w.lastID, true, w.data)
}

// flush sends what was written. An error is the reader's to find.
func (w *wireConn) flush() {
	if w.out.Len() > 0 {
		_, _ = w.Write(w.out.Bytes())
		w.out.Reset()
	}
}

// read reads answers until the connection ends, which is its error.
func (w *wireConn) read(ended func(took time.Duration, err error)) error {
	frames := http2.NewFramer(nil, bufio.NewReader(w.Conn))
	frames.SetReuseFrames()
	var status string
	headers := hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == "grpc-status" {
			status = f.Value
		}
	})
	for {
		frame, err := frames.ReadFrame()
		if err != nil {
			return err
		}
		switch f := frame.(type) {
		case *http2.HeadersFrame:
			status = "missing"
			if _, err := headers.Write(f.HeaderBlockFragment()); err != nil {
				return err
			}
			if f.StreamEnded() {
				w.end(f.StreamID, status, ended)
			}
		case *http2.RSTStreamFrame:
			w.end(f.StreamID, "missing: "+f.ErrCode.String(), ended)
		case *http2.DataFrame:
			w.answered(f.StreamID, f.Data())
		default:
			if err := w.control(frame); err != nil {
				return err
			}
		}
	}
}

// answered takes in the message of an answer, which one frame has whole.
func (w *wireConn) answered(id uint32, data []byte) {
	var err error
	if len(data) < envelope || int(binary.BigEndian.Uint32(data[1:])) != len(data)-envelope {
		err = fmt.Errorf("an answer of %d bytes that is no message", len(data))
	} else {
		err = w.call.Accept(data[envelope:])
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if c, ok := w.underway[id]; ok {
		c.err = err
		w.underway[id] = c
	}
}

func (w *wireConn) end(id uint32, status string, ended func(took time.Duration, err error)) {
	w.mu.Lock()
	c, ok := w.underway[id]
	delete(w.underway, id)
	w.mu.Unlock()
	if !ok {
		return
	}
	if status != "0" {
		c.err = fmt.Errorf("gRPC status %s", status)
	}
	ended(time.Since(c.due), c.err)
}

// control answers what a server says of the connection itself.
func (w *wireConn) control(frame http2.Frame) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch f := frame.(type) {
	case *http2.SettingsFrame:
		if !f.IsAck() {
			_ = w.frames.WriteSettingsAck()
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			_ = w.frames.WritePing(true, f.Data)
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server goes away: %v", f.ErrCode)
	case *http2.ContinuationFrame:
		return errors.New("headers of more than one frame")
	}
	w.flush()
	return nil
}
