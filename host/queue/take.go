package queue

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/journal"
	"github.com/jobhost/jobhost/host/queue/order"
	"github.com/jobhost/jobhost/host/queue/record"
	"github.com/jobhost/jobhost/internal/breaker"
	"github.com/jobhost/jobhost/internal/logkey"
)

// Slot takes tasks of one worker, one after the other. One goroutine uses it.
type Slot struct {
	lane   *lane
	gate   *gate       // of its machine
	handed chan *Lease // room for one
}

// Slot returns a new slot for tasks of a worker, which must be one of the
// queue's.
func (q *Queue) Slot(worker string) *Slot {
	return &Slot{lane: q.lanes.of(worker), gate: q.gate, handed: make(chan *Lease, 1)}
}

// Lease is a task that was taken: the right to run it, until it is settled.
type Lease struct {
	record.Body
	// TakenAt is when the task was taken; it waited since ReadyAt.
	TakenAt time.Time
	ReadyAt time.Time

	lane    *lane
	entry   order.Entry
	noted   *journal.Entry // of its attempt; nil = it is not noted
	group   record.Group   // that it counts for; 0 = none, or no more
	unread  order.Traits   // of the task, until there is a body
	place   place          // on the machine of its slot
	endedAt time.Time      // when it was settled

	passage       passage // of the worker's breaker
	jobPassage    passage // of the job's
	metJobBreaker bool    // it has met the job's, if there is one
	crashed       bool    // its attempt was under way when the last host died
	doubted       bool    // it is of a suspect: see [suspects]
	kept          bool    // the attempt has ended, and its result waits for a store; the lane's lock protects it
	refusedBy     string  // the breaker that lets it pass in order to fail

	fault *StoreFault // that the attempt has met and that spares it; nil = none

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

// SetProgress notes how far the attempt is, for callers who ask for the job.
func (l *Lease) SetProgress(done, total int64) {
	l.done.Store(done)
	l.total.Store(total)
}

// begin fills the lease in and publishes that its attempt begins, unless its job
// was cancelled: no event says that it started after the cancel.
func (l *Lease) begin(body *record.Body) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cancelled {
		return false
	}
	l.Body = *body
	l.ReadyAt = l.entry.ReadyAt.Time()
	l.lane.q.events.attempt(jobhost.EventStarted, l, jobhost.Running)
	return true
}

// Take waits for a task and leases it. The error is the context's cause, or
// unavailable when the queue was closed. It takes nothing once ctx has ended. A
// task that can't be read waits for a second, and so does the slot: it must not
// run through the whole backlog while the store is in trouble.
func (s *Slot) Take(ctx context.Context) (*Lease, error) {
	for {
		if err := s.lane.q.awaitRoom(ctx); err != nil {
			return nil, err
		}
		lease, err := s.wait(ctx)
		if err != nil {
			return nil, err
		}
		body, err := s.lane.body(ctx, lease.entry)
		if body != nil && (!s.lane.meetJobBreaker(lease, body) || lease.refusedBy == "" && !s.lane.reachPayload(lease, body)) {
			s.lane.q.breakers.judge(lease, breaker.None)
			lease.place.leave()
			continue
		}
		if body != nil && (!s.lane.q.suspects.admit(ctx, lease, body) || s.lane.q.storeHolds() != notHeld) { // since the task was handed out
			s.giveBack(lease)
			s.lane.q.breakers.judge(lease, breaker.None)
			lease.place.leave()
			continue
		}
		if body != nil && lease.begin(body) {
			outcome := lease.unrunnable()
			if outcome == nil {
				return lease, nil
			}
			s.lane.q.breakers.judge(lease, breaker.None) // there is no attempt that tells the other breaker anything
			s.lane.q.Settle(lease, Report{Outcome: *outcome})
			continue
		}
		s.lane.q.breakers.judge(lease, breaker.None)
		// Without an error the task was cancelled. The cancel takes the lease
		// out of the lane, which may be still to come.
		again := err != nil && s.lane.putBack(lease)
		if err == nil {
			s.lane.q.suspects.settled(lease)
		}
		s.lane.leaveGroup(lease)
		lease.place.leave()
		if !again {
			continue
		}
		s.lane.q.cfg.Logger.Error("task can't be read; it will be tried again",
			logkey.Worker, s.lane.name, logkey.Error, err)
		if err := s.pause(ctx); err != nil {
			return nil, err
		}
	}
}

// unrunnable returns what becomes of a task without an attempt; nil = it is to run.
func (l *Lease) unrunnable() *jobhost.Outcome {
	switch {
	case l.refusedBy != "":
		outcome := refusal(l.refusedBy)
		return &outcome
	case l.Damage != nil:
		return &jobhost.Outcome{Kind: jobhost.OutcomeFailed, Failure: &jobhost.Failure{
			Code: jobhost.FailDamaged, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical,
			Message: damageOf(l.Damage),
		}}
	}
	return nil
}

// damageOf is the message about damage for people, without its cause.
func damageOf(err error) string {
	if e, ok := errors.AsType[*jobhost.Error](err); ok {
		return e.Message
	}
	return err.Error()
}

// pause lets retryStore pass.
func (s *Slot) pause(ctx context.Context) error {
	timer := time.NewTimer(retryStore)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.lane.q.closing:
		return errClosed
	}
}

func (s *Slot) wait(ctx context.Context) (*Lease, error) {
	if ctx.Err() != nil { // or a slot that is to end would take what waits and give it back
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
	case lease := <-s.handed: // it was handed over in between
		return lease, nil
	default:
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, errClosed
}

// leaveGroup is for a lease that ends without a settlement.
func (l *lane) leaveGroup(lease *Lease) {
	if lease.group == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leaveGroupLocked(lease)
	l.pumpLocked() // others with the same key may run
}

// Note ties the note of the attempt to the lease: it is forgotten when what became of
// the attempt is durable, or its task was put back.
func (l *Lease) Note(noted *journal.Entry) { l.noted = noted }

// finish forgets a lease.
func (l *lane) finish(lease *Lease) {
	lease.noted.End()
	l.q.suspects.settled(lease)
	l.mu.Lock()
	if l.running[lease.entry.Key] == lease {
		delete(l.running, lease.entry.Key)
	}
	if lease.fault == nil {
		delete(l.misses, lease.entry.Key)
	}
	l.mu.Unlock()
	l.leaveGroup(lease)
}

// giveBack makes a task wait again of which the slot has not begun an attempt.
func (s *Slot) giveBack(lease *Lease) {
	l := s.lane
	l.mu.Lock()
	l.rate.GiveBack()
	l.mu.Unlock()
	l.putBack(lease)
}
