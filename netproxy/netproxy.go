// Package netproxy is the only way out for workers: HTTP requests to places that
// a policy allows, many at a time, with a bound on everything that a server, or
// whoever wrote the request, could make large or slow.
//
// A [Client] sends one request and waits for it. A [Processor] takes requests as
// tasks, returns at once, and hands what became of them to their [Handler]; an
// [Executor] does the same while the caller waits, for tests. net/http gives
// each connection goroutines and blocks whoever asks, so the Processor starts one
// for each request in flight and a few for handlers; Stop waits for all of
// them.
//
// What requests may reach is decided by the packages policy and guard.
package netproxy

import (
	"context"
	"errors"
	"time"
)

// Defaults of a [Config] and of a [ProcessorConfig]. Sizes are in bytes.
const (
	DefaultTimeout          = time.Minute
	DefaultIdleTimeout      = 10 * time.Second
	DefaultMinRate          = 100 // bytes a second
	DefaultMaxRequestBytes  = 10 << 20
	DefaultMaxResponseBytes = 1 << 20
	DefaultMaxRedirects     = 5
	DefaultMaxRetries       = 3
	DefaultConnsPerHost     = 64
	DefaultMaxConnections   = 256
	DefaultMaxBuffered      = 256 << 20
	DefaultHandlers         = 16
	DefaultHandlerTimeout   = 30 * time.Second
)

// Bounds that are not settings.
const (
	MaxHeaderBytes = 64 << 10 // of the header of a request, and of a response
	MaxHeaders     = 100      // fields of the header of a request
	MaxIDBytes     = 128
	MaxDecodeRatio = 100 // decoded bytes for each that was received
)

// Handler learns what becomes of a [Task]. Of its methods exactly one is called,
// once, unless the task was cancelled: then none is. They are called on
// goroutines of their own, a bounded number of which exist, so one that waits
// delays others' results but no request. ctx ends after the HandlerTimeout of the
// Processor. What a handler is given it may keep.
type Handler interface {
	// OnComplete is called with the response, whatever its status unless the
	// request said otherwise.
	OnComplete(ctx context.Context, t *Task, r *Response)
	// OnError is called when there is no response, or when the request wants
	// statuses of 400 and more to be errors.
	OnError(ctx context.Context, t *Task, e *Error)
	// Retry is called when the Processor was stopped before the request had
	// ended. Whether the server saw it nobody knows.
	Retry(ctx context.Context, t *Task)
}

// Pool is what [Processor] and [Executor] have in common. The methods are safe
// for many goroutines.
type Pool interface {
	// Start lets a stopped pool take tasks. It is an error in other states.
	Start() error
	// Enqueue takes a task. The errors are [ErrClosed] when the pool doesn't
	// run, [ErrExhausted] when it has no room, and [ErrTaskUsed]; no handler is
	// called then.
	Enqueue(t *Task) error
	// Drain lets a running pool take no more tasks; those that it has go on.
	Drain()
	// Wait returns when the pool has no tasks, or with the error of ctx.
	Wait(ctx context.Context) error
	// Stop drains the pool, lets tasks go on for a time, then cancels those that
	// are left and calls Retry for them, and returns when all handlers have.
	// The pool can be started again.
	Stop(timeout time.Duration) error
	// State returns where the pool stands.
	State() State
	// Stats returns what it does at the moment.
	Stats() Stats
}

// Causes of the errors of [Pool.Enqueue], to be compared with errors.Is.
var (
	ErrClosed    = errors.New("closed")
	ErrExhausted = errors.New("exhausted")
	ErrTaskUsed  = errors.New("task was enqueued before")
)

// Stats is a view of a pool.
type Stats struct {
	Pending    int   // tasks that it has: all of the following
	Queued     int   // wait for their turn
	InFlight   int   // requests under way
	Delivering int   // results that wait for their handler, or are with it
	Buffered   int64 // bytes of bodies in memory, of requests and responses
}
