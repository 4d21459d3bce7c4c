package jobhost

import (
	"context"
	"iter"
	"time"
)

// The interfaces below define what a running host can be asked. What Host.Server in
// package host returns implements them in process and Client in package client over HTTP; both
// pass the suite in host/hosttest. All methods are safe for concurrent use.
// Errors carry a [Code]: see [CodeOf].

// Submitter takes jobs.
type Submitter interface {
	// Submit returns when the job is durable. See [Spec] for ids and defaults.
	// A job that already exists is found even if the queue is full. Errors:
	// invalid, not_found (no such worker), conflict (the id is taken by other
	// content), too_large, exhausted (the queue is full, with RetryAfter),
	// unavailable (not running).
	Submit(ctx context.Context, spec Spec) (Receipt, error)
	// SubmitBatch submits many jobs at once and returns one answer per job, in
	// order; one job's error does not affect the others. The returned error is
	// for the call as a whole.
	SubmitBatch(ctx context.Context, specs []Spec) ([]Submitted, error)
}

// Submitted is the answer to one job of a batch: a receipt or an error.
type Submitted struct {
	Receipt Receipt
	Err     error
}

// Reader reads jobs. A job that does not exist is not_found.
type Reader interface {
	Job(ctx context.Context, id string) (Job, error)
	Jobs(ctx context.Context, filter Filter) (Page, error)
	// Result returns what a task returned; conflict while it has not succeeded,
	// too_large over [MaxWhole].
	Result(ctx context.Context, id string, task int) (Result, error)
	Logs(ctx context.Context, id string) ([]AttemptLog, error)
	Why(ctx context.Context, id string) (Why, error)
}

// ResultLister is a [Reader] that can read the results of a job together, at a
// cost per task that does not grow with their number. A host is one.
type ResultLister interface {
	// Results yields what the tasks of a job returned, ordered by index: those
	// that have succeeded with at most most bytes. The last pair may carry an
	// error.
	Results(ctx context.Context, id string, most int) iter.Seq2[Result, error]
}

// Controller cancels, retries and deletes jobs.
type Controller interface {
	// Cancel ends the open tasks of a job: queued ones never run, running ones
	// are notified and then stopped. Conflict when the job has already ended in
	// another state; cancelling a cancelled job is not an error.
	Cancel(ctx context.Context, id string) (Job, error)
	// Retry makes the dead and cancelled tasks of a job ready again, with all
	// their attempts. Conflict when there are none, exhausted when the queue
	// has no room for them.
	Retry(ctx context.Context, id string) (Job, error)
	// CancelTask and RetryTask do the same with one task of a job.
	CancelTask(ctx context.Context, id string, task int) (Job, error)
	RetryTask(ctx context.Context, id string, task int) (Job, error)
	// Delete removes a job that has ended; conflict while it is open.
	Delete(ctx context.Context, id string) error
}

// Watcher reports what happens, as it happens.
type Watcher interface {
	// Wait returns the job when it has ended. If ctx ends first, the error is
	// its cause and the job is returned in its current state.
	Wait(ctx context.Context, id string) (Job, error)
	// Events yields events until ctx ends, the host stops or the reader is too
	// slow; the last pair carries an error that says which.
	Events(ctx context.Context, query EventQuery) iter.Seq2[Event, error]
}

// WorkerLister lists the workers.
type WorkerLister interface {
	// Workers returns all workers sorted by name.
	Workers(ctx context.Context) ([]WorkerStatus, error)
}

// Reloader changes what a host runs while it runs.
type Reloader interface {
	// Reload re-reads what the host is to run and switches over to it: one
	// worker, or all of them if the name is empty. New versions are loaded and
	// tried first, while the old ones run; then all are swapped at once.
	// Running tasks finish on the version that they began on. After an error
	// nothing has changed. Reloads are serialized. Errors: invalid (what is to
	// run has faults, or this host can't be reloaded), not_found (no such
	// worker, before or after), unavailable (not running).
	Reload(ctx context.Context, worker string) (Reload, error)
}

// Operator changes how a worker's tasks are handled. All changes except the
// number of slots survive restarts and reloads. Asking for what is already the
// case is not an error. Errors: not_found (no such worker), invalid,
// unavailable.
type Operator interface {
	// PauseWorker keeps accepting jobs but holds them. Running tasks continue.
	PauseWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// DrainWorker does the same and also refuses new jobs, as unavailable.
	DrainWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// ResumeWorker ends a pause or a drain.
	ResumeWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// ScaleWorker changes the number of slots, 1 to [MaxSlots], until the host
	// ends or the worker is loaded with other settings. Surplus slots end after
	// the task that they are running.
	ScaleWorker(ctx context.Context, worker string, slots int) (WorkerStatus, error)
	// ResetBreaker closes the worker's circuit breaker, and thereby that of all
	// workers that share it; conflict when the worker has none.
	ResetBreaker(ctx context.Context, worker string) (WorkerStatus, error)
}

// KeyKeeper reads and changes the keys and values of workers. Changes are
// durable when a method returns, and visible to attempts that begin later.
// Errors: invalid, not_found.
type KeyKeeper interface {
	// Keys lists keys of a worker, in byte order. An unknown worker has none.
	Keys(ctx context.Context, filter KeyFilter) (KeyPage, error)
	// KeyValue returns a key with its value.
	KeyValue(ctx context.Context, worker, key string) (Key, []byte, error)
	// SetKey sets a key of a worker, which must be loaded, for ttl; 0 = no
	// expiry. The worker's quota does not apply here. Errors: also too_large.
	SetKey(ctx context.Context, worker, key string, value []byte, ttl time.Duration) error
	// DeleteKey removes a key.
	DeleteKey(ctx context.Context, worker, key string) error
}

// Server combines everything a host can be asked.
type Server interface {
	Submitter
	Reader
	Controller
	DeadLetters
	Watcher
	WorkerLister
	Reloader
	Operator
	KeyKeeper
	StateKeeper
	StateCleaner
	Scheduler
	PayloadStorer
	FiberRunner
	FiberTalker
	FiberController
	WorkflowRunner
	WorkflowController
	WorkflowDefiner
}
