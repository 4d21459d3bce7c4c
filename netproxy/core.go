package netproxy

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/budget"
	"github.com/jobhost/jobhost/internal/logkey"
)

// core is what all pools share: everything except which goroutines do the work.
type core struct {
	cfg      ProcessorConfig
	client   *Client
	launch   func(*Task)      // runs a task
	deliver  func(delivery)   // calls its handler
	giveBack func([]delivery) // calls the handlers of several
	open     func()           // called before the pool runs
	shut     func()           // called after the last task

	memory budget.Budget // bytes of bodies

	mu      sync.Mutex // protects the following
	state   State
	first   *Task // of the pending ones, in no particular order
	pending int
	empty   chan struct{} // closed when none is pending; nil = there is no waiter
	stopped chan struct{} // closed when the current Stop ends
}

// delivery is the result that a handler is called with: a response, an error, or neither for Retry.
type delivery struct {
	task *Task
	resp *Response
	err  *Error
}

func (p *core) init(cfg ProcessorConfig) {
	orElse(&cfg.MaxConnections, DefaultMaxConnections)
	orElse(&cfg.MaxBuffered, DefaultMaxBuffered)
	orElse(&cfg.Handlers, DefaultHandlers)
	orElse(&cfg.HandlerTimeout, DefaultHandlerTimeout)
	if cfg.Logger == nil {
		cfg.Logger = cfg.Client.logger
	}
	p.cfg, p.client, p.memory.Limit = cfg, cfg.Client, cfg.MaxBuffered
}

// Start implements [Pool].
func (p *core) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.becomeLocked(Starting); err != nil {
		return err
	}
	p.open()
	return p.becomeLocked(Running)
}

// Enqueue implements [Pool].
func (p *core) Enqueue(t *Task) error {
	if err := p.admit(t); err != nil {
		p.refused(t, err)
		return err
	}
	p.launch(t)
	return nil
}

// admit adds a task to the pool.
func (p *core) admit(t *Task) error {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.state != Running:
		return &jobhost.Error{Code: jobhost.CodeUnavailable, Message: fmt.Sprintf("no HTTP requests are taken: the processor is %v", p.state), Cause: ErrClosed}
	case p.pending >= p.cfg.MaxConnections:
		return exhausted(LimitConnections, "there are %d HTTP requests already, which is the limit", p.pending)
	}
	size := t.request.Size()
	if !p.memory.Take(size) {
		return exhausted(LimitBuffered, "bodies of HTTP requests take %d bytes already, which is near the limit", p.memory.Used())
	}
	if !t.flags.CompareAndSwap(0, taskPending) {
		p.memory.Free(size)
		return ErrTaskUsed
	}
	t.room = room{of: &p.memory, taken: size}
	t.enqueue.Store(now.UnixNano())
	if t.next = p.first; t.next != nil {
		t.next.prev = t
	}
	p.first = t
	p.pending++
	return nil
}

func exhausted(limit, format string, args ...any) error {
	return &jobhost.Error{Code: jobhost.CodeExhausted, Field: limit, Message: fmt.Sprintf(format, args...), RetryAfter: time.Second, Cause: ErrExhausted}
}

func (p *core) refused(t *Task, err error) {
	e, ok := errors.AsType[*jobhost.Error](err)
	switch {
	case !ok: // a task that was used before is a fault of its owner
	case e.Code == jobhost.CodeExhausted:
		p.client.observer.Limit(e.Field)
		p.client.observer.Refused(t, "exhausted")
	default:
		p.client.observer.Refused(t, "closed")
	}
}

// run sends the request of a task and has the result delivered to its handler.
func (p *core) run(t *Task) {
	t.start.Store(time.Now().UnixNano())
	d := delivery{task: t}
	d.resp, d.err = p.perform(t)
	t.end.Store(time.Now().UnixNano())
	if t.claim() {
		p.deliver(d)
	}
	if t.ran() {
		p.remove(t)
	}
}

// perform sends the request and returns a response or an error, even if the code below panics.
func (p *core) perform(t *Task) (resp *Response, failed *Error) {
	defer func() {
		if v := recover(); v != nil {
			p.cfg.Logger.Error("HTTP request has panicked", logkey.Request, t.request.id, logkey.Error, v, logkey.Stack, string(debug.Stack()))
			resp, failed = nil, &Error{Kind: KindRequest, Code: CodeUnknown, Message: "a fault of the host", RequestID: t.request.id, Method: t.request.method, URL: t.request.URL()}
		}
	}()
	resp, err := p.client.callTask(t)
	if err == nil {
		resp.Args = t.args
		return resp, nil
	}
	failed, ok := errors.AsType[*Error](err)
	if !ok {
		failed = &Error{Kind: KindRequest, Code: CodeUnknown, Message: "a fault of the host", cause: err}
	}
	failed.Args = t.args
	if failed.Response != nil {
		failed.Response.Args = t.args
	}
	return nil, failed
}

// handle calls a handler.
func (p *core) handle(d delivery) {
	t := d.task
	ctx := &lazyDeadline{until: time.Now().Add(p.cfg.HandlerTimeout)}
	defer func() {
		ctx.end()
		if v := recover(); v != nil {
			p.cfg.Logger.Error("handler of an HTTP request has panicked", logkey.Request, t.request.id, logkey.Error, v, logkey.Stack, string(debug.Stack()))
		}
		if t.delivered() {
			p.remove(t)
		}
	}()
	switch {
	case d.resp != nil:
		t.handler.OnComplete(ctx, t, d.resp)
	case d.err != nil:
		t.handler.OnError(ctx, t, d.err)
	default:
		t.handler.Retry(ctx, t)
	}
}

// remove takes a task out of the pool when both its request and its handler have ended.
func (p *core) remove(t *Task) {
	t.room.free()
	p.mu.Lock()
	defer p.mu.Unlock()
	if t.prev != nil {
		t.prev.next = t.next
	} else {
		p.first = t.next
	}
	if t.next != nil {
		t.next.prev = t.prev
	}
	t.next, t.prev = nil, nil
	if p.pending--; p.pending == 0 && p.empty != nil {
		close(p.empty)
		p.empty = nil
	}
}

// Stats implements [Pool]. It inspects every task, since tasks are far more frequent than calls
// of Stats: counters would be written several times per task, by all processors.
func (p *core) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Pending: p.pending, Buffered: p.memory.Used()}
	for t := p.first; t != nil; t = t.next {
		switch {
		case t.start.Load() == 0:
			s.Queued++
		case t.end.Load() == 0:
			s.InFlight++
		}
		if t.isDelivering() {
			s.Delivering++
		}
	}
	return s
}
