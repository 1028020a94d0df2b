package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// web is the HTTP server beside every gRPC server: /healthz says that the
// process answers, /readyz that it can do its work, /metrics how it does.
type web struct {
	server   *http.Server
	listener net.Listener
	log      *slog.Logger
	done     chan struct{}
}

// Bounds on what an HTTP client may take.
const (
	headerTimeout = 5 * time.Second
	requestTime   = 10 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 64 << 10
)

// newWeb listens; serve makes it answer. ready returns nil, or why not. routes
// are mounted by their patterns.
func newWeb(address, flag string, reg *prometheus.Registry, log *slog.Logger, ready func() error, routes map[string]http.Handler) (*web, error) {
	l, err := listen(address, flag)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(reg, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	for pattern, handler := range routes {
		mux.Handle(pattern, handler)
	}
	return &web{
		server: &http.Server{
			Handler: mux, ReadHeaderTimeout: headerTimeout, ReadTimeout: requestTime, WriteTimeout: 2 * requestTime,
			IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
		},
		listener: l, log: log, done: make(chan struct{}),
	}, nil
}

func (w *web) addr() string { return w.listener.Addr().String() }

func (w *web) serve() {
	go func() {
		defer close(w.done)
		if err := w.server.Serve(w.listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
			w.log.Error("HTTP server ended", "error", err)
		}
	}()
}

// stop lets requests finish until ctx ends, then ends them.
func (w *web) stop(ctx context.Context) error {
	if err := w.server.Shutdown(ctx); err != nil {
		_ = w.server.Close()
	}
	<-w.done
	return nil
}
