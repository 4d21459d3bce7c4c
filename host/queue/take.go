package queue

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Slot takes tasks of one worker, one after the other. One goroutine uses it.
type Slot struct {
	lane   *lane
	handed chan *Lease // room for one
}

// Slot returns a new slot for tasks of a worker, which must be one of the
// queue's.
func (q *Queue) Slot(worker string) *Slot {
	return &Slot{lane: q.lanes[worker], handed: make(chan *Lease, 1)}
}

// Lease is a task that was taken: the right to run it, until it is settled.
type Lease struct {
	Body
	// TakenAt is when the task was taken; it waited since ReadyAt.
	TakenAt time.Time
	ReadyAt time.Time

	lane    *lane
	entry   entry
	endedAt time.Time // when it was settled

	mu        sync.Mutex // protects cancelled and onCancel
	cancelled bool
	onCancel  func()

	done, total atomic.Int64 // progress
}

// Number is the number of the attempt that this lease is for, from 1.
func (l *Lease) Number() int { return l.Attempt + 1 }

// OnCancel calls f once, from another goroutine, when the job is cancelled; at
// once if it was. f must not block. After OnCancel(nil) has returned, f is not
// running and will not be called.
func (l *Lease) OnCancel(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onCancel = f
	if l.cancelled && f != nil {
		f()
	}
}

func (l *Lease) cancel() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.cancelled && l.onCancel != nil {
		l.onCancel()
	}
	l.cancelled = true
}

func (l *Lease) wasCancelled() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cancelled
}

// SetProgress notes how far the attempt is, for those who ask for the job.
func (l *Lease) SetProgress(done, total int64) {
	l.done.Store(done)
	l.total.Store(total)
}

// Take waits for a task and leases it. The error is the context's cause, or
// unavailable when the queue was closed. It takes nothing once ctx has ended.
func (s *Slot) Take(ctx context.Context) (*Lease, error) {
	for {
		lease, err := s.wait(ctx)
		if err != nil {
			return nil, err
		}
		body, err := s.lane.body(ctx, lease.entry)
		if body != nil && !lease.wasCancelled() {
			lease.Body = *body
			lease.ReadyAt = lease.entry.readyAt.Time()
			s.lane.q.publish(jobhost.EventStarted, lease, jobhost.Running)
			return lease, nil
		}
		if err != nil {
			s.lane.q.cfg.Logger.Error("task can't be read; it will be tried again",
				logkey.Worker, s.lane.worker.Name, logkey.Error, err)
			s.lane.putBack(lease)
		} else { // cancelled between its choice and its read
			s.lane.finish(lease)
		}
		s.lane.q.gate.leave()
	}
}

func (s *Slot) wait(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil { // or a slot that was told to end would take what waits and give it back
		return nil, context.Cause(ctx)
	}
	l := s.lane
	l.mu.Lock()
	if l.q.closed.Load() {
		l.mu.Unlock()
		return nil, errClosed
	}
	l.idle = append(l.idle, s)
	l.pumpLocked()
	l.mu.Unlock()
	select {
	case lease := <-s.handed:
		return lease, nil
	case <-ctx.Done():
	case <-l.q.closing:
	}
	l.mu.Lock()
	for i, idle := range l.idle {
		if idle == s {
			l.idle = append(l.idle[:i], l.idle[i+1:]...)
			break
		}
	}
	l.mu.Unlock()
	select {
	case lease := <-s.handed: // it was handed over meanwhile
		return lease, nil
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errClosed
}

// finish forgets a lease.
func (l *lane) finish(lease *Lease) {
	l.mu.Lock()
	if l.running[lease.entry.key] == lease {
		delete(l.running, lease.entry.key)
	}
	l.mu.Unlock()
}
