package queue

import (
	"fmt"
	"time"

	"github.com/jobhost/jobhost"
)

// accept takes room for n tasks of a new job, unless the worker is draining.
func (l *lane) accept(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.mode == jobhost.WorkerDraining {
		return &jobhost.Error{
			Code:    jobhost.CodeUnavailable,
			Field:   "worker",
			Message: fmt.Sprintf("worker %s is draining and takes no jobs", l.name),
			Hint:    "jobhost worker resume " + l.name,
		}
	}
	return l.reserveLocked(n)
}

// reserve takes room for n tasks, which is filled or given back when their fate
// is known.
func (l *lane) reserve(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserveLocked(n)
}

func (l *lane) reserveLocked(n int) error {
	if waiting, capacity := l.waitingLocked(), l.worker.Load().Capacity; waiting+n > capacity {
		return &jobhost.Error{
			Code:       jobhost.CodeExhausted,
			Field:      "worker",
			Message:    fmt.Sprintf("the queue of %s is full: %d tasks wait, of %d", l.name, waiting, capacity),
			Hint:       "try again later, add slots to the worker or raise its queue_capacity",
			RetryAfter: retryAfter,
		}
	}
	l.pending += n
	return nil
}

// vacate gives back room for n tasks that was taken and not filled.
func (l *lane) vacate(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pending -= n
}

// retryAfter is when a caller who met a full queue should try again.
const retryAfter = time.Second

// Refuse makes the queue refuse new jobs with an error from now on, while all
// that it holds goes on; nil = it takes them again. Jobs that are there already
// are found as usual.
func (q *Queue) Refuse(reason *jobhost.Error) { q.refusal.Store(reason) }

// Refusal returns why new jobs are refused; nil = they aren't.
func (q *Queue) Refusal() *jobhost.Error { return q.refusal.Load() }

// Takes returns why a worker takes no job now; nil = it does.
func (q *Queue) Takes(worker string) error {
	l := q.lanes.of(worker)
	if l == nil || l.parked.Load() {
		return q.noWorker(worker)
	}
	if refusal := q.refusal.Load(); refusal != nil {
		return refusal
	}
	if err := l.accept(1); err != nil {
		return err
	}
	l.vacate(1)
	return nil
}

// Room returns an error with code exhausted or unavailable while a worker takes no jobs, and
// not_found if there is no such worker.
func (q *Queue) Room(worker string) error {
	l := q.lanes.of(worker)
	if l == nil || l.parked.Load() {
		return q.noWorker(worker)
	}
	if refusal := q.refusal.Load(); refusal != nil {
		return refusal
	}
	if q.closed.Load() {
		return errClosed
	}
	if err := l.accept(1); err != nil {
		return err
	}
	l.vacate(1)
	return nil
}
