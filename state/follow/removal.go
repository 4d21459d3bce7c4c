package follow

import (
	"context"

	"github.com/jobhost/jobhost/state"
)

// Removal is a job on its way to be marked or deleted. The writer fills in There and calls Done.
type Removal struct {
	Job   state.Job
	There bool // the job was
	done  chan error
}

// Remove hands a job to the writer, and waits until it is marked or deleted.
func (s *Lives) Remove(ctx context.Context, job state.Job, write func(*Removal)) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if s.Closed() {
		return state.ErrClosed
	}
	r := &Removal{Job: job, done: make(chan error, 1)}
	write(r)
	select {
	case err := <-r.done:
		switch {
		case err != nil:
			return s.Explain("delete states", err)
		case !r.There:
			return state.NotFound(job)
		}
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done tells the caller.
func (r *Removal) Done(err error) { r.done <- err }
