package process

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/internal/text"
	"github.com/jobhost/jobhost/runtime"
	"github.com/jobhost/jobhost/runtime/hostcall"
)

// instance is a slot of a process; it implements [runtime.Instance].
type instance struct {
	supervisor *supervisor
	place      *place
	slot       uint32
	timer      *time.Timer // of its runs; reused
}

// Run implements [runtime.Instance].
func (i *instance) Run(ctx context.Context, at *hostcall.Attempt) runtime.Result {
	switch {
	case ctx.Err() != nil:
		return runtime.Result{Outcome: at.Stopped(ctx)}
	case at.Over(ctx):
		return runtime.Result{Outcome: at.TimedOut()}
	}
	r := newRun(at, i.timer)
	leave, err := i.enter(ctx, r)
	if err != nil {
		switch {
		case ctx.Err() != nil:
			return runtime.Result{Outcome: at.Stopped(ctx)}
		case at.Cancelled(): // it never began, so there is nothing to bring to an end
			return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeCancelled}}
		}
		// Nothing can be run at the moment, which is not the task's fault.
		return runtime.Result{Outcome: jobhost.Outcome{Kind: jobhost.OutcomeReturned}}
	}
	defer leave()
	task := taskOf(at)
	task.Slot = i.slot
	began := time.Now()
	result, why := r.do(ctx, task)
	r.child.reading.brief.Store(time.Since(began) < briefTime)
	r.child.finish(r)
	close(r.gone)
	at.Flush()
	out := r.resultOf(ctx, result, why)
	if out.Outcome.Kind == 0 {
		out.Outcome, out.Replace = i.blame(r), runtime.ReplacedTrap
	}
	return out
}

// enter begins a run. Until there is a process for it, its clock is stopped, and a cancelled run doesn't wait.
func (i *instance) enter(ctx context.Context, r *run) (leave func(), err error) {
	suspect := i.supervisor.takeSuspect(r.at)
	if !suspect && i.supervisor.enterNow(i.place, r) {
		return func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.at.OnCancel(func() { cancel(hostcall.ErrCancelled) })
	defer r.at.OnCancel(nil)
	began := time.Now()
	if suspect {
		leave, err = i.supervisor.enterAlone(ctx, r)
	} else {
		leave, err = func() {}, i.supervisor.enter(ctx, i.place, r)
	}
	if waited := time.Since(began); !r.at.Deadline.IsZero() {
		r.at.Deadline = r.at.Deadline.Add(waited)
	}
	return leave, err
}

// blame decides the outcome of an attempt whose process has died. It failed if it is known to be the cause; otherwise
// it is returned to the queue without being counted.
func (i *instance) blame(r *run) jobhost.Outcome {
	victims, killer, stopped := r.child.victims(), r.child.killedFor(), i.supervisor.life.Err() != nil
	switch {
	case stopped, killer != 0:
		return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
	case victims > 1:
		i.supervisor.suspect(r.at)
		return jobhost.Outcome{Kind: jobhost.OutcomeReturned}
	}
	return r.at.Failure(jobhost.FailCrash, jobhost.CategorySystem,
		"the worker's process ended while it ran: "+text.Line(r.child.endText(), 2000))
}

// Close implements [runtime.Instance].
func (i *instance) Close(context.Context) error {
	i.supervisor.leave(i)
	return nil
}

func stoppedTimer() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}
