package netproxy

import (
	"log/slog"
	"sync"
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

// Processor sends many requests at a time while nobody waits for them. It is safe
// for many goroutines.
type Processor struct {
	core
	results  chan delivery
	handlers sync.WaitGroup
}

var _ Pool = (*Processor)(nil)

// NewProcessor returns a processor that is stopped.
func NewProcessor(cfg ProcessorConfig) *Processor {
	p := &Processor{}
	p.init(cfg)
	p.open, p.shut = p.startHandlers, p.endHandlers
	p.launch = func(t *Task) { go p.run(t) }
	p.deliver = func(d delivery) { p.results <- d }
	return p
}

func (p *Processor) startHandlers() {
	// There are never more results than tasks, so that none waits to get in.
	p.results = make(chan delivery, p.cfg.MaxConnections)
	for range p.cfg.Handlers {
		p.handlers.Add(1)
		go func(results <-chan delivery) {
			defer p.handlers.Done()
			for d := range results {
				p.handle(d)
			}
		}(p.results)
	}
}

func (p *Processor) endHandlers() {
	close(p.results)
	p.handlers.Wait()
}
