package process

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	jobhost "github.com/jobhost/jobhost/plugins/sdk/go"
	"github.com/jobhost/jobhost/plugins/sdk/process/link"
	"github.com/jobhost/jobhost/plugins/sdk/process/protocol"
)

// ErrCancelled is the cause of a handler's context when its job was cancelled. The handler has some
// seconds to return, during which it can still call the host.
var ErrCancelled = errors.New("the job was cancelled")

// Run implements [link.Program].
func (p *program) Run(ctx context.Context, run *link.Run) *protocol.Result {
	handler := p.handlers[run.Task.GetEntry()]
	if handler == nil {
		return failure(&jobhost.Failure{
			Err:  fmt.Errorf("the worker has no entry %q", run.Task.GetEntry()),
			Code: "no_entry", Category: jobhost.Validation, Permanent: true,
		})
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	run.OnCancel(func() { cancel(ErrCancelled) })
	if !run.Deadline.IsZero() {
		ctx = timed{ctx, run.Deadline}
	}
	host := &remote{run: run, host: &p.host}
	out, err := call(ctx, handler, newJob(run, host))
	host.flush()
	if err == nil {
		return &protocol.Result{Outcome: &protocol.Result_Output{Output: out}}
	}
	if ctx.Err() != nil && ended(err) {
		return &protocol.Result{Outcome: &protocol.Result_Stopped{Stopped: &protocol.Stopped{}}}
	}
	return failure(err)
}

// timed is a context with a deadline. The host keeps time, so that no timer is needed here.
type timed struct {
	context.Context

	at time.Time
}

// Deadline implements [context.Context].
func (t timed) Deadline() (time.Time, bool) { return t.at, true }

// ended reports whether an error is a result of stopping the attempt.
func ended(err error) bool {
	for _, end := range []error{jobhost.ErrStopped, ErrCancelled, link.ErrStopped, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// call calls a handler and turns a panic into an error.
func call(ctx context.Context, h Handler, job *Job) (out []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{value: v, stack: string(debug.Stack())}
		}
	}()
	return h(ctx, job)
}

// panicked is a panic of a handler.
type panicked struct {
	value any
	stack string
}

// Error returns the value as text.
func (p *panicked) Error() string { return fmt.Sprint("panic: ", p.value) }

// As implements the interface of [errors.As], for [*jobhost.Failure].
func (p *panicked) As(target any) bool {
	f, ok := target.(**jobhost.Failure)
	if ok {
		*f = &jobhost.Failure{Err: p, Code: "panic", Category: jobhost.System, Severity: jobhost.SeverityCritical}
	}
	return ok
}

// failure converts an error that ends the attempt for the host.
func failure(err error) *protocol.Result {
	if s, ok := errors.AsType[*jobhost.SnoozeError](err); ok {
		ms := max((s.After+time.Millisecond-1)/time.Millisecond, 1)
		return &protocol.Result{Outcome: &protocol.Result_SnoozeMs{SnoozeMs: int64(ms)}}
	}
	failed := &protocol.Failure{Message: err.Error()}
	if f, ok := errors.AsType[*jobhost.Failure](err); ok {
		failed.Code, failed.Category, failed.Severity, failed.Permanent = f.Code, string(f.Category), string(f.Severity), f.Permanent
		if len(f.Context) > 0 {
			context, _ := json.Marshal(f.Context) // a map of strings can always be encoded
			failed.Context = string(context)
		}
	}
	if p, ok := errors.AsType[*panicked](err); ok {
		failed.Stack = p.stack
	}
	return &protocol.Result{Outcome: &protocol.Result_Failure{Failure: failed}}
}
