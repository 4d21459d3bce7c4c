package netproxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// ProcessorConfig says how much a [Processor] does at once.
type ProcessorConfig struct {
	// Client sends the requests.
	Client *Client
	// MaxConnections bounds the tasks that it has, from Enqueue to the end of
	// their handler; 0 = [DefaultMaxConnections].
	MaxConnections int
	// MaxBuffered bounds the bytes that bodies take together, those of requests
	// from Enqueue on, those of responses to the end of their handler; 0 =
	// [DefaultMaxBuffered].
	MaxBuffered int64
	// Handlers is how many handlers are called at once; 0 = [DefaultHandlers].
	Handlers int
	// HandlerTimeout ends the context of a handler; 0 = [DefaultHandlerTimeout].
	HandlerTimeout time.Duration
	// Logger is told of handlers that panic; nil = the client's.
	Logger *slog.Logger
}

// maxIdle is how many goroutines wait for another task. A new one has to grow its
// stack first, which is most of what it costs.
const maxIdle = 64

// Processor sends many requests at a time while nobody waits for them. It is safe
// for many goroutines.
type Processor struct {
	core
	tasks   chan *Task    // to goroutines that wait for one; closed by Stop
	results chan delivery // for which no handler was free
	workers sync.WaitGroup
	waiting atomic.Int64 // workers without a task
	busy    atomic.Int64 // goroutines that call handlers
	handoff handoff      // tasks for those
}

var _ Pool = (*Processor)(nil)

// NewProcessor returns a processor that is stopped.
func NewProcessor(cfg ProcessorConfig) *Processor {
	p := &Processor{}
	p.init(cfg)
	p.open = func() {
		p.tasks = make(chan *Task)
		// There are never more results than tasks, so that none waits to get in.
		p.results = make(chan delivery, p.cfg.MaxConnections)
	}
	p.shut = func() {
		close(p.tasks)
		p.workers.Wait()
	}
	p.handoff.init(p.cfg.Handlers, p.startNow)
	p.launch, p.deliver, p.giveBack = p.start, p.hand, p.handBack
	return p
}

// start has a goroutine run a task: one that calls a handler, when that has returned, or another.
func (p *Processor) start(t *Task) {
	if !p.handoff.keep(t, &p.busy) {
		p.startNow(t)
	}
}

// startNow has a goroutine run a task that has nothing else to do.
func (p *Processor) startNow(t *Task) {
	select {
	case p.tasks <- t:
	default:
		p.workers.Add(1)
		go p.work(t)
	}
}

// work runs tasks, one after the other.
func (p *Processor) work(t *Task) {
	defer p.workers.Done()
	for tasks := p.tasks; t != nil; {
		p.run(t)
		if t = p.handoff.take(); t != nil {
			continue
		}
		if p.waiting.Add(1) > maxIdle {
			p.waiting.Add(-1)
			return
		}
		t = <-tasks
		p.waiting.Add(-1)
	}
}

// hand calls the handler of a result now, if not too many are called already. The
// goroutine has nothing to do with connections any more: those are net/http's.
// Results that find no handler free are taken by those who call one.
func (p *Processor) hand(d delivery) {
	if len(p.results) == 0 && p.mayHandle() {
		p.handle(d)
		p.busy.Add(-1)
	} else {
		p.results <- d
	}
	p.handleSome()
}

// handBack is hand for many, in goroutines of their own.
func (p *Processor) handBack(all []delivery) {
	for _, d := range all {
		p.results <- d
	}
	for range min(len(all), p.cfg.Handlers) {
		p.workers.Add(1)
		go func() {
			defer p.workers.Done()
			p.handleSome()
			p.handoff.settle(&p.busy)
		}()
	}
}

// handleSome calls handlers as long as there are results, and not too many others
// do. One that does so looks again after it counts no more, so that
// whoever was turned away because of it leaves nothing behind.
func (p *Processor) handleSome() {
	for len(p.results) > 0 && p.mayHandle() {
		p.handleAll()
		p.busy.Add(-1)
	}
}

// mayHandle counts one more who calls handlers, if there are not too many.
func (p *Processor) mayHandle() bool {
	for {
		busy := p.busy.Load()
		if busy >= int64(p.cfg.Handlers) {
			return false
		}
		if p.busy.CompareAndSwap(busy, busy+1) {
			return true
		}
	}
}

// handleAll calls handlers until no result is left.
func (p *Processor) handleAll() {
	for {
		select {
		case d := <-p.results:
			p.handle(d)
		default:
			return
		}
	}
}
