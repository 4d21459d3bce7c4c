// Package netproxy is the only way out for workers: it sends HTTP requests to
// destinations that a policy allows, many at a time, with a bound on everything
// that a server, or the author of a request, could make large or slow.
//
// A [Client] sends one request and waits for it. A [Processor] takes requests as
// tasks, returns at once, and passes the results to their [Handler]. net/http uses
// goroutines for each connection and blocks its caller, so the Processor has a
// goroutine for each request in flight, which usually also calls the handler; Stop
// waits for all of them.
//
// The packages policy and guard decide what requests may reach.
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

// Bounds that can't be configured.
const (
	MaxHeaderBytes = 64 << 10 // of the header of a request, and of a response
	MaxHeaders     = 100      // fields of the header of a request
	MaxIDBytes     = 128
	MaxDecodeRatio = 100 // decoded bytes for each byte received
)

// Handler receives the result of a [Task]. Exactly one of its methods is called,
// once, unless the task was cancelled: then none is. A [Processor] calls only a
// bounded number of handlers at a time, on its own goroutines, so a slow one
// delays other results but no request. ctx ends after the HandlerTimeout of the
// Processor. A handler may keep its arguments.
type Handler interface {
	// OnComplete is called with the response, whatever its status, unless the
	// request treats such a status as an error.
	OnComplete(ctx context.Context, t *Task, r *Response)
	// OnError is called when there is no response, or when the request treats
	// statuses of 400 and more as errors.
	OnError(ctx context.Context, t *Task, e *Error)
	// Retry is called when the Processor was stopped before the request had
	// ended. Whether the server received it is unknown.
	Retry(ctx context.Context, t *Task)
}

// Pool is the interface of [Processor] and of types that wrap one. Its methods are
// safe for concurrent use.
type Pool interface {
	// Start lets a stopped pool take tasks. In other states it returns an error.
	Start() error
	// Enqueue takes a task. Its errors are [ErrClosed] when the pool isn't
	// running, [ErrExhausted] when it has no room, and [ErrTaskUsed]; the
	// handler is not called then.
	Enqueue(t *Task) error
	// Drain makes a running pool refuse further tasks; those that it has continue.
	Drain()
	// Wait returns when the pool has no tasks, or with the cause of ctx.
	Wait(ctx context.Context) error
	// Stop drains the pool, gives tasks some time to finish, then cancels the
	// remaining ones and calls Retry for them, and returns after all handlers
	// have. The pool can be started again.
	Stop(timeout time.Duration) error
	// State returns the state of the pool.
	State() State
	// Stats returns what the pool is doing at the moment.
	Stats() Stats
}

// Causes of the errors of [Pool.Enqueue], to be compared with errors.Is.
var (
	ErrClosed    = errors.New("closed")
	ErrExhausted = errors.New("exhausted")
	ErrTaskUsed  = errors.New("task was enqueued before")
)

// Stats is a snapshot of a pool.
type Stats struct {
	Pending    int   // all tasks of the pool, including the following
	Queued     int   // tasks that wait for their turn
	InFlight   int   // requests in flight
	Delivering int   // results whose handler has been called or is about to be
	Buffered   int64 // bytes of request and response bodies in memory
}
