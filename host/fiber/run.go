package fiber

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
	"github.com/jobhost/jobhost/internal/logkey"
)

// exit is the outcome of a run, and perhaps of the fiber.
type exit struct {
	status  jobhost.FiberStatus
	result  []byte
	failure *jobhost.Failure
	lasted  time.Duration
}

// run is the life of a fiber with a permit, in its goroutine.
func (r *Registry) run(f *Fiber) {
	var e exit
	defer func() {
		if e.status == "" { // the body has ended the goroutine
			e = exit{status: jobhost.FiberFailed, failure: fault()}
		}
		r.finish(f, e)
	}()
	for {
		last := r.attempt(f)
		delay, again := r.again(f, &last)
		if !again || !r.rest(f, delay, &last) {
			e = last
			return
		}
		f.begin(1)
		r.cfg.Observe.Restarted(f.spec.Worker)
	}
}

// attempt runs the body once.
func (r *Registry) attempt(f *Fiber) (e exit) {
	f.mu.Lock()
	attempt, began := f.restarts.count+1, f.startedAt
	f.mu.Unlock()
	result := scope.Run(r.cfg.Scope, f.spec.ID, func(ctx context.Context, run *scope.Scope) (struct{}, error) {
		if f.enter(run) {
			defer f.leave()
			e.result, e.failure = f.body(ctx, f)
		}
		return struct{}{}, nil
	}, scope.Forget())
	now := time.Now().UTC()
	admitted := result.ID != 0 // otherwise the scope no longer admits anything
	if err := errors.Join(append(result.Extra, result.Primary)...); err != nil && admitted {
		r.cfg.Logger.Error("fiber met a fault of the host", f.faultAttrs(err)...)
	}
	if result.Primary != nil && admitted {
		e.failure = fault()
	}
	e.status, e.lasted = jobhost.FiberCompleted, now.Sub(began)
	killed := f.killedBy()
	if killed == "" && (r.stopping() || !admitted) {
		killed = FailStopped
	}
	switch {
	case killed != "":
		if e.failure != nil {
			r.cfg.Logger.Debug("fiber failed as it was killed", logkey.Fiber, f.spec.ID, logkey.Code, e.failure.Code, logkey.Error, e.failure.Message)
		}
		e.kill(killed)
	case e.failure != nil:
		e.status, e.result = jobhost.FiberFailed, nil
	}
	if e.failure != nil {
		dated := *e.failure // the body may keep its own
		dated.Attempt, dated.StartedAt, dated.EndedAt = attempt, began, now
		e.failure = &dated
	}
	return e
}

// kill makes e the exit of a fiber that was asked to end, whatever the outcome of its
// run.
func (e *exit) kill(code string) {
	message := "it was interrupted"
	if code == FailStopped {
		message = "the host stopped"
	}
	e.status, e.result = jobhost.FiberKilled, nil
	e.failure = &jobhost.Failure{
		Code: code, Category: jobhost.CategorySystem, Severity: jobhost.SeverityInfo, Message: message, EndedAt: time.Now(),
	}
}

// fault is the failure of a fiber due to a fault of the host, without details for
// outsiders.
func fault() *jobhost.Failure {
	return &jobhost.Failure{
		Code: jobhost.FailInternal, Category: jobhost.CategorySystem, Severity: jobhost.SeverityCritical,
		Message: "the host has a fault; its log says more", Retryable: true, EndedAt: time.Now(),
	}
}

// faultAttrs are details for the log only.
func (f *Fiber) faultAttrs(err error) []any {
	attrs := []any{logkey.Fiber, f.spec.ID, logkey.Worker, f.spec.Worker, logkey.Error, err}
	if fault, panicked := errors.AsType[*scope.PanicError](err); panicked {
		attrs = append(attrs, logkey.Stack, string(fault.Stack))
	}
	return attrs
}

