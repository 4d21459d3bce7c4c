package queue

import (
	"context"

	"github.com/jobhost/jobhost/host/queue/record"
)

// commit commits operations and waits until they are durable, or until ctx ends,
// whose cause is the error. applied runs on the store's goroutine, in the order
// of the commits, with a result for each operation: when the batch as a whole
// was not applied, each of them has its error.
func (q *Queue) commit(ctx context.Context, ops []record.Op, applied func([]record.OpResult)) error {
	done := make(chan struct{})
	q.inflight.Add(1)
	q.store.Commit(ops, func(results []record.OpResult, err error) {
		defer q.inflight.Done()
		defer close(done)
		if err != nil {
			results = make([]record.OpResult, len(ops))
			for i := range results {
				results[i].Err = err
			}
		}
		applied(results)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// commitOne is commit for one operation that may bring jobs to any lane. Its
// error is also that of the operation.
func (q *Queue) commitOne(ctx context.Context, op record.Op, applied func(record.OpResult)) error {
	var refused error
	q.lanes.opening.RLock()
	err := q.commit(ctx, []record.Op{op}, func(results []record.OpResult) {
		defer q.lanes.opening.RUnlock()
		applied(results[0])
		refused = results[0].Err
	})
	if err != nil {
		return err
	}
	return refused
}
