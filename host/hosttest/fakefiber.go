package hosttest

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/host/fiber"
	"github.com/jobhost/jobhost/host/op"
	"github.com/jobhost/jobhost/host/scope"
)

var errFakeClosed = errors.New("the fake is closed")

// newFibers makes the registry of fibers. Its bodies do what the guests of [Run] do.
func (f *Fake) newFibers() {
	f.root = scope.New(context.Background(), "fake")
	cfg := f.cfg.Fibers
	cfg.Scope = f.root
	if cfg.Grace == 0 {
		cfg.Grace = 20 * time.Millisecond
	}
	var err error
	if f.fibers, err = fiber.New(cfg); err != nil {
		f.root.Cancel(err) // there is a scope, so this can't be
	}
}

// endFibers ends all of them, and waits for that.
func (f *Fake) endFibers() {
	f.fibers.Stop()
	f.root.Cancel(errFakeClosed)
	_, _ = f.root.Join(context.Background())
}

// talk is the body of fibers.
func talk(ctx context.Context, f *fiber.Fiber) ([]byte, *jobhost.Failure) {
	switch f.Spec().Entry {
	case "fiber":
	default:
		return nil, &jobhost.Failure{Code: jobhost.FailNoEntry, Category: jobhost.CategoryValidation, Severity: jobhost.SeverityError, Message: "no such entry"}
	}
	for {
		message, err := op.Perform(ctx, f.Recv())
		if err != nil {
			return f.Spec().Init, nil // nothing more will come
		}
		switch string(message) {
		case "end":
			return f.Spec().Init, nil
		case "fail":
			return nil, failing(jobhost.FailWorker, "on purpose")
		case "trap":
			return nil, failing(jobhost.FailTrap, "unreachable")
		case "spin":
			_ = f.Emit([]byte("spinning")) // it has not ended
			<-ctx.Done()
			return nil, failing(jobhost.FailTimeout, "it was stopped")
		default:
			_ = f.Emit(message) // as above
		}
	}
}

func failing(code, message string) *jobhost.Failure {
	return &jobhost.Failure{Code: code, Category: jobhost.CategorySystem, Severity: jobhost.SeverityError, Message: message}
}

// StartFiber implements [jobhost.FiberRunner].
func (f *Fake) StartFiber(ctx context.Context, spec jobhost.FiberSpec) (jobhost.Fiber, error) {
	if err := spec.Check(); err != nil {
		return jobhost.Fiber{}, err
	}
	if spec.Worker != FakeWorker {
		return jobhost.Fiber{}, problem(jobhost.CodeNotFound, "worker", "there is no worker %q", spec.Worker)
	}
	return f.fibers.Start(ctx, spec, talk, nil)
}

// Fiber implements [jobhost.FiberRunner].
func (f *Fake) Fiber(_ context.Context, id string) (jobhost.Fiber, error) { return f.fibers.Get(id) }

// Fibers implements [jobhost.FiberRunner].
func (f *Fake) Fibers(_ context.Context, filter jobhost.FiberFilter) (jobhost.FiberPage, error) {
	return f.fibers.List(filter)
}

// SendFiber implements [jobhost.FiberTalker].
func (f *Fake) SendFiber(ctx context.Context, id string, message []byte, wait bool) error {
	return f.fibers.Submit(ctx, id, message, wait)
}

// WatchFiber implements [jobhost.FiberTalker].
func (f *Fake) WatchFiber(ctx context.Context, query jobhost.FiberQuery) iter.Seq2[jobhost.FiberOutput, error] {
	return f.fibers.Watch(ctx, query)
}

// PauseFiber implements [jobhost.FiberController].
func (f *Fake) PauseFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	return f.fibers.Pause(id)
}

// ResumeFiber implements [jobhost.FiberController].
func (f *Fake) ResumeFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	return f.fibers.Resume(id)
}

// InterruptFiber implements [jobhost.FiberController].
func (f *Fake) InterruptFiber(_ context.Context, id string) (jobhost.Fiber, error) {
	return f.fibers.Interrupt(id)
}
