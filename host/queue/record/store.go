// Package record holds what is stored of jobs: the records themselves, the
// operations that change them, and the interface of a store that keeps them.
package record

import (
	"context"
	"time"

	"github.com/jobhost/jobhost/internal/term"
)

// Store keeps jobs durably. It has no logic on purpose: order, limits, retries and
// everything else a reader would call queueing is in package queue, written once.
// What a store must guarantee stands here and is checked by queuetest, the
// suite that every store passes:
//
//   - Atomic: the operations of one batch are applied all or not at all, also
//     even over a crash. Their results are per operation: one that is refused
//     (conflict, fenced, …) changes nothing and leaves the others alone.
//   - Durable: once done is called without an error the batch survives power
//     loss, unless the store was opened as relaxed.
//   - Fenced: a [Settle] applies only under the token of the current lease.
//   - In order: batches are applied in the order in which Commit was called by
//     one goroutine, done is called in the order in which batches were applied,
//     one after the other, and reads that begin after done see the batch.
//   - Fail-stop: after an error on commit whose outcome the store can't find out,
//     every later Commit fails. The store says so with Failed before it calls done,
//     so until Failed is closed an error means that the batch was not applied.
//
// All methods may be called from many goroutines.
type Store interface {
	// Commit hands over a batch and returns at once, or waits for room when
	// too much is under way already. done is called exactly once, with one
	// result per operation in their order, or with an error and no results
	// when the batch as a whole was not applied; once Failed is closed, an error
	// may also mean that it is unknown whether it was. It is called from a
	// goroutine of the store and must not block. The store owns ops until then.
	Commit(ops []Op, done func([]OpResult, error))

	// Claim leases up to limit open tasks of a worker in order of (ReadyAt,
	// Key), beginning after the place given, and returns them; fewer than
	// limit means that there are no more. A claim is a promise to settle, and
	// nothing is written for it: the open tasks belong to the process that owns the
	// store alone, or to the host that holds the term of a store that hosts share.
	Claim(ctx context.Context, worker string, after Place, limit int) ([]Claimed, error)

	// Load returns what is needed to run the tasks; those that have ended or
	// are gone are left out. The order is that of the keys. What is damaged of one
	// task is in its body, and no error.
	Load(ctx context.Context, keys []Key) ([]Body, error)

	Reader
	EffectReader
	DeadReader
	ObjectReader
	StateReader
	WorkflowReader

	// Now is the time on the clock by which all times in the store are meant: the
	// database's if hosts share the store, whatever their own clocks show, else the
	// process's. It may jump.
	Now() time.Time

	// Failed is closed when the store has stopped for good: every later Commit fails.
	Failed() <-chan struct{}
	// Err returns why the store has stopped, nil = it has not. It wraps [ErrTermOver]
	// when another host leads now, or may.
	Err() error

	// Close waits for what is under way and frees the store.
	Close() error
}

// ErrTermOver is why a store that hosts share takes no more changes from this one.
var ErrTermOver = term.ErrOver

// Leased is a [Store] that hosts share, of which the one that holds its lease may write.
type Leased interface {
	Store
	// Holding reports whether the lease was not renewed for a while. Until it is
	// renewed, nothing must be begun, since another host may lead soon. It is called
	// often and must not block.
	Holding() bool
}

// Reader is the part of a store that answers queries.
type Reader interface {
	// Job returns a job with its tasks and failures; not_found if there is none.
	Job(ctx context.Context, id string) (JobRecord, error)
	// Jobs lists up to limit jobs, newest (highest Key) first, without tasks'
	// failures. It never reads more than it returns times a small factor
	// plus the tasks of the matching jobs.
	Jobs(ctx context.Context, q ListQuery) ([]JobRecord, error)
	// Result returns the result of a task that has succeeded; not_found otherwise.
	Result(ctx context.Context, key Key) ([]byte, error)
	// Results returns those of a job's tasks that have succeeded, by their index, from that one
	// on: up to limit, and few enough that their data have no more than most bytes together,
	// but one at least. None = there are no more.
	Results(ctx context.Context, job Key, from, limit, most int) ([]ResultRecord, error)
	// Logs returns what the attempts of a job's tasks logged, oldest first.
	Logs(ctx context.Context, job Key) ([]LogRecord, error)
	// Counts returns the number of tasks by worker and status, kept up by the
	// store with every commit, so that this reads a few rows.
	Counts(ctx context.Context) (map[string]StatusCounts, error)
	// Newest returns when the newest job (highest Key) was submitted, 0 = there is none.
	// Damage of the job is no error: a host starts with it.
	Newest(ctx context.Context) (Millis, error)
	// Notes returns what every [Note] has kept, by name. They are few.
	Notes(ctx context.Context) (map[string]string, error)
}

// ListQuery selects jobs.
type ListQuery struct {
	Worker string // empty = all
	// Parent selects the jobs that a job of that id submitted; empty = all.
	Parent string
	// Labels are those that a job must have; nil = any.
	Labels map[string]string
	// Status selects jobs with a task in it; nil = all.
	Status *Status
	// Keys, when not nil, selects these jobs only; it is sorted, highest first.
	Keys []Key
	// After ≤ created < Before; 0 = unbounded.
	After, Before Millis
	// Below continues a list: only jobs with a lower key; 0 = from the newest.
	Below Key
	Limit int
}

// Roomy is a [Store] that can run out of room, and then keeps settlements back that
// are patient.
type Roomy interface {
	Store
	// Full returns why nothing new is taken, an error with code unavailable and
	// field [jobhost.FieldDisk]; nil = there is room.
	Full() error
	// Flowing returns a channel that is closed as soon as no settlement is kept back.
	Flowing() <-chan struct{}
	// GiveUp lets settlements fail that are kept back, now and from now on.
	GiveUp()
}

// Accompanied is a store that may have companions, which keep something of its jobs
// and remove it together with their rows.
type Accompanied interface {
	// Accompanied reports whether something is a companion of the store.
	Accompanied(by any) bool
}
