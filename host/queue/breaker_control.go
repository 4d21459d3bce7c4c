package queue

import (
	"context"
	"fmt"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue/record"
)

// ResetBreaker closes the breaker of a worker that is loaded, durably. It is a
// conflict when the worker has none.
func (q *Queue) ResetBreaker(ctx context.Context, worker string) error {
	l, err := q.loaded(worker)
	if err != nil {
		return err
	}
	b := l.itsBreaker()
	if b == nil {
		return &jobhost.Error{
			Code: jobhost.CodeConflict, Field: "worker", Message: fmt.Sprintf("worker %s has no circuit breaker", worker),
			Hint: "the manifest gives it one in [worker." + worker + ".breaker]",
		}
	}
	b.saving.Lock()
	err = q.commitOne(ctx, &record.Note{Name: noteBreaker + b.key}, func(result record.OpResult) {
		if result.Err == nil {
			b.Reset()
		}
	})
	if err == nil {
		b.saved = ""
	}
	b.saving.Unlock()
	if err != nil {
		return fmt.Errorf("reset breaker %s: %w", b.key, err)
	}
	q.breakers.changed(b)
	return nil
}

func (l *lane) itsBreaker() *sharedBreaker {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.breaker
}

// Breaker returns the state of the breaker of a worker, which must be one of the queue's;
// nil = it has none.
func (q *Queue) Breaker(worker string) *jobhost.BreakerStatus {
	b := q.lanes.of(worker).itsBreaker()
	if b == nil {
		return nil
	}
	status := b.Status(q.clock.now())
	return &status
}