// again reports whether to restart a fiber, and after what delay. After too many
// restarts, e becomes a failure.
func (r *Registry) again(f *Fiber, e *exit) (time.Duration, bool) {
	policy := &f.spec.Restart
	if e.status == jobhost.FiberKilled || !wanted(policy, e.status == jobhost.FiberFailed) {
		return 0, false
	}
	f.mu.Lock()
	delay, ok := f.restarts.next(policy, time.Now(), e.lasted)
	if ok {
		f.failure, f.runs = e.failure, false
	}
	f.mu.Unlock()
	if ok {
		return delay, true
	}
	r.cfg.Observe.Refused(LimitRestarts)
	often := fmt.Sprintf("it was restarted %d times within %v, which is as often as it may", policy.Intensity, time.Duration(policy.Within))
	if e.failure == nil {
		e.failure = &jobhost.Failure{
			Code: jobhost.FailLimit, Category: jobhost.CategoryResource, Severity: jobhost.SeverityError, Message: often, EndedAt: time.Now(),
		}
	} else {
		e.failure.Message += "; " + often
	}
	e.status, e.result = jobhost.FiberFailed, nil
	return 0, false
}

// rest waits between two runs. If the fiber is asked to end in the meantime, it
// returns false and sets e.
func (r *Registry) rest(f *Fiber, delay time.Duration, e *exit) bool {
	over := op.Wrap(op.After(delay), func(time.Time) (bool, error) { return true, nil })
	interrupted := op.Wrap(f.interrupted.Wait(), func(struct{}) (bool, error) { return false, nil })
	_, err := op.Perform(r.cfg.Scope.Context(), op.Choice(over, interrupted))
	switch killed := f.killedBy(); {
	case killed != "":
		e.kill(killed)
	case err != nil:
		e.kill(FailStopped)
	default:
		return true
	}
	return false
}

// finish ends a fiber whose exit is decided, in the documented order.
func (r *Registry) finish(f *Fiber, e exit) {
	f.mu.Lock()
	f.ending = true
	f.in.shutWith(errEnding(f.spec.ID)) // messages that arrive now would be lost
	if f.grace != nil {
		f.grace.Stop()
	}
	end := f.nowLocked()
	f.mu.Unlock()
	now := time.Now().UTC()
	end.Status, end.Failure, end.Result, end.EndedAt = e.status, e.failure, e.result, &now
	defer r.settle(f, &end) // even if the hook ends the goroutine
	if f.onTerminate == nil {
		return
	}
	if err := terminate(f.onTerminate, end); err != nil {
		r.cfg.Logger.Error("on_terminate of a fiber has failed", f.faultAttrs(err)...)
	}
}

// terminate calls a hook and turns its panic into an error.
func terminate(hook OnTerminate, end jobhost.Fiber) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &scope.PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return hook(end)
}

// settle releases what a fiber has and remembers its end.
func (r *Registry) settle(f *Fiber, end *jobhost.Fiber) {
	// One step for all observers: when a subscription ends, the fiber has ended; the
	// fiber is always in one of the two places, and its permit is free only when it
	// has ended.
	r.mu.Lock()
	f.mu.Lock()
	end.Waiting = f.in.clear()
	end.Received = f.in.received
	end.Emitted = f.closeHubLocked(reason(end))
	end.Subscribers = 0
	f.end = end
	f.mu.Unlock()
	r.past.add(end)
	delete(r.live, end.ID)
	if f.permit {
		f.permit = false
		r.free++
		r.grantLocked()
	}
	r.mu.Unlock()
	r.cfg.Logger.Info("fiber has ended", logkey.Fiber, end.ID, logkey.Worker, end.Worker, logkey.Outcome, string(end.Status),
		logkey.Code, code(end.Failure), logkey.Count, end.Waiting)
	r.cfg.Observe.Ended(end.Worker, end.Status)
	if end.StartedAt == nil {
		f.begun.Set(struct{}{}, errUnbegun(end.ID))
	}
	f.ended.Set(end, nil)
}

func code(f *jobhost.Failure) string {
	if f == nil {
		return ""
	}
	return f.Code
}
