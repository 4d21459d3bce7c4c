package netproxy

import (
	"errors"
	"runtime/debug"
	"time"

	"github.com/jobhost/jobhost/internal/logkey"
)

// maxIdle is how many idle goroutines wait for another task. A new one has to
// grow its stack first, which is most of its cost.
const maxIdle = 64

// delivery is the result that a handler is called with: a response, an error, or neither for Retry.
type delivery struct {
	task *Task
	resp *Response
	err  *Error
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

// run sends the request of a task and has the result delivered to its handler.
func (p *Processor) run(t *Task) {
	t.start.Store(time.Now().UnixNano())
	d := delivery{task: t}
	d.resp, d.err = p.perform(t)
	t.end.Store(time.Now().UnixNano())
	if t.claim() {
		p.hand(d)
	}
	if t.ran() {
		p.remove(t)
	}
}

// perform sends the request and returns a response or an error, even if the code below panics.
func (p *Processor) perform(t *Task) (resp *Response, failed *Error) {
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

// handle calls a handler.
func (p *Processor) handle(d delivery) {
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
