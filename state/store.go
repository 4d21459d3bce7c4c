package state

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// Store keeps states durably. It is dumb on purpose: what prevails, what is
// replayed and to which readers stands in [Board], written once. What a store must
// guarantee stands here and is checked by statetest, the suite that every store
// passes. All methods may be called from many goroutines.
type Store interface {
	// Open begins to follow the states of a job: all that there are have been
	// handed to feed when it returns, and every change is from then on, until
	// the source is closed. A change may be handed over twice, and one that
	// another has followed may be left out; the last one never is. ctx is for the
	// opening alone.
	//
	// A job that isn't there is made with so many tasks by its first state, or when it
	// is marked while it is open; until then opening it leaves nothing behind. One that
	// is there keeps its own number. All who have it open have the same: who has opened
	// it with another number, in another process, before it was made, is ended with
	// conflict. Errors: not_found when it isn't there and tasks is 0,
	// conflict when it is marked as deleted, [ErrClosed].
	Open(ctx context.Context, job Job, tasks int, feed Feed) (Source, error)

	// Jobs lists up to limit jobs in the order of the bytes of their keys, after the
	// one given, those that are marked as deleted too.
	Jobs(ctx context.Context, after string, limit int) ([]Info, error)
	// Mark marks a job as deleted: it can't be opened any more, and its feeds are
	// ended with [ErrDeleted]. Marking it again is fine, and neither is a change of
	// its states. Errors: not_found.
	Mark(ctx context.Context, job Job) error
	// Delete removes a job with its states, and ends its feeds with [ErrDeleted].
	// Errors: not_found.
	Delete(ctx context.Context, job Job) error

	// Close ends all feeds with [ErrClosed], and what is called later fails with it.
	// Closing twice is fine.
	Close() error
}

// Costly is a store that is paid for what it is asked to follow.
type Costly interface {
	// IdleTime is how long a job that no one uses any more is worth being followed.
	IdleTime() time.Duration
}

// Source is a job of a store that is followed.
type Source interface {
	// Tasks is the job's number of tasks.
	Tasks() int
	// Set makes a state durable and returns it as it is stored: with the next
	// Version of its (task, tag), the store's time, and an EventID if it had none.
	// Its feed has been handed it by then. If the last write of the (task, tag) had
	// the same EventID nothing changes, and what is there is returned. The state
	// has been checked. Calls for one (task, tag) take effect one after the other,
	// and a write that begins when another has returned has no earlier time.
	//
	// What is returned, handed to feeds and found later is the same, its time to
	// the last digit and its payload as JSON. Errors: [ErrDeleted] when the job was
	// marked or deleted since it was opened, even if there is another of its name
	// by now; [ErrClosed] when the store was closed.
	Set(ctx context.Context, s State) (State, error)
	// Close ends the feed, which gets nothing any more.
	Close() error
}

// Feed takes what a store has to tell of a job. Its methods don't block and may be
// called from many goroutines.
type Feed interface {
	// Put hands over states, in the order of the store. What isn't newer than
	// what the feed knows of a (task, tag) is ignored.
	Put(states ...State)
	// End says why there will be no more.
	End(reason error)
}

// Info is what a store knows of a job.
type Info struct {
	Job
	Tasks, States        int
	CreatedAt, ChangedAt time.Time
	DeletedAt            time.Time // when it was marked; zero = it wasn't
}

// Observer has functions to call, for metrics, each of which may be nil. They may be
// called under locks and must be quick.
type Observer struct {
	// Opened is called for each use of a job: hit = it was in memory.
	Opened func(hit bool)
	// Replayed is called with how long it took to gather what a subscription begins with.
	Replayed func(took time.Duration)
	// Delivered is called, for each change that is watched, with how long it took from
	// the store's time to the subscriptions.
	Delivered func(took time.Duration)
	// Wrote is called for each write, also of one that was refused before the store saw it.
	Wrote func(took time.Duration, err error)
	// Dropped is called with how many events a reader that left had not read.
	Dropped func(events int)
	// Slow is called for each subscription that was ended with [ErrSlow].
	Slow func()
	// Drift is called with how many versions of a state were never seen.
	Drift func(versions int64)
	// Reconnected is called each time that a store has to listen anew.
	Reconnected func()
}

// checkTasks returns an error unless a job may have so many tasks; 0 = its own number.
func checkTasks(tasks int) error {
	if tasks >= 0 && tasks <= jobhost.MaxTasks {
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "tasks",
		Message: "a job can't have " + itoa(tasks) + " tasks: it has 1 to " + itoa(jobhost.MaxTasks),
	}
}

// checkTask returns an error unless a job has the task.
func checkTask(task, tasks int) error {
	if task >= 0 && task < tasks {
		return nil
	}
	return &jobhost.Error{
		Code: jobhost.CodeInvalid, Field: "task",
		Message: "the job has no task " + itoa(task) + ": it has " + itoa(tasks) + ", counted from 0",
	}
}
