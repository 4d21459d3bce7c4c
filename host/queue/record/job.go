package record

import (
	"time"

	"github.com/jobhost/jobhost"
	"github.com/jobhost/jobhost/state/payload"
)

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
	// Parent says who submitted the job; nil = it came from outside. It is not
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

// JobRecord is a job as a store returns it.
type JobRecord struct {
	JobSpec         // in lists without Payload
	PayloadSize int // of Payload, or of all Items: with Ref it is 0
	// Damage says that the payload, which is not here then, is not what was written; nil = it is.
	Damage   error
	EndedAt  Millis
	Tasks    []TaskRecord
	Failures []jobhost.Failure
}

// TaskRecord is a task as a store returns it.
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

// ItemBytes returns the sum of the sizes of the job's items.
func (j *JobSpec) ItemBytes() (n int64) {
	for _, item := range j.Items {
		n += int64(len(item))
	}
	return n
}

// Item returns the payload of a task of its own; nil = it has that of the job.
func (j *JobSpec) Item(i int) []byte {
	switch {
	case j.Items == nil:
		return nil
	case j.Items[i] == nil:
		return []byte{}
	}
	return j.Items[i]
}

// WithoutItems returns the job as it comes with bodies.
func (j *JobSpec) WithoutItems() *JobSpec {
	if j.Items == nil {
		return j
	}
	bare := *j
	bare.Items = nil
	return &bare
}

// PayloadSize returns the size of the job's payload, wherever it is.
func (j *JobSpec) PayloadSize() int64 {
	if j.Ref == "" {
		return int64(len(j.Payload))
	}
	return sizeOf(j.Ref)
}

// sizeOf returns the size of what a reference refers to.
func sizeOf(text string) int64 {
	ref, err := payload.ParseRef(text)
	if err != nil {
		return 0 // a damaged row; opening it fails
	}
	return ref.Size
}
