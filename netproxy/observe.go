package netproxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// Observer is notified of requests, to count them. Its methods are called on the requests' own
// goroutines, must not block, and must be safe for concurrent use.
type Observer interface {
	// Started is called when a request is about to be sent for the first time.
	Started(r *Request)
	// Ended is called once for each request that was started, when its response
	// was read or closed, or the request failed.
	Ended(r *Request, s Summary)
	// Refused is called when a pool refuses a task: code is "closed" or "exhausted".
	Refused(t *Task, code string)
	// Limit is called when a limit was hit, with its name, such as
	// "max_response_bytes".
	Limit(name string)
}

// Summary is the outcome of a request.
type Summary struct {
	// Code is that of the error; "" = there was a response.
	Code     Code
	Status   int // of the response; 0 = none
	Retries  int // attempts after the first
	Hops     int // redirects that were followed
	Reused   bool
	Sent     int64 // bytes of bodies, in all attempts
	Received int64 // bytes of the body, decoded
	Duration time.Duration
}

// noObserver is an Observer that does nothing.
type noObserver struct{}

func (noObserver) Started(*Request)        {}
func (noObserver) Ended(*Request, Summary) {}
func (noObserver) Refused(*Task, string)   {}
func (noObserver) Limit(string)            {}

// Names of limits, for [Observer.Limit].
const (
	LimitTimeout       = "timeout"
	LimitIdle          = "idle_timeout"
	LimitMinRate       = "min_rate"
	LimitRequestBytes  = "max_request_bytes"
	LimitResponseBytes = "max_response_bytes"
	LimitHeaderBytes   = "header_bytes"
	LimitDecodeRatio   = "decode_ratio"
	LimitRedirects     = "max_redirects"
	LimitConnections   = "max_connections"
	LimitBuffered      = "max_buffered"
	LimitRate          = "rate"
)

// log logs a request. URLs may contain secrets in their queries, so only the
// origin is logged.
func (c *Client) log(r *Request, s Summary) {
	ctx := context.Background()
	if !c.logger.Enabled(ctx, slog.LevelDebug) {
		return
	}
	c.logger.LogAttrs(ctx, slog.LevelDebug, "HTTP request has ended",
		slog.String(logkey.Request, r.id), slog.String(logkey.Method, r.method), slog.String(logkey.Origin, r.Origin()),
		slog.Int(logkey.Status, s.Status), slog.String(logkey.Code, string(s.Code)), slog.Duration(logkey.Duration, s.Duration),
		slog.Int64(logkey.Bytes, s.Received), slog.Int(logkey.Attempt, s.Retries+1), slog.Int(logkey.Redirects, s.Hops))
}
