package postgres_test

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"
)

// proxy stands between a store and its database and acts on the next COMMIT.
type proxy struct {
	listener net.Listener
	target   *url.URL

	mu       sync.Mutex
	conns    map[net.Conn]net.Conn // client to server
	onCommit func() fate
}

// fate is what happens to a COMMIT.
type fate int

const (
	passes    fate = iota
	isLost         // the server never sees it
	replyLost      // the server carries it out
)

func newProxy(t testing.TB, database string) *proxy {
	target, err := url.Parse(database)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target, conns: map[net.Conn]net.Conn{}}
	t.Cleanup(func() { _ = l.Close(); p.cutAll() })
	go p.serve()
	return p
}

// url leads to the database through the proxy.
func (p *proxy) url() string {
	u := *p.target
	u.Host = p.listener.Addr().String()
	return u.String()
}

func (p *proxy) serve() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target.Host)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client] = server
		p.mu.Unlock()
		l := &link{proxy: p, client: client, server: server}
		go l.requests()
		go l.replies()
	}
}

// cutAll breaks every connection.
func (p *proxy) cutAll() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for client, server := range p.conns {
		_ = client.Close()
		_ = server.Close()
	}
	clear(p.conns)
}

// atCommit has the next COMMIT decided by f, once.
func (p *proxy) atCommit(f func() fate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCommit = f
}

func (p *proxy) decide() fate {
	p.mu.Lock()
	f := p.onCommit
	p.onCommit = nil
	p.mu.Unlock()
	if f == nil {
		return passes
	}
	return f()
}

// link is one connection through the proxy.
type link struct {
	proxy          *proxy
	client, server net.Conn

	mu        sync.Mutex
	replyLost bool
}

func (l *link) close() {
	_ = l.client.Close()
	_ = l.server.Close()
}

// commit is the message as pgx sends it, alone in a packet.
var commit = []byte("Q\x00\x00\x00\x0bCOMMIT\x00")

func (l *link) requests() {
	defer l.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.client.Read(buf)
		if err != nil {
			return
		}
		if bytes.Contains(buf[:n], commit) {
			switch l.proxy.decide() {
			case isLost:
				return
			case replyLost:
				l.mu.Lock()
				l.replyLost = true
				l.mu.Unlock()
			}
		}
		if _, err := l.server.Write(buf[:n]); err != nil {
			return
		}
	}
}

func (l *link) replies() {
	defer l.close()
	buf := make([]byte, 64<<10)
	for {
		n, err := l.server.Read(buf)
		if err != nil {
			return
		}
		l.mu.Lock()
		lost := l.replyLost
		l.mu.Unlock()
		if lost {
			return
		}
		if _, err := l.client.Write(buf[:n]); err != nil {
			return
		}
	}
}
