package netproxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// Observer hears of requests, to count them. Its methods are called on the
// requests' own goroutines, must not wait, and are safe for many goroutines.
type Observer interface {
	// Started is called when a request is about to be sent for the first time.
	Started(r *Request)
	// Ended is called once for each request that was started, when its response
	// was read, closed, or isn't to be had.
	Ended(r *Request, s Summary)
	// Refused is called when a pool takes no task: code is "closed" or "exhausted".
	Refused(t *Task, code string)
	// Limit is called when a limit was hit, by its name, such as
	// "max_response_bytes".
	Limit(name string)
}

// Summary is what became of a request.
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

// nobody observes nothing.
type nobody struct{}

func (nobody) Started(*Request)        {}
func (nobody) Ended(*Request, Summary) {}
func (nobody) Refused(*Task, string)   {}
func (nobody) Limit(string)            {}

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

// log writes the line of a request. URLs have secrets in their queries, so it has
// the origin only.
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
