package netproxy

import (
	"context"
	"time"
)

// Drain implements [Pool].
func (p *Processor) Drain() {
	p.mu.Lock()
	defer p.mu.Unlock()
	_ = p.becomeLocked(Draining) // nothing to do in other states
}

// Wait implements [Pool].
func (p *Processor) Wait(ctx context.Context) error {
	select {
	case <-p.idle():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// idle returns a channel that is closed when no task is pending.
func (p *Processor) idle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.empty == nil {
		empty := make(chan struct{})
		if p.pending == 0 {
			close(empty)
			return empty
		}
		p.empty = empty
	}
	return p.empty
}

// Stop implements [Pool].
func (p *Processor) Stop(timeout time.Duration) error {
	p.mu.Lock()
	switch p.state {
	case Stopped:
		p.mu.Unlock()
		return nil
	case Stopping:
		stopped := p.stopped
		p.mu.Unlock()
		<-stopped
		return nil
	}
	err := p.becomeLocked(Stopping)
	p.stopped = make(chan struct{})
	p.mu.Unlock()
	if err != nil {
		return err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-p.idle():
	case <-timer.C:
		p.abandon()
		<-p.idle()
	}
	close(p.tasks)
	p.workers.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.stopped)
	return p.becomeLocked(Stopped)
}

// abandon cancels the requests in flight and has Retry called for them.
func (p *Processor) abandon() {
	p.mu.Lock()
	var all []delivery
	for t := p.first; t != nil; t = t.next {
		if t.claim() {
			all = append(all, delivery{task: t})
		}
	}
	p.mu.Unlock()
	for _, d := range all {
		d.task.abort()
	}
	p.handBack(all)
}
