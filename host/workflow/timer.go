package workflow

import (
	"context"
	"math"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/queue"
)

// Timers is the queue's worker of the jobs that are timers. They wait for their time and then
// merely end: see [Engine.Run].
func Timers() queue.Worker {
	return queue.Worker{
		Name: jobhost.WorkflowWorker, Capacity: math.MaxInt32, Retry: jobhost.DefaultRetry(), Retention: jobhost.DefaultRetention(),
	}
}

// Run ends timers that are due until the queue closes or ctx ends. Its error is always nil.
func (e *Engine) Run(ctx context.Context) error {
	slot := e.queue.Slot(jobhost.WorkflowWorker)
	for {
		lease, err := slot.Take(ctx)
		if err != nil {
			return nil //nolint:nilerr // the end is no fault
		}
		e.queue.Settle(lease, queue.Report{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeSucceeded}})
	}
}
