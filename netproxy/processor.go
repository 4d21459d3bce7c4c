package netproxy

import (
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
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

// maxIdle is how many idle goroutines wait for another task. A new one has to
// grow its stack first, which is most of its cost.
const maxIdle = 64

// Processor sends many requests at a time without blocking its callers. It is
// safe for concurrent use.
type Processor struct {
	core
	tasks   chan *Task    // to goroutines that wait for one; closed by Stop
	results chan delivery // for which no handler was free
	workers sync.WaitGroup
	waiting atomic.Int64 // workers without a task
	busy    atomic.Int64 // goroutines that call handlers
	handoff handoff      // tasks for those goroutines
}

var _ Pool = (*Processor)(nil)

// NewProcessor returns a stopped processor.
func NewProcessor(cfg ProcessorConfig) *Processor {
	p := &Processor{}
	p.init(cfg)
	p.open = func() {
		p.tasks = make(chan *Task)
		// There are never more results than tasks, so that sending one never blocks.
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

// start has a task run: by a goroutine that is calling a handler, after that has returned, or by another one.
func (p *Processor) start(t *Task) {
	if !p.handoff.keep(t, &p.busy) {
		p.startNow(t)
	}
}

// startNow has a task run by an idle goroutine or a new one.
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

// hand calls the handler of a result now, unless too many are being called already. The
// goroutine is not needed for connections any more: those are net/http's. Results that find no
// handler free are taken by the goroutines that are calling one.
func (p *Processor) hand(d delivery) {
	if len(p.results) == 0 && p.mayHandle() {
		p.handle(d)
		p.busy.Add(-1)
	} else {
		p.results <- d
	}
	p.handleSome()
}

// handBack is hand for several results, on goroutines of their own.
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

// handleSome calls handlers as long as there are results, and not too many other
// goroutines do. It looks again after it has stopped counting as busy, so that a
// goroutine turned away because of it leaves no result behind.
func (p *Processor) handleSome() {
	for len(p.results) > 0 && p.mayHandle() {
		p.handleAll()
		p.busy.Add(-1)
	}
}

// mayHandle counts one more goroutine that calls handlers, unless there are too many.
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
