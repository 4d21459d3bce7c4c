package queue

import (
	"context"
	"time"

	"github.com/jobhost/jobhost"
)

// Store keeps jobs durably. It is dumb on purpose: order, limits, retries and
// everything else a reader would call queueing is in [Queue], written once.
// What a store must guarantee stands here and is checked by queuetest, the
// suite that every store passes:
//
//   - Atomic: the operations of one batch are applied all or not at all, also
//     over a crash. Their results are per operation: one that is refused
//     (conflict, fenced, …) changes nothing and leaves the others alone.
//   - Durable: once done is called without an error the batch survives power
//     loss, unless the store was opened as relaxed.
//   - Fenced: a [Settle] applies only under the token of the current lease.
//   - In order: batches are applied in the order in which Commit was called by
//     one goroutine, done is called in the order in which batches were applied,
//     one after the other, and reads that begin after done see the batch.
//   - Fail-stop: after an I/O error on commit every later Commit fails.
//
// All methods may be called from many goroutines.
type Store interface {
	// Commit hands over a batch and returns at once, or waits for room when
	// too much is under way already. done is called exactly once, with one
	// result per operation in their order, or with an error and no results
	// when the batch as a whole was not applied. It is called from a
	// goroutine of the store and must not block. The store owns ops until then.
	Commit(ops []Op, done func([]OpResult, error))

	// Claim leases up to limit open tasks of a worker in order of (ReadyAt,
	// Key), beginning after the place given, and returns them; fewer than
	// limit means that there are no more. A claim is a promise to settle: a
	// store that one process owns alone may keep it in memory, since it ends
	// with the process; one that is shared writes it down with an expiry.
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

	// Close waits for what is under way and frees the store.
	Close() error
}

// Reader is the part of a store that answers questions.
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

// DeadReader is the part of a store that knows of dead letters: of each task
// that is dead, or was when it was revived and has not died again since.
type DeadReader interface {
	// Dead lists dead letters, the latest first, from the one after the place
	// given. It looks at so many letters at most that it is quick, and returns
	// the place to go on from; the zero place = there are no more.
	Dead(ctx context.Context, q DeadQuery) ([]DeadRecord, DeadPlace, error)
	// Deaths counts all deaths by hour, worker, category and code: those of the
	// hours that begin at or after the one and before the other time. Codes
	// may be put together as [jobhost.OtherCodes] when there are many.
	Deaths(ctx context.Context, after, before Millis) ([]DeathRecord, error)
}

// DeadPlace is where a letter stands in the order of deaths.
type DeadPlace struct {
	DiedAt Millis
	Key    Key // of the task
}

// DeadQuery selects dead letters. Zero values select everything.
type DeadQuery struct {
	Worker, Code  string
	Category      jobhost.Category
	After, Before Millis // After ≤ died < Before
	Labels        map[string]string
	Text          string    // in the job's id, the code or the message, in any case
	Retried       bool      // revived ones too
	Below         DeadPlace // only letters after this place; zero = from the latest
	Limit         int
}

// DeadRecord is a dead letter.
type DeadRecord struct {
	DeadPlace
	Job, Worker          string
	Index, Attempts      int
	Labels               map[string]string
	Code, Message        string
	Category             jobhost.Category
	Severity             jobhost.Severity
	CreatedAt, RevivedAt Millis // RevivedAt 0 = never since it died
}

// DeathRecord counts deaths.
type DeathRecord struct {
	Hour         Millis // when it began
	Worker, Code string
	Category     jobhost.Category
	N            int64
}

// Hour returns when the hour began that a time is in.
func (m Millis) Hour() Millis { return m - m%3_600_000 }

// Key is the number that the store gives a task. Keys rise in the order of
// submission; the tasks of a job have consecutive keys, and the key of its
// task 0 is the key of the job.
type Key int64

// Place is where a task stands in the order of claims.
type Place struct {
	ReadyAt Millis
	Key     Key
}

// Millis is a time in milliseconds since 1970 UTC, as stores keep it. 0 = none.
type Millis int64

// MillisOf converts a time; the zero time is 0.
func MillisOf(t time.Time) Millis {
	if t.IsZero() {
		return 0
	}
	return Millis(t.UnixMilli())
}

// Time converts back; 0 is the zero time.
func (m Millis) Time() time.Time {
	if m == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(m)).UTC()
}

// Status is what a store knows of a task. Everything finer (ready, scheduled,
// running, held) follows from the clock and from what the process does now.
type Status uint8

// The statuses. The numbers are stored.
const (
	Open      Status = 0
	Succeeded Status = 1
	Dead      Status = 2
	Cancelled Status = 3
)

