package api

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// ServeConfig says how an HTTP server treats its connections. Zero values are defaults.
type ServeConfig struct {
	// Conns bounds the connections; 0 = 4,096. Beyond it new ones wait in the
	// kernel until others end. At most three quarters are for those over which no token
	// has come: one more, and that of them is closed that has done nothing for longest.
	Conns int
	// ReadHeaderTimeout bounds the time for the header of a request; 0 = 5s.
	ReadHeaderTimeout time.Duration
	// RequestTimeout bounds the time for the whole of a request, and that for
	// its answer; 0 = 30s. Waits, batches and streams have their own.
	RequestTimeout time.Duration
	// IdleTimeout ends connections without requests; 0 = 60s.
	IdleTimeout time.Duration
	// ShutdownTimeout is how long requests may go on after the context ended; 0 = 10s.
	ShutdownTimeout time.Duration
	// TLS makes it HTTPS, with HTTP/2; nil = plain HTTP/1.1.
	TLS *tls.Config
	// Logger gets the faults of connections, as debug messages; nil = none.
	Logger *slog.Logger
}

const maxHeaderBytes = 32 << 10

// NewServer returns an HTTP server that keeps slow and greedy clients within bounds.
func NewServer(handler http.Handler, cfg ServeConfig) *http.Server {
	setDefault(&cfg.ReadHeaderTimeout, 5*time.Second)
	setDefault(&cfg.RequestTimeout, 30*time.Second)
	setDefault(&cfg.IdleTimeout, time.Minute)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(cfg.TLS != nil)
	return &http.Server{
		Handler:           handler,
		TLSConfig:         cfg.TLS,
		ReadHeaderTimeout: cfg.ReadHeaderTimeout,
		ReadTimeout:       cfg.RequestTimeout,
		WriteTimeout:      cfg.RequestTimeout,
		IdleTimeout:       cfg.IdleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 100},
		ErrorLog:          slog.NewLogLogger(cfg.Logger.Handler(), slog.LevelDebug),
	}
}

// Serve serves the API on a listener, which it closes, until ctx ends; then it
// stops taking connections, ends waits and streams, and lets other requests
// finish. It returns nil after that, and otherwise why it could not serve.
func (a *API) Serve(ctx context.Context, listener net.Listener, cfg ServeConfig) error {
	return Serve(ctx, a, a.Stop, listener, cfg)
}

// Serve does what [API.Serve] does, for a handler that may be of several APIs, one after the other. stop ends waits and
// streams.
func Serve(ctx context.Context, handler http.Handler, stop func(), listener net.Listener, cfg ServeConfig) error {
	setDefault(&cfg.Conns, 4096)
	setDefault(&cfg.ShutdownTimeout, 10*time.Second)
	server := NewServer(handler, cfg)
	server.RegisterOnShutdown(stop)
	conns := limitConns(listener, cfg.Conns)
	server.RegisterOnShutdown(conns.closeUnused)
	server.ConnContext = withConn
	stopped := make(chan error, 1) // holds the one value there is
	cancel := context.AfterFunc(ctx, func() {
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), cfg.ShutdownTimeout)
		defer done()
		err := server.Shutdown(grace)
		if err != nil {
			err = errors.Join(fmt.Errorf("shut down http: %w", err), server.Close())
		}
		stopped <- err
	})
	var err error
	if cfg.TLS != nil {
		err = server.ServeTLS(conns, "", "")
	} else {
		err = server.Serve(conns)
	}
	if cancel() {
		return errors.Join(fmt.Errorf("serve http: %w", err), server.Close())
	}
	return <-stopped
}
