package netproxy

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/budget"
)

// ProcessorConfig limits what a [Processor] does at once.
type ProcessorConfig struct {
	// Client sends the requests.
	Client *Client
	// MaxConnections limits the tasks in the pool, each from Enqueue until its
	// handler returns; 0 = [DefaultMaxConnections].
	MaxConnections int
	// MaxBuffered bounds the bytes of all bodies together, those of requests
	// from Enqueue on, both until the handler returns; 0 =
	// [DefaultMaxBuffered].
	MaxBuffered int64
	// Handlers is how many handlers may run at once; 0 = [DefaultHandlers].
	Handlers int
	// HandlerTimeout ends the context of a handler; 0 = [DefaultHandlerTimeout].
	HandlerTimeout time.Duration
	// Logger gets an entry for each handler that panics; nil = the client's.
	Logger *slog.Logger
}

// Processor sends many requests at a time without blocking its callers. It is
// safe for concurrent use.
type Processor struct {
	cfg     ProcessorConfig
	client  *Client
	memory  budget.Budget // bytes of bodies
	tasks   chan *Task    // to goroutines that wait for one; closed by Stop
	results chan delivery // for which no handler was free
	workers sync.WaitGroup
	waiting atomic.Int64 // workers without a task
	busy    atomic.Int64 // goroutines that call handlers
	handoff handoff      // tasks for those goroutines

	mu      sync.Mutex // protects the following
	state   State
	first   *Task // of the pending ones, in no particular order
	pending int
	empty   chan struct{} // closed when none is pending; nil = there is no waiter
	stopped chan struct{} // closed when the current Stop ends
}

var _ Pool = (*Processor)(nil)

// NewProcessor returns a stopped processor.
func NewProcessor(cfg ProcessorConfig) *Processor {
	orElse(&cfg.MaxConnections, DefaultMaxConnections)
	orElse(&cfg.MaxBuffered, DefaultMaxBuffered)
	orElse(&cfg.Handlers, DefaultHandlers)
	orElse(&cfg.HandlerTimeout, DefaultHandlerTimeout)
	if cfg.Logger == nil {
		cfg.Logger = cfg.Client.logger
	}
	p := &Processor{cfg: cfg, client: cfg.Client, memory: budget.Budget{Limit: cfg.MaxBuffered}}
	p.handoff.init(cfg.Handlers, p.startNow)
	return p
}

// Start implements [Pool].
func (p *Processor) Start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.becomeLocked(Starting); err != nil {
		return err
	}
	p.tasks = make(chan *Task)
	// There are never more results than tasks, so that sending one never blocks.
	p.results = make(chan delivery, p.cfg.MaxConnections)
	return p.becomeLocked(Running)
}

// Enqueue implements [Pool].
func (p *Processor) Enqueue(t *Task) error {
	if err := p.admit(t); err != nil {
		p.refused(t, err)
		return err
	}
	p.start(t)
	return nil
}

// admit adds a task to the pool.
func (p *Processor) admit(t *Task) error {
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

func (p *Processor) refused(t *Task, err error) {
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

// remove takes a task out of the pool when both its request and its handler have ended.
func (p *Processor) remove(t *Task) {
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
func (p *Processor) Stats() Stats {
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