// StatusCounts counts tasks, indexed by [Status].
type StatusCounts [4]int64

// Claimed is a leased task.
type Claimed struct {
	Place
	Index   int // of the task in its job
	Attempt int // attempts that were made and count
	Level   int // of priority, 0..4
	Group   Group
	Token   int64
	// Deadline is when the task is given up if it waits; 0 = never.
	Deadline Millis
}

// Body is what is needed to run a task: its job's part and its own.
type Body struct {
	Key     Key
	Token   int64
	Attempt int // attempts that were made and count
	// Suspect: an attempt of the task was under way when a host died.
	Suspect bool
	Index   int
	// Deadline is as with [Claimed].
	Deadline Millis
	// Payload is the task's own, of a job with Items, and never nil there; nil = that of the job.
	Payload []byte
	// Damage says what of the payload, or of the job, is not what was written: then it is
	// not here, and the task must not run. nil = all is.
	Damage error
	Job    *JobSpec
}

// JobSpec is what a job was submitted as, with all defaults filled in. It is
// not changed after it was made, so bodies of one job may share it.
type JobSpec struct {
	Key     Key // 0 before the store gave one
	ID      string
	Worker  string
	Payload []byte
	// Ref names the object that the payload is in, outside of the store; empty =
	// Payload is all of it. See [ObjectReader].
	Ref string
	// Borrowed: the object belongs to another job, which is kept as long.
	Borrowed    bool
	ContentType string
	Entry       string
	Priority    jobhost.Priority
	Tasks       int
	MaxAttempts int
	Timeout     time.Duration
	Retention   time.Duration // own; 0 = the worker's
	Labels      map[string]string
	// ConcurrencyKey groups tasks: see [Group].
	ConcurrencyKey string
	// Deadline is when its tasks are given up that wait; 0 = never.
	Deadline Millis
	// UniqueKey keeps others with the same key out until UniqueUntil, or as
	// long as the job is there if that is 0.
	UniqueKey   string
	UniqueUntil Millis
	Callback    jobhost.Callback
	// Items are the payloads of the tasks, in their order; nil = all have Payload. They go
	// without a Payload and a Ref, and are not loaded with jobs and bodies: see [Body.Payload].
	Items [][]byte
	// Retry holds instead of the worker's; nil = that.
	Retry *jobhost.RetryPolicy
	// Breaker holds the job's tasks while others with its key fail, beside the worker's own; nil = none.
	// It goes without a ConcurrencyKey.
	Breaker *jobhost.BreakerPolicy
	// MaxParallel bounds the tasks of the job that run at one time; 0 = no bound. It goes
	// without a ConcurrencyKey.
	MaxParallel int
	// Origin is the step of a workflow that the job is for; nil = none.
	Origin    *Origin
	CreatedAt Millis
	ReadyAt   Millis // of its tasks at submit
	// Parent says who submitted the job; nil = somebody from outside. It is not
	// loaded with bodies.
	Parent *Parent
	// Digest identifies the content, for idempotent submits; all options that
	// the caller gave take part in it, times that were filled in don't.
	Digest [16]byte
	// DigestBefore is the digest as it was before it took the payload's length in. Jobs
	// that are stored from that time have it, and no Digest.
	DigestBefore [16]byte
}

// Repeats reports whether the job was submitted as one that is there.
func (j *JobSpec) Repeats(there *JobSpec) bool {
	if there.Digest == ([16]byte{}) {
		return there.DigestBefore == j.DigestBefore
	}
	return there.Digest == j.Digest
}

// JobRecord is a job as a store tells of it.
type JobRecord struct {
	JobSpec         // in lists without Payload
	PayloadSize int // of Payload, or of all Items: with Ref it is 0
	// Damage says that the payload, which is not here then, is not what was written; nil = it is.
	Damage   error
	EndedAt  Millis
	Tasks    []TaskRecord
	Failures []jobhost.Failure
}

// TaskRecord is a task as a store tells of it.
type TaskRecord struct {
	Key        Key
	Index      int
	Status     Status
	Attempt    int
	ReadyAt    Millis
	Token      int64  // of the lease that is or was the last
	StartedAt  Millis // of the last settled attempt
	Fuel       int64  // of all settled attempts together
	EndedAt    Millis
	ResultSize int
	ResultRef  string // names the object that the result is in; empty = it is in the store
}

// ResultRecord is what a task returned.
type ResultRecord struct {
	Index int    // of the task
	Data  []byte // of Size bytes, unless they are elsewhere
	Size  int
	Ref   string // names the object that the result is in; empty = it is in the store
}

// LogRecord is what one attempt logged: lines ended by \n.
type LogRecord struct {
	Task, Attempt int
	Text          []byte
	Dropped       int64
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
