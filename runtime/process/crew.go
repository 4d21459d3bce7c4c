package process

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// crew are the processes of a plugin. Each is started again when it ends.
type crew struct {
	engine *engine
	worker string
	start  func() (*child, error) // starts one and opens its stream

	mu      sync.Mutex // protects the rest
	members []*member
	slot    uint32 // the last that was given
	changed chan struct{}
	closing bool
	wait    sync.WaitGroup // of the members
}

// member is a place for a process.
type member struct {
	child *child // nil = there is none at the moment
	slots int    // instances that use it
}

func newCrew(e *engine, worker string, start func() (*child, error)) *crew {
	return &crew{engine: e, worker: worker, start: start, changed: make(chan struct{})}
}

// run keeps n processes running, of which the first is there already.
func (c *crew) run(first *child, n int) {
	for i := range n {
		m := &member{}
		if i == 0 {
			m.child = first
		}
		c.members = append(c.members, m)
		c.wait.Go(func() { c.keep(m) })
	}
}

// keep keeps a process running.
func (c *crew) keep(m *member) {
	for {
		if m.child == nil {
			child, err := c.start()
			if err != nil {
				c.engine.logger.Error("process does not start", logkey.Worker, c.worker, logkey.Error, err)
				time.Sleep(time.Second)
				continue
			}
			if !c.set(m, child) {
				child.close()
				return
			}
		}
		<-m.child.life.Done()
		ended := m.child
		more := c.set(m, nil)
		ended.close()
		if !more {
			return
		}
	}
}

// set changes the process of a place, and reports whether there is to be one.
func (c *crew) set(m *member, child *child) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return false
	}
	m.child = child
	close(c.changed)
	c.changed = make(chan struct{})
	return true
}

// join gives an instance its place: the one with the fewest others.
func (c *crew) join() *instance {
	c.mu.Lock()
	defer c.mu.Unlock()
	place := c.members[0]
	for _, m := range c.members {
		if m.slots < place.slots {
			place = m
		}
	}
	place.slots++
	c.slot++
	return &instance{crew: c, place: place, slot: c.slot}
}

// close ends the processes and waits for that.
func (c *crew) close() {
	c.mu.Lock()
	c.closing = true
	children := make([]*child, 0, len(c.members))
	for _, m := range c.members {
		if m.child != nil {
			children = append(children, m.child)
		}
	}
	c.mu.Unlock()
	for _, ch := range children {
		ch.leave()
	}
	c.wait.Wait()
}

// errClosed is for runs of a plugin that is closed.
var errClosed = errors.New("the plugin is closed")

// enter waits for the process of a place and begins a run in it.
func (c *crew) enter(ctx context.Context, m *member, r *run) error {
	for {
		c.mu.Lock()
		child, changed, closing := m.child, c.changed, c.closing
		c.mu.Unlock()
		if closing {
			return errClosed
		}
		if child != nil && child.begin(r) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// instance is a slot of a process; it implements [runtime.Instance].
type instance struct {
	crew  *crew
	place *member
	slot  uint32
}

// Run implements [runtime.Instance].
func (i *instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	if ctx.Err() != nil {
		return runtime.Result{Outcome: at.Stopped(ctx)}
	}
	if at.Over(ctx) {
		return runtime.Result{Outcome: at.TimedOut()}
	}
	r := newRun(at)
	if err := i.crew.enter(ctx, i.place, r); err != nil {
		return runtime.Result{Outcome: at.Stopped(ctx)}
	}
	task := taskOf(at)
	task.Slot = i.slot
	result, why := r.do(ctx, task)
	r.child.finish(r)
	close(r.gone)
	at.Flush()
	out := r.resultOf(ctx, result, why)
	if out.Outcome.Kind == 0 {
		out.Outcome = at.Failure(jobhost.FailStart, jobhost.CategorySystem, "the worker's process has ended: "+r.child.process.end())
	}
	return out
}

// Close implements [runtime.Instance].
func (i *instance) Close(context.Context) error {
	i.crew.mu.Lock()
	defer i.crew.mu.Unlock()
	i.place.slots--
	return nil
}
