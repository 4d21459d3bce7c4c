package jobhost

import (
	"context"
	"iter"
	"time"
)

// The interfaces below are what can be asked of a running host. What Host.Server in
// package host returns implements them in process and Client in package client over
// HTTP; both pass the suite in host/hosttest. All methods may be called from
// many goroutines. Errors carry a [Code]: see [CodeOf].

// Submitter takes jobs.
type Submitter interface {
	// Submit returns when the job is durable. See [Spec] for ids and defaults.
	// A job that is there already is found in a full queue too.
	// Errors: invalid, not_found (no such worker), conflict (the id is taken
	// by other content), too_large, exhausted (the queue is full, with
	// RetryAfter), unavailable (not running).
	Submit(ctx context.Context, spec Spec) (Receipt, error)
	// SubmitBatch submits many jobs at once and returns as many answers in
	// their order; one job's error leaves the others alone. The error is for
	// the call as a whole.
	SubmitBatch(ctx context.Context, specs []Spec) ([]Submitted, error)
}

// Submitted is the answer to one job of a batch: a receipt or an error.
type Submitted struct {
	Receipt Receipt
	Err     error
}

// Reader tells what is known of jobs. A job that is not there is not_found.
type Reader interface {
	Job(ctx context.Context, id string) (Job, error)
	Jobs(ctx context.Context, filter Filter) (Page, error)
	// Result returns what a task returned; conflict while it has not succeeded,
	// too_large over [MaxWhole].
	Result(ctx context.Context, id string, task int) (Result, error)
	Logs(ctx context.Context, id string) ([]AttemptLog, error)
	Why(ctx context.Context, id string) (Why, error)
}

// ResultLister is a [Reader] that can read the results of a job together, which
// costs as much for each task of many as of few. A host is one.
type ResultLister interface {
	// Results yields what the tasks of a job returned, by their index: of those
	// that have succeeded with no more than most bytes. The last pair may carry an
	// error.
	Results(ctx context.Context, id string, most int) iter.Seq2[Result, error]
}

// Controller changes the course of jobs.
type Controller interface {
	// Cancel ends the open tasks of a job: queued ones never run, running
	// ones are told and then stopped. Conflict when the job has ended otherwise;
	// cancelling a cancelled job is fine.
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

// Watcher tells what happens, while it happens.
type Watcher interface {
	// Wait returns the job when it has ended. The error is the context's
	// cause when that ends first; the job is then as far as it is.
	Wait(ctx context.Context, id string) (Job, error)
	// Events yields events until ctx ends, the host stops or the reader was too
	// slow; the last pair carries the error that says which.
	Events(ctx context.Context, query EventQuery) iter.Seq2[Event, error]
}

// WorkerLister tells which workers there are.
type WorkerLister interface {
	// Workers returns all workers sorted by name.
	Workers(ctx context.Context) ([]WorkerStatus, error)
}

// Reloader changes what a host runs while it runs.
type Reloader interface {
	// Reload reads again what the host is to run and changes over to it: one
	// worker, or with an empty name all of them. New versions are loaded and
	// tried first, while the old ones run; then all are swapped. Running tasks
	// end on the version that they began on. With an error nothing has changed.
	// Reloads take turns. Errors: invalid (what is to run has faults, or this
	// host can't be reloaded), not_found (no such worker, before or after),
	// unavailable (not running).
	Reload(ctx context.Context, worker string) (Reload, error)
}

// Operator changes how a worker's tasks are treated. All of it but the number
// of slots survives restarts and reloads. What is asked for and is so already
// is fine. Errors: not_found (no such worker), invalid, unavailable.
type Operator interface {
	// PauseWorker takes jobs as before and holds them. Running tasks go on.
	PauseWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// DrainWorker does the same and refuses jobs besides, as unavailable.
	DrainWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// ResumeWorker ends a pause or a drain.
	ResumeWorker(ctx context.Context, worker string) (WorkerStatus, error)
	// ScaleWorker changes the number of slots, 1 to [MaxSlots]: until the host
	// ends or the worker is loaded with other settings. Slots that are too many
	// end after the task that they run.
	ScaleWorker(ctx context.Context, worker string, slots int) (WorkerStatus, error)
	// ResetBreaker closes the worker's circuit breaker, and with it that of all
	// workers that share it; conflict when the worker has none.
	ResetBreaker(ctx context.Context, worker string) (WorkerStatus, error)
}

// KeyKeeper tells and changes the keys and values of workers. What it changes is
// durable when it returns, and attempts that begin later see it. Errors:
// invalid, not_found.
type KeyKeeper interface {
	// Keys lists keys of a worker, in the order of their bytes. A worker that
	// nobody has heard of has none.
	Keys(ctx context.Context, filter KeyFilter) (KeyPage, error)
	// KeyValue returns a key with its value.
	KeyValue(ctx context.Context, worker, key string) (Key, []byte, error)
	// SetKey sets a key of a worker, which must be loaded, for ttl; 0 = for good.
	// The worker's quota doesn't hold here. Errors: also too_large.
	SetKey(ctx context.Context, worker, key string, value []byte, ttl time.Duration) error
	// DeleteKey removes a key.
	DeleteKey(ctx context.Context, worker, key string) error
}

// Server is all that can be asked of a host.
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
